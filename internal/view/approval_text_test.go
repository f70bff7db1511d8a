package view

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"swarm"
)

func TestWish(t *testing.T) {
	for _, c := range []struct{ what, tool, input, want string }{
		{"use Bash", "Bash", `{"command":"touch made1.txt"}`, "run touch made1.txt"},
		{"use Bash", "Bash", `{"description":"Make a file", "command":"touch made1.txt"}`, "run touch made1.txt (Make a file)"},
		{"use Write", "Write", `{"file_path":"a.go","content":"package a\n\nvar x = 1"}`, `write a.go content=package a\n\nvar x = 1`},
		{"use shell", "shell", `{"command":["sh","-c","rm -r x"]}`, `use shell ["sh","-c","rm -r x"]`},
		{"use Bash", "Bash", `{"command":"echo ok\u001b[2J\u202e\r\nrm -r x"}`, `run echo ok\x1b[2J\u202e\r\nrm -r x`},
		{"use \x1b[2J", "x", ``, `use \x1b[2J`},
		{"", "Bash", `null`, "use Bash"},
		{"run make", "", `{}`, "run make"},
		{"use x", "x", `"{\"command\":\"cut off"`, `use x {"command":"cut off`},
		{"use x", "x", `{"broken`, `use x {"broken`},
		{"use Bash", "Bash", `{"command":"touch a` + strings.Repeat(" ", 5000) + `; rm -r x"}`, "run touch a" + strings.Repeat(" ", 659) + "…" + strings.Repeat(" ", 324) + "; rm -r x"},
	} {
		if got := DescribeApproval(swarm.Approval{What: c.what, Tool: c.tool, Input: json.RawMessage(c.input)}); got != c.want {
			t.Errorf("%q %s:\n%q, want\n%q", c.what, c.input, got, c.want)
		}
	}
}

// A request for a new agent shows its instructions, too.
func TestWishOfTheRun(t *testing.T) {
	a := swarm.Approval{What: "bring in @helper (provider sh)", Growth: &swarm.GrowthRequest{Spawn: &swarm.SpawnRequest{Name: "helper", Instructions: "read\nit\u202e " + strings.Repeat("x", 2000) + " and rm -r x"}}}
	if got := DescribeApproval(a); !strings.HasPrefix(got, `bring in @helper (provider sh): read\nit\u202e xxx`) || !strings.HasSuffix(got, "x and rm -r x") || utf8.RuneCountInString(got) != maxDescription {
		t.Error(got)
	}
	if got := DescribeApproval(swarm.Approval{What: "let a write to b", Growth: &swarm.GrowthRequest{Edge: &swarm.EdgeRequest{From: "a", To: "b"}}}); got != "let a write to b" {
		t.Error(got)
	}
}

// A growth request outlives its turn and blocks no agent. It is open until it is answered or the
// run ends.
func TestWishesBlockNobody(t *testing.T) {
	r, seq := New("r"), int64(0)
	fold := func(e swarm.Event, body any) Picture {
		t.Helper()
		seq++
		e.Seq = seq
		e.Data, _ = json.Marshal(body)
		if err := r.Apply(&e); err != nil {
			t.Fatal(err)
		}
		return r.Picture()
	}
	turn := swarm.Event{Agent: "a", Task: "a", Turn: "a/1/1"}
	about := func(kind swarm.EventKind) swarm.Event { e := turn; e.Kind = kind; return e }
	fold(swarm.Event{Kind: swarm.RunStarted}, swarm.RunStart{Kind: swarm.TeamRun})
	fold(swarm.Event{Kind: swarm.PlanAdded}, swarm.Plan{Kind: swarm.TeamRun, Team: &swarm.Team{}, Agents: []swarm.Agent{{Name: "a"}}})
	fold(about(swarm.TurnStarted), swarm.TurnStart{Start: 1})
	wish := swarm.Approval{ID: "a/1/1/w", What: "bring in @b", Growth: &swarm.GrowthRequest{Spawn: &swarm.SpawnRequest{Name: "b"}}}
	if p := fold(about(swarm.ApprovalAsked), wish); len(p.Approvals) != 1 || p.Agents[0].Status != swarm.Running || len(p.Tasks[0].Waits) != 0 {
		t.Errorf("%+v", p)
	}
	if p := fold(about(swarm.ApprovalAsked), swarm.Approval{ID: "a/1/1/t", What: "use Bash"}); len(p.Approvals) != 2 || p.Agents[0].Status != swarm.Blocked {
		t.Errorf("%+v", p)
	}
	if p := fold(about(swarm.TurnEnded), swarm.CallEnd{Status: swarm.CallOK}); len(p.Approvals) != 1 || p.Approvals[0].Growth == nil || p.Agents[0].Status != swarm.Waiting ||
		Waiting(p.Agents[0].Waits) != "a person: may it bring in @b? swarm approve a/1/1/w" || !strings.HasPrefix(p.Reason, "the run waits for a person: @a asks, may it bring in @b") {
		t.Errorf("%+v", p)
	}
	if chain, err := r.Why("@b"); err != nil || chain[0].Reason != "@a asks for it, and nobody has answered: swarm approve a/1/1/w" {
		t.Errorf("%+v %v", chain, err)
	}
	stored, err := Unmarshal(r.Marshal())
	if err != nil || len(stored.Picture().Approvals) != 1 || stored.Picture().Approvals[0].Growth.Spawn.Name != "b" {
		t.Error(err)
	}
	p := fold(swarm.Event{Kind: swarm.PlanAdded}, swarm.Plan{Kind: swarm.TeamRun, Team: &swarm.Team{}, Agents: []swarm.Agent{{Name: "b", Provider: "sh"}}})
	if len(p.Tasks) != 2 || p.Tasks[1].Name != "b" || p.Agents[1].Status != swarm.Idle || p.Tasks[1].Provider != "sh" {
		t.Errorf("%+v", p)
	}
	if p := fold(about(swarm.ApprovalAnswered), swarm.ApprovalAnswer{ID: "a/1/1/w", OK: true}); len(p.Approvals) != 0 {
		t.Errorf("%+v", p.Approvals)
	}
	fold(about(swarm.ApprovalAsked), wish)
	if p := fold(swarm.Event{Kind: swarm.RunEnded}, swarm.RunEnd{Status: swarm.Completed}); len(p.Approvals) != 0 {
		t.Errorf("%+v", p.Approvals)
	}
}

// Every approval is described in one short, printable line.
func FuzzDescribeApproval(f *testing.F) {
	f.Add("use Bash", `{"command":"ls","x":1}`)
	f.Add("\x00", `{"a":{"b":[1,"\u202e"]}}`)
	f.Fuzz(func(t *testing.T, what, input string) {
		got := DescribeApproval(swarm.Approval{What: what, Input: json.RawMessage(input)})
		if utf8.RuneCountInString(got) > maxDescription {
			t.Errorf("%d characters", len(got))
		}
		for _, r := range got {
			if r < ' ' || r != utf8.RuneError && !unicode.IsPrint(r) {
				t.Errorf("%q has %q in it", got, r)
			}
		}
	})
}
