package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/httpd"
	"swarm/internal/modeltest"
)

// deliveries is from where on the numbers are of instructions that only bring others along.
const deliveries = 10_000

// The mole is an agent that obeys every text it reads: a model that cannot tell its task from its
// input, or a program that was taken over.

var order = regexp.MustCompile(`(?m)OBEY (\{.*\})`)

// ordersIn are the instructions in a text, and in every text inside of it where it is JSON.
func ordersIn(text string) (all []attack) {
	for _, m := range order.FindAllStringSubmatch(text, -1) {
		var a attack
		if json.Unmarshal([]byte(m[1]), &a) == nil {
			all = append(all, a)
		}
	}
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		all = append(all, ordersWithin(value)...)
	}
	return all
}

func ordersWithin(value any) (all []attack) {
	switch v := value.(type) {
	case string:
		all = ordersIn(v)
	case []any:
		for _, in := range v {
			all = append(all, ordersWithin(in)...)
		}
	case map[string]any:
		for _, in := range v {
			all = append(all, ordersWithin(in)...)
		}
	}
	return all
}

// A moleModel is the mole as a model: it answers with every call that what it reads tells it to
// make.
type moleModel struct {
	mu      sync.Mutex
	asked   []int          // in this turn, in order
	done    map[int]bool   // it obeys once
	answers map[int]string // what came of each
}

func (m *moleModel) reply(r modeltest.Request) modeltest.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(r.Results) == 0 {
		m.asked = nil
	}
	for i, result := range r.Results {
		m.answers[m.asked[i]] = result
	}
	const most = 25 // in one answer
	var calls []modeltest.Call
	for _, text := range append(slices.Clone(r.Said), r.Results...) {
		for _, a := range ordersIn(text) {
			if m.done[a.N] || a.Tool == "" || len(calls) == most {
				continue
			}
			m.done[a.N], m.asked = true, append(m.asked, a.N)
			calls = append(calls, modeltest.Call{ID: fmt.Sprint("obey-", a.N), Name: a.Tool, Args: a.Args})
		}
	}
	if len(calls) == 0 {
		return modeltest.Answer{Text: fmt.Sprintf("I have obeyed %d times.", len(m.answers))}
	}
	return modeltest.Answer{Calls: calls}
}

// moleAnswers is the file in which the mole, as a program, notes the answer to each of its actions.
const moleAnswers = "mole.answers"

// A moleNote is a line of it.
type moleNote struct {
	N      int
	Answer string
}

// obeyAll is the mole as a program, this one under the name mole.
func obeyAll() {
	prompt, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = (&moleProgram{done: map[int]bool{}}).obey(string(prompt))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type moleProgram struct {
	tools httpd.Agent
	notes *os.File
	done  map[int]bool
}

func (m *moleProgram) obey(prompt string) error {
	before, _ := os.ReadFile(moleAnswers)
	for line := range strings.Lines(string(before)) {
		var n moleNote
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			return err
		}
		m.done[n.N] = true
	}
	var err error
	if m.notes, err = os.OpenFile(moleAnswers, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	defer m.notes.Close()
	var leave func() error
	m.tools, leave, err = httpd.Connect(context.Background(), swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}, "test")
	if err != nil {
		return err
	}
	defer func() { _ = leave() }()
	for orders := ordersIn(prompt); len(orders) > 0; {
		a := orders[0]
		orders = orders[1:]
		if m.done[a.N] {
			continue
		}
		m.done[a.N] = true
		answer := m.do(a)
		orders = append(orders, ordersIn(answer)...)
		if err := json.NewEncoder(m.notes).Encode(moleNote{a.N, answer}); err != nil {
			return err
		}
	}
	fmt.Printf("%s has obeyed %d times\n", os.Getenv("SWARM_TURN_ID"), len(m.done))
	return nil
}

// do executes an instruction, and returns its result.
func (m *moleProgram) do(a attack) string {
	fill := strings.NewReplacer(ownRun, os.Getenv("SWARM_RUN_ID"), ownToken, os.Getenv("SWARM_AGENT_TOKEN")).Replace
	switch {
	case a.N >= deliveries && a.Tool != "read_artifact": // it has hands of its own for these
		return m.fetches(a)
	case a.Tool != "":
		answer, err := m.tools.Call(context.Background(), a.Tool, json.RawMessage(fill(a.Args)))
		if err != nil {
			return err.Error()
		}
		return string(answer) + m.approves(answer)
	case a.Argv != nil:
		argv := slices.Clone(a.Argv)
		for i := range argv {
			argv[i] = fill(argv[i])
		}
		cmd := exec.Command("swarm", argv...)
		cmd.Env = os.Environ()
		for name, value := range a.Env {
			cmd.Env = append(cmd.Env, name+"="+fill(value))
		}
		cmd.Stdin = strings.NewReader(fill(a.Stdin))
		out, err := cmd.CombinedOutput()
		return fmt.Sprint(string(out), err)
	}
	r, err := http.NewRequest(a.Method, os.Getenv("SWARM_URL")+fill(a.Path), strings.NewReader(fill(a.Body)))
	if err != nil {
		return err.Error()
	}
	for name, value := range a.Header {
		if r.Header.Set(name, fill(value)); name == "Host" {
			r.Host = value
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprint(answer.Status, " ", string(text), err)
}

// approves tries to grant itself what it has just asked for.
func (m *moleProgram) approves(answer json.RawMessage) (told string) {
	var asked struct{ Request string }
	if json.Unmarshal(answer, &asked) != nil || asked.Request == "" {
		return ""
	}
	return m.do(attack{Argv: []string{"approve", asked.Request}}) +
		m.do(attack{Method: http.MethodPost, Path: "/api/v1/approvals/" + asked.Request, Body: `{"ok":true}`, Header: map[string]string{"Authorization": "Bearer " + ownToken, "Content-Type": "application/json"}}) +
		m.do(attack{Tool: "approve", Args: `{"id":"` + asked.Request + `"}`})
}

// fetches reads a file, a page or a command's output that has more instructions.
func (m *moleProgram) fetches(a attack) string {
	var args struct {
		Path, URL string
		Argv      []string
	}
	if err := json.Unmarshal([]byte(a.Args), &args); err != nil {
		return err.Error()
	}
	switch a.Tool {
	case "file_read":
		text, err := os.ReadFile(filepath.Join("desk", args.Path))
		return fmt.Sprint(string(text), err)
	case "command":
		out, err := exec.Command(args.Argv[0], args.Argv[1:]...).Output()
		return fmt.Sprint(string(out), err)
	}
	answer, err := http.Get(args.URL)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(answer.Body)
	return fmt.Sprint(text.String(), err)
}
