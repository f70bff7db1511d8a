package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// The process that measures also drives runs, and swarm takes every process below a driver for a
// part of a turn, which may not write as a person. So the program starts itself once more: the inner
// process measures, and the outer one, which drives nothing, runs commands for it.

// insideVariable tells the inner process that it is one.
const insideVariable = "SWARM_BENCH_INSIDE"

// A personRequest is a command that the outer process runs.
type personRequest struct {
	Dir  string
	Argv []string
	Env  []string
}

// runInside starts this program again, runs commands for it until it ends, and returns its exit
// code.
func runInside() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	asked, ask, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	answered, answer, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	inner := exec.Command(self, os.Args[1:]...)
	inner.Stdin, inner.Stdout, inner.Stderr = os.Stdin, os.Stdout, os.Stderr
	inner.Env = append(os.Environ(), insideVariable+"=1")
	inner.ExtraFiles = []*os.File{ask, answered}
	if err := inner.Start(); err != nil {
		return 1, err
	}
	ask.Close()
	answered.Close()
	requests, answers := json.NewDecoder(asked), json.NewEncoder(answer)
	for {
		var r personRequest
		if requests.Decode(&r) != nil { // it has ended
			break
		}
		cmd := exec.Command(r.Argv[0], r.Argv[1:]...)
		cmd.Dir, cmd.Env = r.Dir, r.Env
		wrong := ""
		if out, err := cmd.CombinedOutput(); err != nil {
			wrong = fmt.Sprintf("%v: %v\n%s", r.Argv, err, out)
		}
		if answers.Encode(wrong) != nil {
			break
		}
	}
	err = inner.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(1, exit.ExitCode()), nil
	}
	return 0, err
}

// A person has the outer process run commands.
type person struct {
	requests *json.Encoder
	answers  *json.Decoder
}

func newPerson() *person {
	return &person{json.NewEncoder(os.NewFile(3, "requests")), json.NewDecoder(os.NewFile(4, "answers"))}
}

// run runs a command to its end.
func (p *person) run(cmd *exec.Cmd) error {
	if err := p.requests.Encode(personRequest{cmd.Dir, cmd.Args, cmd.Env}); err != nil {
		return err
	}
	var wrong string
	if err := p.answers.Decode(&wrong); err != nil {
		return err
	}
	if wrong != "" {
		return errors.New(wrong)
	}
	return nil
}
