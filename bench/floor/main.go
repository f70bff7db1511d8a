// Command floor is the least that the work can cost: programs to compare swarm with.
//
//	floor one                         starts one child
//	floor chain N FILE PROGRAM…       starts N children, one after the other, each between two
//	                                  writes to FILE that wait for the disk
//	floor crowd N PROGRAM…            starts N children, all at once
//	floor agents N FILE HOW PROGRAM…  has programs do N turns, one after the other, each between
//	                                  two such writes. HOW is new (a program for each, which
//	                                  stays), stays (one for all) or ends (a program for each,
//	                                  which ends)
//	floor memory PROGRAM…             runs a program and prints its peak memory in bytes. A process
//	                                  is counted with what it was forked from, so this program
//	                                  must be small
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"swarm/bench/disk"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "one":
		return child([]string{"true"})
	case len(args) > 3 && args[0] == "chain":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return chain(n, args[2], args[3:])
	case len(args) > 2 && args[0] == "crowd":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return crowd(n, args[2:])
	case len(args) > 4 && args[0] == "agents":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return agents(n, args[2], args[3], args[4:])
	case len(args) > 1 && args[0] == "memory":
		cmd := exec.Command(args[1], args[2:]...)
		if err := cmd.Run(); err != nil {
			return err
		}
		_, err := fmt.Println(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * rssUnit)
		return err
	}
	return fmt.Errorf(
		"usage: floor one | floor chain N FILE PROGRAM [ARGUMENT…] | floor crowd N PROGRAM [ARGUMENT…] | floor agents N FILE HOW PROGRAM [ARGUMENT…] | floor memory PROGRAM [ARGUMENT…]",
	)
}

// child starts a program with three pipes: a prompt goes in, output and errors come out.
func child(argv []string) error {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader("Do nothing.\n")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd.Run()
}

// crowd runs programs side by side.
func crowd(n int, argv []string) error {
	ended := make(chan error)
	for range n {
		go func() { ended <- child(argv) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-ended)
	}
	return all
}

func chain(n int, path string, argv []string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	record := bytes.Repeat([]byte("x"), 300)
	for range n {
		if err := disk.Write(f, record); err != nil {
			return err
		}
		if err := child(argv); err != nil {
			return err
		}
		if err := disk.Write(f, record); err != nil {
			return err
		}
	}
	return f.Close()
}
