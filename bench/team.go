package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"swarm"
	"swarm/bench/disk"
	"swarm/internal/agentapi"
	"swarm/internal/engine/local"
	"swarm/internal/httpd"
	"swarm/internal/provider"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// A team is a team that this process drives, with agents that take no time.
type team struct {
	run  *run.Run
	desk *agentapi.Service // for agents that act in this process
	stop context.CancelCauseFunc
	over chan error
}

// teamPlan makes a team of so many agents of a kind, each of which may message the next.
func teamPlan(kind string, agents int) *swarm.Plan {
	p := &swarm.Plan{
		Kind:        swarm.TeamRun,
		Name:        "bench",
		Providers:   []swarm.ProviderSpec{{Name: "p", Kind: kind}},
		MaxParallel: 16,
		Team:        &swarm.Team{Lead: agentName(0), Mode: swarm.InteractiveMode, Phase: swarm.ImplementationPhase},
	}
	for i := range agents {
		p.Agents = append(p.Agents, swarm.Agent{Name: agentName(i), Provider: "p"})
		p.Edges = append(p.Edges, swarm.Edge{From: agentName(i), To: agentName((i + 1) % agents)})
	}
	return p
}

func agentName(i int) string { return fmt.Sprint("a", i) }

// letterTo makes mail from a person, as it is in a log.
func letterTo(agent, id string) swarm.Event {
	env := swarm.Envelope{
		Kind:       swarm.Handoff,
		ID:         id,
		FromNodeID: swarm.User,
		ToNodeID:   agent,
		CreatedAt:  time.Now().UTC(),
		Payload:    swarm.Payload{Message: "Do nothing, " + id + "."},
	}
	return swarm.Event{
		Kind:  swarm.HandoffStored,
		Key:   swarm.MailKey(env.Ref()),
		To:    swarm.ToAgent(agent),
		Agent: swarm.User,
		Data:  jsonOf(env),
	}
}

// drive begins a run with mail, and drives it until it is stopped.
func (l *lab) drive(p *swarm.Plan, does provider.Provider, mail ...swarm.Event) (*team, error) {
	h, err := statedir.At(l.home(), sqlite.NewStore)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(l.dir, "team") // no other process writes there
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	r, err := run.Start(
		ctx,
		h,
		swarm.RunStart{Kind: swarm.TeamRun, Name: "bench", Dir: folder, Version: "bench", Time: time.Now()},
		p,
		nil,
		mail...)
	if err != nil {
		stop(nil)
		return nil, err
	}
	t := &team{run: r, desk: &agentapi.Service{Run: r.ID, Log: r.Log()}, stop: stop, over: make(chan error, 1)}
	go func() {
		_, err := r.Drive(ctx, run.Options{Engine: local.Run, Serve: httpd.Serve, Provider: does})
		t.over <- err
	}()
	return t, nil
}

// leave stops the run, which could be resumed and never is.
func (t *team) leave() error {
	t.stop(swarm.Errorf(swarm.Stopped, "measured"))
	err := <-t.over
	if swarm.KindOf(err) == swarm.Stopped {
		err = nil
	}
	return errors.Join(err, t.run.Close())
}

// stored returns when the newest envelope to an agent was written, after a number.
func (t *team) stored(agent string, after int64) (at time.Time, seq int64, err error) {
	events, err := t.run.Log().Read(after, 10, swarm.ToAgent(agent))
	if err != nil || len(events) == 0 {
		return at, after, errors.Join(err, errors.New("the envelope is not there"))
	}
	last := events[len(events)-1]
	return last.Time, last.Seq, nil
}

// A receiver is an agent that notes when it gets its prompt.
type receiver struct{ began chan time.Time }

func (r *receiver) Turn(_ context.Context, q provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
	r.began <- time.Now()
	return provider.Reply{Output: []byte("done with " + string(q.Turn)), Free: true}, nil
}

