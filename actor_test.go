package swarm_test

import (
	"testing"

	"swarm"
)

func TestAnActorIsReadAndNamed(t *testing.T) {
	for data, want := range map[string]string{
		`{"id":"q","ok":true}`:                                                            "",
		`{"id":"q","ok":true,"by":"swarm approve"}`:                                       "swarm approve", // of an earlier version
		`{"id":"q","ok":true,"by":"a key on the board"}`:                                  "a key on the board",
		`{"id":"q","by":"person","how":"http"}`:                                           "a person (http)",
		`{"id":"q","by":"person","how":"repl","user":"ada"}`:                              "ada (repl)",
		`{"id":"q","by":"agent","how":"terminal"}`:                                        "an agent (terminal)",
		`{"id":"q","by":"agent","how":"terminal","agent":{"run":"r1"}}`:                   "an agent of run r1 (terminal)",
		`{"id":"q","by":"agent","how":"terminal","agent":{"run":"r1","turn":"boss/1/1"}}`: "the agent of turn boss/1/1 in run r1 (terminal)",
	} {
		e := swarm.Event{Data: []byte(data)}
		answer, err := swarm.Body[swarm.ApprovalAnswer](&e)
		command, err2 := swarm.Body[swarm.ControlCommand](&e)
		if err != nil || err2 != nil || answer.Actor.String() != want || command.Actor.String() != want {
			t.Errorf("%s is by %q and %q, %v, %v", data, answer.Actor, command.Actor, err, err2)
		}
	}
}
