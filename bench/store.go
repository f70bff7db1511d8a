package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"swarm"
	"swarm/bench/disk"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// someEvent makes the event that is appended: an end of a turn of typical length.
func someEvent() swarm.Event {
	return swarm.Event{
		Kind:  swarm.TurnEnded,
		Task:  "code",
		Agent: "coder",
		Turn:  "code/1/1",
		Data: jsonOf(swarm.CallEnd{ID: "code/1/1",
			Call: "turn code coder plan", Status: swarm.CallOK, Output: swarm.NoText, Bytes: 1024, Usage: swarm.Usage{Calls: 1, InputTokens: 512, OutputTokens: 256}}),
	}
}

func jsonOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the nouns can always be encoded
	}
	return b
}

// append measures one caller who appends one event and waits until it is on disk. The floor writes
// as many bytes and syncs them.
func (l *lab) append() (err error) {
	log, err := sqlite.Create(filepath.Join(l.dir, "append.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	file, err := os.Create(filepath.Join(l.dir, "append.raw"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	e := someEvent()
	// Blocks of calls alternate, and not single calls. Two files that are synced in turn would make
	// the disk's journal work for both of them each time.
	const block = 50
	timed := func(call func() error) func() ([]time.Duration, error) {
		return func() (took []time.Duration, err error) {
			for range block {
				start := time.Now()
				if err := call(); err != nil {
					return nil, err
				}
				took = append(took, since(start))
			}
			return took, nil
		}
	}
	blocks, err := inTurn(40,
		timed(func() error {
			_, err := log.Append(context.Background(), swarm.Batch{Events: []swarm.Event{e}})
			return err
		}),
		timed(func() error { return disk.Write(file, e.Data) }))
	if err != nil {
		return err
	}
	ours, floor := p50(slices.Concat(blocks[0]...), itself), p50(slices.Concat(blocks[1]...), itself)
	r := ratio(ours, floor)
	l.add(
		row{"durable append, 1 caller", short(ours), short(floor) + " write + fdatasync", times(r), "≤ 1.1×", r <= 1.1},
	)
	return nil
}

// callers measures how many appends a second 64 callers do, against one.
func (l *lab) callers() (err error) {
	log, err := sqlite.Create(filepath.Join(l.dir, "callers.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	rate := func(callers, each int) (time.Duration, error) {
		var group sync.WaitGroup
		errs := make([]error, callers)
		start := time.Now()
		for i := range callers {
			group.Go(func() {
				for range each {
					if _, err := log.Append(context.Background(), swarm.Batch{Events: []swarm.Event{someEvent()}}); err != nil {
						errs[i] = err
						return
					}
				}
			})
		}
		group.Wait()
		return since(start) / time.Duration(callers*each), errors.Join(errs...)
	}
	got, err := inTurn(7,
		func() (time.Duration, error) { return rate(64, 100) },
		func() (time.Duration, error) { return rate(1, 500) })
	if err != nil {
		return err
	}
	many, one := p50(got[0], itself), p50(got[1], itself)
	r := ratio(one, many)
	l.add(row{
		"durable append, 64 callers", short(many) + " an event", short(one) + " 1 caller", times(r) + " the rate",
		"≥ 5×", r >= 5})
	return nil
}

// longID is the run of a million events, in the state folder, so that commands find it.
const (
	longID         = "20260101-000000-g7k3f9q"
	longTasks      = 1000
	longIterations = 250 // 4 events a turn
)

// longRun writes the run of a million events, once.
func (l *lab) longRun() (_ *statedir.Home, err error) {
	h, err := statedir.At(l.home(), sqlite.NewStore)
	if err != nil || l.events > 0 {
		return h, err
	}
	if err := h.MakeRuns(); err != nil {
		return nil, err
	}
	l.events, err = writeRun(h, longID, longTasks, longIterations)
	return h, err
}

// open measures what every reader of a run does first: open its log and fold it, with a stored fold
// and without.
func (l *lab) open() error {
	h, err := l.longRun()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("open a run of %d events", l.events)
	opened := func() (took time.Duration, err error) {
		start := time.Now()
		log, err := h.Store.Open(context.Background(), longID, swarm.ReadOnly)
		if err != nil {
			return 0, err
		}
		v, err := run.View(log, longID)
		took = since(start)
		if err == nil && v.Seq != l.events {
			err = fmt.Errorf("%d of %d events were folded", v.Seq, l.events)
		}
		return took, errors.Join(err, log.Close())
	}
	without, err := inTurn(3, opened)
	if err != nil {
		return err
	}
	look, err := run.OpenReader(h, longID)
	if err != nil {
		return err
	}
	if _, err = look.Fold(); err == nil { // it stores the fold
		err = look.Close()
	}
	if err != nil {
		return err
	}
	with, err := inTurn(5, opened)
	if err != nil {
		return err
	}
	whole, folded := p50(without[0], itself), p50(with[0], itself)
	l.add(row{name, short(whole), "", short(whole), "≤ 3 s", whole <= 3*time.Second})
	l.add(row{name + ", stored fold", short(folded), "", short(folded), "≤ 100 ms", folded <= 100*time.Millisecond})
	return nil
}

// writeRun writes the log of a run as it is after all its tasks have run in every iteration.
func writeRun(h *statedir.Home, id swarm.RunID, tasks, iterations int) (events int64, err error) {
	log, err := h.Store.Create(context.Background(), id)
	if err != nil {
		return 0, err
	}
	said := h.WriteStreams(id)
	defer func() { err = errors.Join(err, said.Close(), log.Close()) }()
	p := chainPlan(tasks)
	p.Kind, p.Groups = swarm.PipelineRun, []swarm.Group{{Iterations: iterations}}
	for _, t := range p.Tasks {
		p.Agents = append(p.Agents, swarm.Agent{Name: t.Agent, Provider: "t"})
	}
	batch := []swarm.Event{
		{
			Kind: swarm.RunStarted,
			Key:  string(swarm.RunStarted),
			Data: jsonOf(swarm.RunStart{
				ID:      id,
				Kind:    swarm.PipelineRun,
				Dir:     "/",
				Version: "bench",
				Loops:   "1",
				Time:    time.Now(),
			}),
		},
		{Kind: swarm.PlanAdded, Key: "plan:1", Data: jsonOf(p)},
	}
	flush := func() error {
		events += int64(len(batch))
		_, err := log.Append(context.Background(), swarm.Batch{Events: batch})
		batch = batch[:0]
		return err
	}
	for i := 1; i <= iterations; i++ {
		if i > 1 {
			batch = append(
				batch,
				swarm.Event{Kind: swarm.IterationStarted, Data: jsonOf(swarm.Iteration{Iteration: i, Of: iterations})},
			)
		}
		for _, t := range p.Tasks {
			batch = append(batch, turnEvents(t, i, iterations)...)
			said.Turn(string(swarm.NewTurnID(t.Name, i, 1)), 1).Write(string(swarm.DeltaText), "done\n")
		}
		if err := flush(); err != nil {
			return 0, err
		}
	}
	return events, nil
}

func turnEvents(t swarm.Task, iteration, of int) []swarm.Event {
	turn := swarm.NewTurnID(t.Name, iteration, 1)
	tail := "/" + strconv.Itoa(iteration)
	return []swarm.Event{
		{
			Kind:  swarm.TaskStarted,
			Key:   "task_started:" + t.Name + tail,
			Task:  t.Name,
			Agent: t.Agent,
			Data:  jsonOf(swarm.Iteration{Iteration: iteration, Of: of}),
		},
		{Kind: swarm.TurnStarted, Key: swarm.StartKey(turn, 1), Task: t.Name, Agent: t.Agent, Turn: turn,
			Data: jsonOf(swarm.TurnStart{
				Iteration: iteration,
				Attempt:   1,
				Start:     1,
				Owner:     1,
				Provider:  "t",
				Prompt:    swarm.NoText,
				Bytes:     100,
				Spans:     []swarm.Span{{From: "ids", Start: 0, End: 80}, {From: "text", Start: 80, End: 100}},
			})},
		{
			Kind:  swarm.TurnEnded,
			Key:   swarm.EndKey(string(turn)),
			Task:  t.Name,
			Agent: t.Agent,
			Turn:  turn,
			To:    swarm.ToLoop("main"),
			Data: jsonOf(swarm.CallEnd{
				ID:     string(turn),
				Call:   "turn " + t.Name + " " + t.Agent + " plan",
				Status: swarm.CallOK,
				Output: swarm.NoText,
				Usage:  swarm.Usage{Calls: 1, InputTokens: 25, Estimated: true},
			}),
		},
		{
			Kind:  swarm.TaskCompleted,
			Key:   "task_completed:" + t.Name + tail,
			Task:  t.Name,
			Agent: t.Agent,
			Data:  jsonOf(swarm.TaskEnd{Iteration: iteration}),
		},
	}
}
