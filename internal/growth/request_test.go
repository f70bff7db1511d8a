package growth

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/mail"
)

var plan = swarm.Plan{Kind: swarm.TeamRun, Team: &swarm.Team{Lead: "planner", MaxAgents: 5}, Approvals: swarm.Approvals{Tools: "auto"}, Budget: swarm.Budget{Calls: 9},
	Providers: []swarm.ProviderSpec{{Name: "sh", Kind: "command", Command: []string{"sh"}}, {Name: "local", Kind: "openai"}},
	Servers:   []swarm.ToolServer{{Name: "search"}},
	Edges:     []swarm.Edge{{From: "planner", To: "coder", Both: true}, {From: "coder", To: "tester"}},
	Agents: []swarm.Agent{
		{Name: "planner", Provider: "local", Model: "m", Tools: []string{"file_read"}, Root: "/work", Permissions: swarm.Permissions{Spawn: true}},
		{Name: "coder", Provider: "sh", Role: "r1", RoleName: "craft", Tools: []string{"a"}, Root: "/work/src", Env: map[string]string{"K": "V"}, Permissions: swarm.Permissions{Orchestrate: true}},
		{Name: "tester", Provider: "sh", Role: "r2"},
	}}

func team() (*Team, *mail.Rules) {
	t := NewTeam()
	t.Add(&plan)
	return t, mail.NewRules(&plan)
}

func asks(t *testing.T, tool, args string) swarm.GrowthRequest {
	t.Helper()
	read := ReadSpawn
	if tool == "create_edge" {
		read = ReadEdge
	}
	w, err := read([]byte(args))
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return Clean(w, nil)
}

