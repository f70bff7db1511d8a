package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// reads measures commands that read little of the run of a million events: one turn, its last
// lines, the reason of a task's state. The floor is a command that does nothing.
func (l *lab) reads() error {
	if _, err := l.longRun(); err != nil {
		return err
	}
	task := "t" + strconv.Itoa(longTasks/2)
	turn := swarm.NewTurnID(task, longIterations/2, 1)
	// The first one stores the fold.
	if _, err := l.measure(l.dir, l.swarm, "-g", "why", longID, task); err != nil {
		return err
	}
	for _, args := range [][]string{{"show", longID, "--turn", string(turn)}, {"show", longID, "--turn", task}, {"logs", longID, "-n", "10"}, {"why", longID, task}} {
		argv := append([]string{l.swarm, "-g"}, args...)
		got, err := inTurn(5,
			func() (cost, error) { return l.measure(l.dir, argv...) },
			func() (cost, error) { return l.measure(l.dir, l.swarm, "version") })
		if err != nil {
			return err
		}
		bytes, err := l.memory(l.dir, argv...)
		if err != nil {
			return err
		}
		ours, idle := p50(got[0], wall), p50(got[1], wall)
		args[1] = "RUN"
		l.add(row{
			"`swarm " + strings.Join(args, " ") + "` of a million events",
			short(ours) + ", " + megabytes(bytes),
			short(idle) + " `swarm version`",
			short(
				ours,
			) + ", " + megabytes(
				bytes,
			),
			"≤ 200 ms, ≤ 100 MB",
			ours <= 200*time.Millisecond && bytes <= 100e6,
		})
	}
	return nil
}

// list measures a list of 20 among 5,000 runs: `swarm ls`, and the answer of a server.
func (l *lab) list() (err error) {
	const many = 5000
	dir := filepath.Join(l.dir, "list")
	h, err := statedir.At(dir, sqlite.NewStore)
	if err == nil {
		err = h.MakeRuns()
	}
	if err == nil {
		err = writeRuns(h, many)
	}
	if err != nil {
		return err
	}
	command := func(args ...string) []string { return append([]string{"env", "SWARM_HOME=" + dir, l.swarm}, args...) }
	server := l.command(l.dir, command("serve", "-g", "--json", "--listen", "127.0.0.1:0")...)
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Process.Signal(syscall.SIGTERM), ignored(server.Wait())) }()
	var at struct{ URL string }
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		return err
	}
	token, err := os.ReadFile(h.TokenPath())
	if err != nil {
		return err
	}
	get := func(path string) (time.Duration, error) {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, at.URL+path, nil)
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		start := time.Now()
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", path, answer.Status)
		}
		return since(start), errors.Join(err, answer.Body.Close())
	}
	run := func(args ...string) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			c, err := l.measure(l.dir, command(args...)...)
			return c.wall, err
		}
	}
	got, err := inTurn(11, run("ls", "-g"), run("version"),
		func() (time.Duration, error) { return get("/api/v1/runs?limit=20") },
		func() (time.Duration, error) { return get("/openapi.json") })
	if err != nil {
		return err
	}
	for i, name := range []string{"`swarm ls` among 5,000 runs", "`GET /runs?limit=20` among 5,000 runs"} {
		ours, floor := p50(got[2*i], itself), p50(got[2*i+1], itself)
		what := []string{" `swarm version`", " `GET /openapi.json`"}[i]
		l.add(row{name, short(ours), short(floor) + what, short(ours), "≤ 20 ms", ours <= 20*time.Millisecond})
	}
	return nil
}

// ignored drops an error: a server that is told to end says that it was.
func ignored(error) error { return nil }

// writeRuns writes runs that have ended. Their logs are one file under many names, because a list
// does not read them.
func writeRuns(h *statedir.Home, n int) error {
	ctx := context.Background()
	var first string
	for i := range n {
		began := time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)
		s := swarm.RunSummary{
			ID:      swarm.NewRunID(began),
			Kind:    swarm.PipelineRun,
			Name:    "main",
			Dir:     "/",
			Status:  swarm.Completed,
			Started: began,
			Ended:   began,
			Tasks:   3,
			Done:    3,
		}
		path := filepath.Join(h.Dir(), "runs", string(s.ID)+".db")
		if first == "" {
			log, err := h.Store.Create(ctx, s.ID)
			if err == nil {
				err = log.Close()
			}
			if err != nil {
				return err
			}
			first = path
		} else if err := os.Link(first, path); err != nil {
			return err
		}
		for _, side := range []string{".owner", ".lock"} { // as an owner leaves them
			if err := os.WriteFile(path+side, nil, 0o600); err != nil {
				return err
			}
		}
		if err := h.Store.Save(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
