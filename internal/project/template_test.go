package project

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"swarm"
	"swarm/internal/compose"
)

// Templates are the first examples that users read, so each must pass without error and without
// warning: as it is, and with the agents that its comment advises.
func TestTheTemplatesAreGood(t *testing.T) {
	for _, template := range Templates {
		t.Run(template.Name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := template.Init(dir, compose.Schema()); err != nil {
				t.Fatal(err)
			}
			p := Open(dir, "", "")
			defer p.Close()
			file, source, err := p.Compose()
			if err != nil {
				t.Fatal(err)
			}
			options := compose.Options{File: file, Source: source, Prompts: p, Dir: dir}
			check := func(o compose.Options) {
				errs, warnings := compose.Check(o)
				for _, e := range append(errs, warnings...) {
					t.Errorf("%v (%s)", e, e.Hint)
				}
			}
			check(options)
			bundle, err := compose.CompileTeam(options)
			if err != nil {
				t.Fatal(err)
			}
			for _, provider := range bundle.Plan.Providers {
				if provider.Kind != "script" {
					t.Errorf("it needs %s", provider.Kind)
				}
			}
			advised := regexp.MustCompile(`change this one line: (provider: \S+)\n`).FindSubmatch(source)
			if advised == nil {
				t.Fatal("no comment says which line to change")
			}
			changed := bytes.Replace(source, []byte("\nprovider: demo\n"), fmt.Appendf(nil, "\n%s\n", advised[1]), 1)
			if bytes.Equal(changed, source) {
				t.Error("no line names the provider demo")
			}
			options.Source = changed
			check(options)
		})
	}
}

// Every prefix, as a full disk may leave it, is a plan or an error that names the line where it
// stops.
func TestEveryPrefixOfTheTemplate(t *testing.T) {
	dir := t.TempDir()
	if _, err := Templates[0].Init(dir, compose.Schema()); err != nil {
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