// injected measures the time from when an envelope to an idle agent is in the log until it is in
// the agent's prompt. Another agent in the same process sends it, or `swarm send`. Between the two
// lies another synced write, the beginning of the turn. Before the turn of a program, in a team, a
// snapshot of its files is taken too.
func (l *lab) injected() error {
	send := func(t *team, n int) error {
		return l.person.run(l.command(
			filepath.Join(l.dir, "team"), l.swarm, "send", "@"+to(n), fmt.Sprint("message ", n), "--run", string(t.run.ID)))
	}
	for _, c := range []struct {
		work, kind, reach string
		rounds            int
		most              time.Duration
		send              func(*team, int) error
	}{
		{"accepted → injected, idle model, one process", "openai", "p99 ≤ 5 ms", 1000, 5 * time.Millisecond, sendInside},
		{"accepted → injected, idle model, `swarm send`", "openai", "p99 ≤ 100 ms", 200, 100 * time.Millisecond, send},
		{"accepted → injected, idle program, one process", "command", "p99 ≤ 5 ms", 200, 5 * time.Millisecond, sendInside},
	} {
		took, synced, err := l.deliver(teamPlan(c.kind, correspondents), c.rounds, c.send)
		if err != nil {
			return err
		}
		slices.Sort(took)
		worst := took[len(took)*99/100]
		slices.Sort(synced)
		l.add(row{
			c.work,
			short(p50(took, itself)),
			fmt.Sprintf(
				"%s 2 synced writes, %s p99", short(p50(synced, itself)), short(synced[len(synced)*99/100])),
			short(worst) + " p99",
			c.reach,
			worst <= c.most,
		})
	}
	return nil
}

// correspondents is the number of agents that get messages in turn. Two agents that only message
// each other would count as stuck.
const correspondents = 10

func from(n int) string { return agentName(n % correspondents) }
func to(n int) string   { return agentName((n + 1) % correspondents) }

// sendInside has an agent send to the next, by its tool.
func sendInside(t *team, n int) error {
	handle := t.desk.BeginTurn(from(n), from(n), swarm.NewTurnID(from(n), n+1, 1), 1, swarm.Inputs{})
	defer handle.End()
	_, err := handle.Call(
		context.Background(), "send_handoff",
		jsonOf(map[string]string{"to": to(n), "message": fmt.Sprint("message ", n)}))
	return err
}

// deliver sends to an idle agent, again and again, with two synced writes in between, which are the
// floor.
func (l *lab) deliver(
	p *swarm.Plan,
	rounds int,
	send func(*team, int) error,
) (took, synced []time.Duration, err error) {
	file, err := os.Create(filepath.Join(l.dir, "deliver.raw"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	who := &receiver{make(chan time.Time, 1)}
	t, err := l.drive(p, who)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, t.leave()) }()
	ended, off := t.run.Log().Watch(swarm.ToLoop("root"))
	defer off()
	var after int64 // each envelope comes after the one before
	for n := range rounds {
		start := time.Now()
		for range 2 {
			if err := disk.Write(file, someEvent().Data); err != nil {
				return nil, nil, err
			}
		}
		synced = append(synced, since(start))
		if err := send(t, n); err != nil {
			return nil, nil, err
		}
		began := <-who.began
		var at time.Time
		if at, after, err = t.stored(to(n), after); err != nil {
			return nil, nil, err
		}
		took = append(took, began.Sub(at))
		if err := idle(t, ended, swarm.NewTurnID(to(n), n/correspondents+1, 1)); err != nil {
			return nil, nil, err
		}
	}
	return took, synced, nil
}

// idle waits until a turn has ended.
func idle(t *team, ended <-chan struct{}, turn swarm.TurnID) error {
	for {
		_, ok, err := t.run.Log().Find(swarm.EndKey(string(turn)))
		if err != nil || ok {
			return err
		}
		<-ended
	}
}