func TestReading(t *testing.T) {
	w := asks(t, "spawn_node", `{"name":" @Helper","instructions":" do it ","role":" craft ","edges":["Coder","@coder","tester"],"provider":null}`)
	if want := (swarm.SpawnRequest{Name: "helper", Role: "craft", Instructions: "do it", Edges: []string{"coder", "tester"}}); !reflect.DeepEqual(*w.Spawn, want) {
		t.Errorf("%+v", *w.Spawn)
	}
	if w := asks(t, "create_edge", `{"from":"A","to":"@B","bidirectional":true}`); *w.Edge != (swarm.EdgeRequest{From: "a", To: "b", Bidirectional: true}) {
		t.Errorf("%+v", *w.Edge)
	}
	for args, want := range map[string]string{
		`{"name":"x"}`:                                             `the argument "instructions" is missing`,
		`{"name":"x","instructions":" "}`:                          "the instructions are empty",
		`{"name":"x","instructions":"` + long(8193) + `"}`:         "the instructions have 8193 bytes; 8192 are allowed",
		`{"name":"x","name":"y","instructions":"z"}`:               `the key "name" stands there twice`,
		`{"name":"x","instructions":"z","permissions":{}}`:         `there is no argument "permissions"`,
		`{"name":"x","instructions":"z"} {}`:                       "not JSON",
		`{"name":1,"instructions":"z"}`:                            `the argument "name" must be a string`,
		`{"name":"x","instructions":"z","edges":"coder"}`:          `the argument "edges" must be a list of strings`,
		`{"name":"x","instructions":"z","edges":[` + many() + `]}`: "there are 101 edges; 100 are allowed",
	} {
		if _, err := ReadSpawn([]byte(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", args, err, want)
		}
	}
	for _, text := range []string{`{"name":"x","instructions":"z"}`, `{"spawn":{"name":"x","instructions":"z"}}`} { // as it is asked, and as it is printed
		if got, err := ReadEdit(w, []byte(text)); err != nil || got.Spawn == nil || got.Spawn.Name != "x" || got.Spawn.Instructions != "z" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " \n", "null", "[]", `{"spawn":null}`, `{"edge":{"from":"a","to":"b"}}`, `{"spawn":{"name":"x","instructions":"z","more":1}}`} {
		if _, err := ReadEdit(w, []byte(text)); err == nil {
			t.Errorf("%q is an edit", text)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }
func many() string      { return strings.TrimSuffix(strings.Repeat(`"a",`, 101), ",") }

// Which agent may request what.
func TestRules(t *testing.T) {
	for _, c := range []struct{ agent, tool, args, want string }{
		{"planner", "spawn_node", `{"name":"helper","instructions":"x"}`, ""},
		{"planner", "spawn_node", `{"name":"helper","instructions":"x","provider":"sh","role":"tester","edges":["coder","planner"]}`, ""},
		{"planner", "create_edge", `{"from":"tester","to":"coder"}`, ""},
		{"planner", "create_edge", `{"from":"coder","to":"tester","bidirectional":true}`, ""},
		{"coder", "create_edge", `{"from":"planner","to":"tester"}`, ""},

		{"coder", "spawn_node", `{"name":"helper","instructions":"x"}`, "coder may not use spawn_node: it lacks the permission (a person can give it in swarm.yaml, with agents: {coder: {permissions: {spawn: true}}}"},
		{"tester", "create_edge", `{"from":"tester","to":"coder"}`, "tester may not use create_edge: it lacks the permission (a person can give it in swarm.yaml, with agents: {tester: {permissions: {spawn: true}}} or {orchestrate: true}"},
		{"planner", "spawn_node", `{"name":"Coder","instructions":"x"}`, `the name "coder" is taken by another agent of this run (choose another name, such as coder-2`},
		{"planner", "spawn_node", `{"name":"user","instructions":"x"}`, `the name "user" is reserved`},
		{"planner", "spawn_node", `{"name":"orchestrator","instructions":"x"}`, `the name "orchestrator" is reserved`},
		{"planner", "spawn_node", `{"name":"a b","instructions":"x"}`, `"a b" is not a name for an agent`},
		{"planner", "spawn_node", `{"name":"../x","instructions":"x"}`, `is not a name for an agent`},
		{"planner", "spawn_node", `{"name":"wanted","instructions":"x"}`, `the name "wanted" is taken: coder has asked for an agent of that name`},
		{"planner", "spawn_node", `{"name":"helper","instructions":"x","provider":"locla"}`, `no agent of this run uses a provider "locla" (did you mean "local"?`},
		{"planner", "spawn_node", `{"name":"helper","instructions":"x","role":"crafd"}`, `no agent of this run has the role "crafd" (did you mean "craft"?`},
		{"planner", "spawn_node", `{"name":"helper","instructions":"x","edges":["nobody"]}`, "Unknown agent: 'nobody'"},
		{"planner", "spawn_node", `{"name":"helper","instructions":"x","edges":["user"]}`, "Unknown agent: 'user'"},
		{"planner", "create_edge", `{"from":"coder","to":"tester"}`, "coder may write to tester already"},
		{"planner", "create_edge", `{"from":"coder","to":"coder"}`, "an edge joins two agents"},
		{"planner", "create_edge", `{"from":"user","to":"coder"}`, "Unknown agent: 'user'"},
	} {
		team, rules := team()
		team.Ask("coder/1/1/x", "coder", swarm.GrowthRequest{Spawn: &swarm.SpawnRequest{Name: "wanted"}})
		w := team.Fill(c.agent, asks(t, c.tool, c.args))
		err := team.May(c.agent, Tool(w))
		if err == nil {
			err = team.Check("planner/1/1/y", c.agent, w, rules)
		}
		got := ""
		var e *swarm.Error
		if errors.As(err, &e) {
			got = e.Error() + " (" + e.Hint
		}
		if !strings.Contains(got, c.want) || (c.want == "") != (err == nil) {
			t.Errorf("%s %s %s: %v, want %s", c.agent, c.tool, c.args, got, c.want)
		}
	}
}

func TestRoom(t *testing.T) {
	team, rules := team()
	w := team.Fill("planner", asks(t, "spawn_node", `{"name":"helper","instructions":"x"}`))
	check := func(want string) {
		t.Helper()
		err := team.Check("id", "planner", w, rules)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check("")
	team.Add(&swarm.Plan{Agents: []swarm.Agent{{Name: "d"}, {Name: "e"}}})
	check("the team is full: it has 5 agents, and may have 5")
	team.End("d")
	check("")
	team.Start("d")
	check("the team is full")
	team.End("d")
	for i := range maxOpen {
		team.Ask(fmt.Sprint("id", i), "planner", swarm.GrowthRequest{Edge: &swarm.EdgeRequest{}})
	}
	check("planner has 10 requests that nobody has answered")
	team.Answer("id3")
	check("")
	team.Ask("id", "planner", w) // it is not held against itself
	check("")
	bare := NewTeam()
	bare.Add(&swarm.Plan{Kind: swarm.TeamRun, Team: &swarm.Team{}, Agents: make([]swarm.Agent, 10)})
	if err := bare.Check("id", "", w, rules); err == nil {
		t.Error("a team that does not say how many it may have has no end")
	}
}

// A new agent inherits what an agent of its kind has, but no permissions.
func TestGrown(t *testing.T) {
	for _, c := range []struct {
		args string
		want swarm.Agent
	}{
		{`{"name":"h","instructions":"x"}`, swarm.Agent{Name: "h", Provider: "local", Model: "m", Tools: []string{"file_read"}, Root: "/work"}},
		{`{"name":"h","instructions":"x","role":"craft","provider":"sh"}`, swarm.Agent{Name: "h", Provider: "sh", Role: "r1", RoleName: "craft", Tools: []string{"a"}, Root: "/work/src", Env: map[string]string{"K": "V"}}},
		{`{"name":"h","instructions":"x","role":"craft"}`, swarm.Agent{Name: "h", Provider: "local", Role: "r1", RoleName: "craft", Model: "m", Tools: []string{"file_read"}, Root: "/work"}},
		{`{"name":"h","instructions":"x","provider":"sh"}`, swarm.Agent{Name: "h", Provider: "sh", Root: "/work"}},
		{`{"name":"h","instructions":"x","provider":"sh","role":"tester"}`, swarm.Agent{Name: "h", Provider: "sh", Role: "r2", RoleName: "tester", Root: "/work"}},
	} {
		team, _ := team()
		p := team.Grown("planner", team.Fill("planner", asks(t, "spawn_node", c.args)))
		if !reflect.DeepEqual(p.Agents, []swarm.Agent{c.want}) {
			t.Errorf("%s: %+v", c.args, p.Agents)
		}
		if p.Team != plan.Team || p.Budget != plan.Budget || p.Approvals != plan.Approvals || len(p.Servers) != 1 || len(p.Providers) != 1 || p.Providers[0].Name != c.want.Provider ||
			!slices.Equal(p.Edges, []swarm.Edge{{From: "planner", To: "h", Both: true}}) || len(p.Tasks)+len(p.Groups) != 0 {
			t.Errorf("%s: %+v", c.args, p)
		}
	}
	team, _ := team()
	p := team.Grown("planner", asks(t, "create_edge", `{"from":"tester","to":"coder"}`))
	if len(p.Agents)+len(p.Tasks)+len(p.Groups) > 0 || !slices.Equal(p.Edges, []swarm.Edge{{From: "tester", To: "coder"}}) {
		t.Errorf("%+v", p)
	}
}

// FuzzRequest reads arbitrary bytes. An accepted request survives a round trip through Text.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{"name":"helper","instructions":"x","edges":["coder"],"role":"craft","provider":"sh"}`, `{"from":"a","to":"b","bidirectional":true}`, `{}`, `null`,
		`{"name":"` + "\u202e" + `","instructions":"` + `\ud800` + `"}`} {
		f.Add([]byte(seed))
	}
	team, rules := team()
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) (swarm.GrowthRequest, error){ReadSpawn, ReadEdge} {
			w, err := read(text)
			if err != nil {
				continue
			}
			w = Clean(w, nil)
			again, err := ReadEdit(w, Text(w))
			if err != nil || !reflect.DeepEqual(Clean(again, nil), w) {
				t.Fatalf("%s is read as %s, and that as %+v, %v", text, Text(w), again, err)
			}
			if filled := team.Fill("planner", w); !reflect.DeepEqual(team.Fill("planner", filled), filled) {
				t.Fatalf("%+v, filled twice, is another", w)
			} else if team.Check("id", "planner", filled, rules) == nil {
				if _, err := json.Marshal(team.Grown("planner", filled)); err != nil || filled.Spawn != nil && swarm.CheckAgentName(filled.Spawn.Name) != nil {
					t.Fatalf("%+v may be had: %v", filled, err)
				}
			}
		}
	})
}

