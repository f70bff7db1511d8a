package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"swarm/bench/disk"
)

const message = `{"type":"user","message":{"role":"user","content":"Do nothing."}}` + "\n"

// agents has programs do turns, each of which is logged before and after.
func agents(n int, path, how string, argv []string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	record := bytes.Repeat([]byte("x"), 300)
	var last *agent
	for range n {
		if err := disk.Write(f, record); err != nil {
			return err
		}
		switch {
		case how == "ends":
			err = wholeAgent(argv)
		case how == "new" || last == nil:
			if last, err = startAgent(argv); err != nil {
				return err
			}
			defer func(a *agent) { err = errors.Join(err, a.end()) }(last)
			err = last.turn()
		default:
			err = last.turn()
		}
		if err != nil {
			return err
		}
		if err := disk.Write(f, record); err != nil {
			return err
		}
	}
	return nil
}

// wholeAgent runs a program that answers its standard input and ends.
func wholeAgent(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(message)
	out, err := cmd.Output()
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s says nothing", argv[0])
	}
	return err
}

// An agent is a program that answers a line with lines, the last of which is its result.
type agent struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startAgent(argv []string) (*agent, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &agent{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

func (a *agent) turn() error {
	if _, err := io.WriteString(a.in, message); err != nil {
		return err
	}
	for {
		line, err := a.out.ReadBytes('\n')
		if err != nil || bytes.Contains(line, []byte(`"type":"result"`)) {
			return err
		}
	}
}

func (a *agent) end() error {
	return errors.Join(a.in.Close(), a.cmd.Wait())
}
