package project

import (
	"bytes"
	"fmt"
	"testing"

	"swarm"
	"swarm/internal/compose"
)

// The template is the first example that users read, so it must pass without error and without
// warning.
func TestTheTemplateIsGood(t *testing.T) {
	dir := t.TempDir()
	if _, err := Init(dir, compose.Schema()); err != nil {
		t.Fatal(err)
	}
	p := Open(dir, "", "")
	defer p.Close()
	file, source, err := p.Compose()
	if err != nil {
		t.Fatal(err)
	}
	options := compose.Options{File: file, Source: source, Prompts: p, Dir: dir}
	errs, warnings := compose.Check(options)
	for _, e := range append(errs, warnings...) {
		t.Errorf("%v (%s)", e, e.Hint)
	}
	bundle, err := compose.Compile(options)
	if err != nil {
		t.Fatal(err)
	}
	plan := bundle.Plan
	if len(plan.Tasks) != 3 || plan.Name != "main" || plan.Groups[0].Iterations != 2 {
		t.Errorf("the plan is %+v", plan)
	}
	for _, provider := range plan.Providers {
		if provider.Kind != "script" {
			t.Errorf("it needs %s", provider.Kind)
		}
	}
}

// Every prefix, as a full disk may leave it, is a plan or an error that names the line where it
// stops.
func TestEveryPrefixOfTheTemplate(t *testing.T) {
	dir := t.TempDir()
	if _, err := Init(dir, compose.Schema()); err != nil {
		t.Fatal(err)
	}
	p := Open(dir, "", "")
	defer p.Close()
	file, source, err := p.Compose()
	if err != nil {
		t.Fatal(err)
	}
	for n := range source {
		_, err := compose.Compile(compose.Options{File: file, Source: source[:n], Prompts: p, Dir: dir})
		if err == nil {
			continue
		}
		e := err.(*swarm.Error)
		stops := max(1, len(bytes.Split(bytes.TrimSuffix(source[:n], []byte("\n")), []byte("\n"))))
		if swarm.ExitCode(e) != swarm.ExitBadInput || e.Line != stops && !bytes.Contains([]byte(e.Hint), fmt.Appendf(nil, "%s ends in line %d", file, stops)) {
			t.Fatalf("after %d bytes, in line %d: %v (%s)", n, stops, e, e.Hint)
		}
	}
}