// An agent without its own folder works in the run's folder, not everywhere. So a new agent gets
// neither another folder, nor the tools of an agent that has one.
func TestANewAgentWorksInNoFolderThatIsClosedToWhoAsks(t *testing.T) {
	for _, c := range []struct{ asker, like, want string }{
		{"", "/elsewhere", "file_read in "},
		{"", "/run/src", "file_write in /run/src"},
		{"", "", "file_write in "},
		{"/run/src", "", "file_read in /run/src"},
		{"/run/src", "/run/srcs", "file_read in /run/src"},
		{"/run/src", "/run/src/deep", "file_write in /run/src/deep"},
	} {
		team := NewTeam()
		team.Work("/run")
		team.Add(&swarm.Plan{Kind: swarm.TeamRun, Providers: []swarm.ProviderSpec{{Name: "local"}}, Agents: []swarm.Agent{
			{Name: "planner", Provider: "local", Root: c.asker, Tools: []string{"file_read"}}, {Name: "coder", Provider: "local", Role: "r1", Root: c.like, Tools: []string{"file_write"}}}})
		w := team.Fill("planner", asks(t, "spawn_node", `{"name":"h","instructions":"x","role":"coder","edges":["coder"]}`))
		a := team.Grown("planner", w).Agents[0]
		if got := strings.Join(a.Tools, " ") + " in " + a.Root; got != c.want {
			t.Errorf("asked for by one in %q, like one in %q: %s, want %s", c.asker, c.like, got, c.want)
		}
		root := ""
		if a.Root != "" {
			root = ", root " + a.Root
		}
		if got, want := team.Gets("planner", *w.Spawn), "provider local, role coder"+root+", tools "+a.Tools[0]+", joined with coder"; got != want {
			t.Errorf("a person is asked for %s, want %s", got, want)
		}
	}
}