// senders measures how many messages 64 agents store a second, against one.
func (l *lab) senders() (err error) {
	log, err := sqlite.Create(filepath.Join(l.dir, "senders.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	const many = 64
	if _, err := log.Append(context.Background(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.PlanAdded, Data: jsonOf(teamPlan("openai", many+1))}}}); err != nil {
		return err
	}
	_, off := log.Watch(swarm.ToControl) // as every turn does
	defer off()
	o := &agentapi.Service{Run: "bench", Log: log}
	round := 0
	rate := func(senders, each int) (time.Duration, error) {
		round++
		var group sync.WaitGroup
		errs := make([]error, senders)
		start := time.Now()
		for i := range senders {
			group.Go(func() {
				handle := o.BeginTurn(
					agentName(i), agentName(i), swarm.NewTurnID(agentName(i), round, 1), 1, swarm.Inputs{})
				defer handle.End()
				for n := range each {
					args := fmt.Appendf(nil, `{"to":"%s","message":"message %d of round %d"}`, agentName(i+1), n, round)
					if _, err := handle.Call(context.Background(), "send_handoff", args); err != nil {
						errs[i] = err
						return
					}
				}
			})
		}
		group.Wait()
		return since(start) / time.Duration(senders*each), errors.Join(errs...)
	}
	got, err := inTurn(7,
		func() (time.Duration, error) { return rate(many, 50) },
		func() (time.Duration, error) { return rate(1, 300) })
	if err != nil {
		return err
	}
	sixtyfour, one := p50(got[0], itself), p50(got[1], itself)
	r := ratio(one, sixtyfour)
	l.add(row{
		"durable send, 64 senders", short(sixtyfour) + " a message", short(one) + " 1 sender",
		times(r) + " the rate", "≥ 4.5×", r >= 4.5})
	return nil
}

// idlers measures the memory of an agent that has had a turn and waits for its next: the difference
// between a team of 10,000 and one of 10.
func (l *lab) idlers() error {
	const few, many = 10, 10_000
	small, err := l.teamMemory(few)
	if err != nil {
		return err
	}
	large, err := l.teamMemory(many)
	if err != nil {
		return err
	}
	each, kilobytes := (large-small)/(many-few), func(n int64) string { return fmt.Sprintf("%.1f KB", float64(n)/1024) }
	l.add(row{
		"memory of an idle agent, 10,000 in a team", kilobytes(each), kilobytes(small) + " a team of 10",
		kilobytes(each), "≤ 16 KB", each <= 16<<10})
	return nil
}

// teamMemory returns the heap and the stacks of a team of so many agents, each of which has had a
// turn.
func (l *lab) teamMemory(agents int) (bytes int64, err error) {
	before := inUse()
	var mail []swarm.Event
	for i := range agents {
		mail = append(mail, letterTo(agentName(i), fmt.Sprint("letter-", i)))
	}
	t, err := l.drive(teamPlan("openai", agents), quick{}, mail...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.leave()) }()
	ended, off := t.run.Log().Watch(swarm.ToLoop("root"))
	defer off()
	for i := range agents {
		if err := idle(t, ended, swarm.NewTurnID(agentName(i), 1, 1)); err != nil {
			return 0, err
		}
	}
	return inUse() - before, nil
}

// inUse returns the heap and the stacks of this process after garbage collection.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// quick is an agent that ends its turn at once.
type quick struct{}

func (quick) Turn(_ context.Context, q provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
	return provider.Reply{Output: []byte("done with " + string(q.Turn)), Free: true}, nil
}

// stream takes its figures from the benchmark of Server-Sent Events, which measures its floor
// itself.
func (l *lab) stream() error {
	got, err := benchmark("./internal/api", "^BenchmarkStream$", "50x")
	if err != nil {
		return err
	}
	figures := got["Stream"]
	if figures["ms/bare"] == 0 {
		return errors.New("there is no figure of a bare server")
	}
	ms := func(unit string) time.Duration { return time.Duration(figures[unit] * float64(time.Millisecond)) }
	r := figures["own/bare"]
	l.add(row{
		"event to the last of 1,000 SSE clients", short(ms("ms/own")), short(ms("ms/bare")) + " bare Go server",
		times(r), "≤ 2×", r <= 2})
	return nil
}
