package agentapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/contextpack"
	"swarm/internal/mail"
)

func packArgs(name, content string) string {
	return string(swarm.Encode(map[string]string{"kind": "contextpack", "name": name, "content": content}))
}

func TestAPackIsFilledIn(t *testing.T) {
	log, again := opened(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &Service{Run: "r1", Log: log, Now: func() time.Time { return now }}
	planner := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	first := call[putResult](t, planner, "put_artifact", packArgs("a", `{"goal":"Ship it","constraints":{"deps":false}}`))
	p, err := s.Pack(first.Ref)
	if err != nil || p.RunID != "r1" || p.NodeID != "planner" || !p.CreatedAt.Equal(now) || p.GlobalMode != swarm.ImplementationPhase || p.NodeMode != swarm.AutoMode || p.Ref() != first.Ref {
		t.Fatalf("%s, %v", p.JSON(), err)
	}
	if first.Tokens != p.Tokens() || first.LeftOut != nil {
		t.Errorf("%+v", first)
	}

	// Stored again, later and by another process, it is the same pack. Stored by another agent, it
	// is another.
	later := &Service{Run: "r1", Log: again(), Now: func() time.Time { return now.Add(time.Hour) }}
	same := later.BeginTurn("planner", "planner", "planner/2/1", 1, swarm.Inputs{})
	if repeated := call[putResult](t, same, "put_artifact", packArgs("b", `{"constraints":{"deps":false},"goal":"Ship it","nodeId":"planner","runId":"r1"}`)); repeated.Ref != first.Ref {
		t.Errorf("%+v", repeated)
	}
	coder := s.BeginTurn("coder", "coder", "coder/1/1", 1, swarm.Inputs{})
	if repeated := call[putResult](t, coder, "put_artifact", packArgs("a", `{"goal":"Ship it","constraints":{"deps":false}}`)); repeated.Ref == first.Ref {
		t.Error("whoever says it, it is the same pack")
	}
	if n := count(t, log, swarm.ArtifactStored); n != 2 {
		t.Errorf("%d packs are stored", n)
	}

	// The packs that it extends come before it, and the stored pack is complete.
	more := call[putResult](t, coder, "put_artifact", packArgs("c", `{"packId":"mine","extends":["`+first.Ref+`"],"goal":"Test it","constraints":{"deps":true}}`))
	if more.Ref != "contextpack://pack/mine" || !slices.Equal(more.LeftOut, []swarm.LeftOut{{Part: "constraints", Name: "deps", How: contextpack.Replaced}}) {
		t.Errorf("%+v", more)
	}
	if p, err = s.Pack(more.Ref); err != nil || p.Goal != "Ship it\n\nTest it" || string(p.Constraints[0].Value) != "true" || p.NodeID != "coder" {
		t.Errorf("%s, %v", p.JSON(), err)
	}
	text, err := log.Body(swarm.HashOf(p.JSON()))
	if err != nil || strings.Contains(string(text), "extends") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAPackIsRefused(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	h := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	call[putResult](t, h, "put_artifact", packArgs("mine", `{"packId":"mine","goal":"x"}`))
	report := call[putResult](t, h, "put_artifact", `{"kind":"report","name":"r","content":"r"}`).Ref
	before := count(t, log, swarm.ArtifactStored)
	for content, want := range map[string]string{
		`x`:                                                                 "the context pack is not JSON",
		`{"goal":"x","runId":"r2"}`:                                         `runId is r1, and not "r2"`,
		`{"goal":"x","nodeId":"user"}`:                                      `nodeId is planner, and not "user"`,
		`{"goal":"x","globalMode":"PLANNING"}`:                              `globalMode is IMPLEMENTATION, and not "PLANNING"`,
		`{"goal":"y","packId":"mine"}`:                                      `packId "mine": the same id was used for something else`,
		`{"goal":"x","packId":"p-00000000000000000000"}`:                    "is not yours to give",
		`{"goal":"x","extends":["contextpack://pack/nosuch"]}`:              `there is no context pack "contextpack://pack/nosuch" in this run`,
		`{"goal":"x","extends":["` + report + `"]}`:                         "there is no context pack",
		`{"goal":"x","artifacts":[{"id":"nosuch","kind":"log"}]}`:           `there is no artifact "artifact://log/nosuch" in this run`,
		`{"goal":"` + strings.Repeat("x", 30_000) + `"}`:                    "goal, definition of done and constraints have about 7511 tokens; a context pack has room for 5650",
		`{"goal":"x","docRefs":[{"path":"a","excerpt":"e"}],"docRefs":[1]}`: `the key "docRefs" stands there twice`,
	} {
		_, err := h.Call(t.Context(), "put_artifact", json.RawMessage(packArgs("n", content)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", content, err)
		}
	}
	for _, ref := range []string{"contextpack://pack/nosuch", report} {
		if _, err := h.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"coder","message":"m","contextRef":"`+ref+`"}`)); err == nil {
			t.Errorf("%s was sent", ref)
		}
		if _, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: "m", ContextRef: ref}); err == nil {
			t.Errorf("%s was sent by a person", ref)
		}
	}
	whole := swarm.Envelope{Kind: swarm.Handoff, ID: "e", FromNodeID: swarm.User, ToNodeID: "coder", CreatedAt: time.Now().UTC(), Payload: swarm.Payload{Message: "m"}, ContextRef: "contextpack://pack/nosuch"}
	if _, err := s.SendEnvelope(t.Context(), whole, false); err == nil {
		t.Error("it was posted")
	}
	if n := count(t, log, swarm.ArtifactStored); n != before || count(t, log, swarm.HandoffStored) != 0 {
		t.Errorf("%d artifacts are stored, %d messages sent", n-before, count(t, log, swarm.HandoffStored))
	}
	call[SendResult](t, h, "send_handoff", `{"to":"coder","message":"m","contextRef":"contextpack://pack/mine"}`)
}

// Parts that do not fit are left out. The log has the whole list, the agent's answer a part of it.
func TestAFullPackSaysWhatItLeftOut(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	h := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	p := contextpack.Pack{Goal: "x"}
	for i := range 100 {
		p.DocRefs = append(p.DocRefs, contextpack.Doc{Path: fmt.Sprintf("docs/%d.md", i), Excerpt: strings.Repeat("a word of it ", 100)})
	}
	got := call[putResult](t, h, "put_artifact", packArgs("big", string(p.JSON())))
	if got.Tokens > contextpack.MaxTokens || got.Tokens < contextpack.MaxTokens*3/4 || len(got.LeftOut) != shownLeft || got.More != 100-shownLeft {
		t.Errorf("%+v", got)
	}
	events := all(t, log)
	if it, err := swarm.Body[swarm.Artifact](&events[len(events)-1]); err != nil || len(it.LeftOut) != 100 || it.Tokens != got.Tokens || it.LeftOut[99].How != contextpack.Shortened {
		t.Errorf("%v %+v", err, it)
	}
}

func TestAPackHoldsNoSecret(t *testing.T) {
	log, _ := opened(t)
	redact := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), `can"ary`, "[secret K]")) }
	s := &Service{Run: "r1", Log: log, Redact: redact}
	h := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	ref := call[putResult](t, h, "put_artifact", packArgs(`n`, `{"goal":"use can\"ary","definitionOfDone":["can\"ary"],"docRefs":[{"path":"can\"ary","excerpt":"can\"ary"}],
		"repoFacts":{"a":"x"},"relevantFiles":[{"path":"can\"ary","summary":"can\"ary"}],"inputs":[{"payloadId":"can\"ary"}]}`)).Ref
	p, err := s.Pack(ref)
	if text := string(p.JSON()); err != nil || strings.Contains(text, `can\"`) || strings.Count(text, "[secret K]") != 7 {
		t.Error(text, err)
	}
}

// A pack that an older version stored and that cannot be read is only named. The turn does not
// fail.
func TestAPackThatCannotBeReadIsOnlyReferredTo(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	it := swarm.Artifact{Ref: "contextpack://pack/old", Kind: contextPack, Name: "old", Hash: swarm.HashOf([]byte("no pack")), Bytes: 7}
	if _, err := log.Append(t.Context(), swarm.Batch{Bodies: [][]byte{[]byte("no pack")}, Events: []swarm.Event{{Kind: swarm.ArtifactStored, Key: ArtifactKey(it.Ref), Data: swarm.Encode(it)}}}); err != nil {
		t.Fatal(err)
	}
	given, err := s.Given([]string{"contextpack://pack/old", "contextpack://pack/never"})
	if err != nil || len(given) != 2 || !given[0].Lost || !given[1].Lost {
		t.Errorf("%+v, %v", given, err)
	}
}
