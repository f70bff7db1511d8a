// Command standin stands in for a coding agent that takes no time. It prints what a real one has
// printed, and notes when it started and when it had printed everything.
//
//	standin stays|ends LEDGER RECORDING [ARGUMENT…]
//
// A program that stays answers each line on its standard input with the recording up to its first
// result, as Claude Code does. A program that ends reads its prompt, answers it and exits, as Codex
// does. The other arguments are for a real one and are ignored.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

func main() {
	there := time.Now()
	if err := run(os.Args[1:], there); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run(args []string, there time.Time) error {
	if len(args) < 3 {
		return errors.New("usage: standin stays|ends LEDGER RECORDING")
	}
	if slices.Contains(args, "--version") || slices.Contains(args, "status") { // a check before the first turn
		_, err := fmt.Println("1.0 (stand-in)")
		return err
	}
	ledger, err := os.OpenFile(args[1], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	recording, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	if args[0] == "ends" {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		return answer(ledger, recording, there)
	}
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		heard := time.Now()
		if !there.IsZero() {
			heard, there = there, time.Time{} // the first turn began when the program started
		}
		if err := answer(ledger, oneTurn(recording, line), heard); err != nil {
			return err
		}
	}
}

// oneTurn returns the recording's first turn, in a session of this process's own, after the message
// that it answers.
func oneTurn(recording, message []byte) []byte {
	const recorded = "00000000-0000-4000-8000-000000000001"
	own := fmt.Sprintf("00000000-0000-4000-8000-%012d", os.Getpid())
	said := slices.Clone(message)
	for line := range bytes.Lines(recording) {
		said = append(said, bytes.ReplaceAll(line, []byte(recorded), []byte(own))...)
		var l struct{ Type string }
		if json.Unmarshal(line, &l) == nil && l.Type == "result" {
			break
		}
	}
	return said
}

// answer prints it all in one piece, and notes when that was. The last program of a run may be
// ended before it has noted that.
func answer(ledger *os.File, said []byte, heard time.Time) error {
	if _, err := fmt.Fprintln(ledger, "heard", heard.UnixNano()); err != nil {
		return err
	}
	if _, err := os.Stdout.Write(said); err != nil {
		return err
	}
	_, err := fmt.Fprintln(ledger, "said", time.Now().UnixNano())
	return err
}
