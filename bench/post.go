package main

import (
	"context"
	"fmt"
	"time"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// post measures a whole `swarm send` to a run whose agents have much mail, against one with little.
// The first call of each is not counted: it reads the log, and stores the result for the others.
func (l *lab) post() error {
	send := func(envelopes int) (func() (cost, error), error) {
		id, err := l.manyLetters(envelopes)
		if err != nil {
			return nil, err
		}
		once := func() (cost, error) {
			return l.measure(l.dir, l.swarm, "send", "@"+agentName(1), "one more", "--run", string(id))
		}
		_, err = once()
		return once, err
	}
	few, err := send(1000)
	if err != nil {
		return err
	}
	many, err := send(100_000)
	if err != nil {
		return err
	}
	got, err := inTurn(31, many, few)
	if err != nil {
		return err
	}
	ours, floor := p50(got[0], wall), p50(got[1], wall)
	r := ratio(ours, floor)
	l.add(row{
		"`swarm send` to a run with 100,000 envelopes", short(ours), short(floor) + " with 1,000", times(r),
		"≤ 1.5×", r <= 1.5})
	return nil
}

// manyLetters makes a run without an owner, in which so many envelopes wait.
func (l *lab) manyLetters(n int) (id swarm.RunID, err error) {
	h, err := statedir.At(l.home(), sqlite.NewStore)
	if err != nil {
		return "", err
	}
	var mail []swarm.Event
	for i := range n {
		mail = append(mail, letterTo(agentName(i%correspondents), fmt.Sprint("letter-", i)))
	}
	r, err := run.Start(
		context.Background(),
		h,
		swarm.RunStart{Kind: swarm.TeamRun, Name: "post", Dir: l.dir, Version: "bench", Time: time.Now()},
		teamPlan("openai", correspondents),
		nil,
		mail...)
	if err != nil {
		return "", err
	}
	return r.ID, r.Close()
}
