package compose

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/contextpack"
	"swarm/internal/providerkind"
	"swarm/internal/secret"
)

// Settings are what a file says beside its plan.
type Settings struct {
	Provider     string             `json:"provider,omitempty"` // of agents that name none
	DefaultAgent string             `json:"default_agent,omitempty"`
	Store        string             `json:"store,omitempty"` // the address of the database of runs, without a password
	Engine       string             `json:"engine,omitempty"`
	MaxParallel  int                `json:"max_parallel"`
	WaitTimeout  time.Duration      `json:"wait_timeout"`
	ReplyTimeout time.Duration      `json:"reply_timeout"`
	Approvals    swarm.Approvals    `json:"approvals"`
	Notify       Notify             `json:"notify,omitzero"`
	Team         TeamRules          `json:"team,omitzero"`
	Swarm        SwarmLimits        `json:"swarm"`
	MCP          []swarm.ToolServer `json:"mcp,omitempty"` // in the file's order
	Pipelines    []string           `json:"-"`             // names, in the file's order
	Providers    []string           `json:"-"`             // names of those that the file declares, in its order
}

// Notify says how a person is notified.
type Notify struct {
	Command []string `json:"command,omitempty"`
	Bell    bool     `json:"bell,omitempty"`
	Webhook string   `json:"webhook,omitempty"`
	Slack   string   `json:"slack,omitempty"`
	Ntfy    string   `json:"ntfy,omitempty"`
	Desktop bool     `json:"desktop,omitempty"`
}

// spec returns the provider that notifies a person; nil = none. Of several ways the first counts.
func (n Notify) spec() *swarm.ProviderSpec {
	spec := &swarm.ProviderSpec{Name: providerkind.Notify, Kind: providerkind.Notify}
	switch {
	case len(n.Command) > 0:
		spec.Command = n.Command
	case n.Webhook != "":
		spec.BaseURL = n.Webhook
	case n.Slack != "":
		spec.BaseURL, spec.API = n.Slack, "slack"
	case n.Ntfy != "":
		spec.BaseURL, spec.API = n.Ntfy, "ntfy"
	case n.Desktop:
		spec.API = "desktop"
	case !n.Bell:
		return nil
	}
	return spec
}

// TeamRules are how a team works, and the rules for all its goals. The context pack contains them.
type TeamRules struct {
	Done        []string          `json:"done,omitempty"`
	Constraints contextpack.Notes `json:"constraints,omitempty"` // in the file's order

	Expect    *swarm.Expect `json:"expect,omitempty"`     // what the run checks before a team is completed
	MaxChecks int           `json:"max_checks,omitempty"` // how often that may fail; 0 = the default

	Retries *int          `json:"retries,omitempty"`  // of a failed turn; nil = the default
	OnStall swarm.OnStall `json:"on_stall,omitempty"` // "" = depends on whether a person is there
}

// SwarmLimits limit swarm mode.
type SwarmLimits struct {
	MaxAgents             int           `json:"max_agents"`
	MaxIterationsPerAgent int           `json:"max_iterations_per_agent"`
	AgentTimeout          time.Duration `json:"agent_timeout"`
	MaxMessagesPerAgent   int           `json:"max_messages_per_agent"`
	WorkspaceSnippetChars int           `json:"workspace_snippet_chars"`
	WorkspaceMaxEntries   int           `json:"workspace_max_entries"`
	Workspace             string        `json:"workspace,omitempty"` // absolute; "" = one in the state folder
	Replan                bool          `json:"replan"`

	Strategy swarm.Strategy `json:"strategy"`
}

// Defaults returns the settings of an empty file.
func Defaults() Settings {
	return Settings{
		MaxParallel:  16,
		WaitTimeout:  5 * time.Minute,
		ReplyTimeout: 10 * time.Minute,
		Approvals:    swarm.Approvals{Spawn: "ask", Tools: "ask"},
		Swarm: SwarmLimits{
			MaxAgents:             10,
			MaxIterationsPerAgent: 25,
			AgentTimeout:          10 * time.Minute,
			MaxMessagesPerAgent:   20,
			WorkspaceSnippetChars: swarm.DefaultTopics.Chars,
			WorkspaceMaxEntries:   swarm.DefaultTopics.Entries,
			Replan:                true,
			Strategy:              swarm.TeamStrategy,
		},
	}
}

// settings returns the defaults, overridden by the file and the command line.
func (c *compiler) settings() Settings {
	s, f := Defaults(), &c.file
	count := func(to *int, i integer) { set(to, i.at, int(i.value)) }
	count(&s.MaxParallel, f.MaxParallel)
	s.MaxParallel = cmp.Or(c.o.MaxParallel, s.MaxParallel)
	s.Provider, s.DefaultAgent, s.Store, s.Engine = c.defaultProvider(), f.DefaultAgent.value, f.Store.value, f.Engine.value
	set(&s.WaitTimeout, f.WaitTimeout.at, f.WaitTimeout.value)
	set(&s.ReplyTimeout, f.ReplyTimeout.at, f.ReplyTimeout.value)
	set(&s.Approvals.Spawn, f.Approvals.Spawn.at, f.Approvals.Spawn.value)
	set(&s.Approvals.Tools, f.Approvals.Tools.at, f.Approvals.Tools.value)
	s.Notify = Notify{Command: texts(f.Notify.Command), Bell: f.Notify.Bell.value, Webhook: f.Notify.Webhook.value,
		Slack: f.Notify.Slack.value, Ntfy: f.Notify.Ntfy.value, Desktop: f.Notify.Desktop.value}
	s.Team.Done, s.Team.OnStall = texts(f.Team.Done), swarm.OnStall(f.Team.OnStall.value)
	s.Team.Expect, s.Team.MaxChecks = c.teamExpect, int(f.Team.MaxChecks.value)
	set(&s.Team.Retries, f.Team.Retries.at, new(int(f.Team.Retries.value)))
	for _, e := range f.Team.Constraints.entries {
		s.Team.Constraints = append(s.Team.Constraints, contextpack.Note{Name: e.name, Value: scalar(e.value)})
	}
	count(&s.Swarm.MaxAgents, f.Swarm.MaxAgents)
	count(&s.Swarm.MaxIterationsPerAgent, f.Swarm.MaxIterationsPerAgent)
	count(&s.Swarm.MaxMessagesPerAgent, f.Swarm.MaxMessagesPerAgent)
	count(&s.Swarm.WorkspaceSnippetChars, f.Swarm.WorkspaceSnippetChars)
	count(&s.Swarm.WorkspaceMaxEntries, f.Swarm.WorkspaceMaxEntries)
	set(&s.Swarm.Strategy, f.Swarm.Strategy.at, swarm.Strategy(f.Swarm.Strategy.value))
	set(&s.Swarm.Replan, f.Swarm.Replan.at, f.Swarm.Replan.value)
	set(&s.Swarm.AgentTimeout, f.Swarm.AgentTimeoutSeconds.at, time.Duration(f.Swarm.AgentTimeoutSeconds.value)*time.Second)
	if w := f.Swarm.Workspace; w.given() {
		s.Swarm.Workspace = c.folder(w.value)
	}
	s.MCP = c.servers()
	for _, e := range f.Providers.entries {
		s.Providers = append(s.Providers, e.name)
	}
	for _, e := range f.Pipelines.entries {
		s.Pipelines = append(s.Pipelines, e.name)
	}
	return s
}

// set overrides a default by a value that the file has.
func set[T any](to *T, in at, value T) {
	if in.given() {
		*to = value
	}
}

// checkSettings checks the settings.
func (c *compiler) checkSettings() {
	f := &c.file
	if v := f.Version; v.given() && v.value != "1" {
		c.fail(v.node, "this program does not know version %s", swarm.Quote(v.value)).WithHint(`write version: "1"`)
	}
	dollars := []number{f.Budget.USD}
	for _, e := range f.Agents.entries {
		dollars = append(dollars, e.value.Budget.USD)
	}
	for _, e := range f.Tasks.entries {
		dollars = append(dollars, e.value.Budget.USD)
	}
	for _, u := range dollars {
		if u.given() && u.value <= 0 {
			c.fail(u.node, "usd must be more than 0").WithHint("leave it out for no limit")
		}
	}
	c.checkStore()
	c.checkNotify(&f.Notify)
	c.checkCommand(f.Notify.Command, "command")
	c.checkExpect(&f.Team.Expect, "the run's folder", "it")
	c.teamExpect = c.expect(f.Team.Expect)
	c.checkOnLimit(&f.OnLimit)
	c.checkServers()
	if most := f.Swarm.MaxAgents; swarm.Strategy(f.Swarm.Strategy.value) == swarm.CouncilStrategy && most.given() && most.value < swarm.LeastCouncil {
		c.fail(most.node, "a council needs %d agents, and max_agents is %d", swarm.LeastCouncil, most.value).WithHint("raise max_agents, or write strategy: team")
	}
	if w := f.Swarm.Workspace; w.given() {
		c.checkFolder("workspace", w, "it then is a folder of the run's own")
	}
	if a := f.DefaultAgent; a.given() {
		if _, ok := c.agents[a.value]; !ok {
			c.missing(a.node, "there is no agent %s", swarm.Quote(a.value)).
				WithHint("%s", c.didYouMean(a.value, c.agentNames))
		}
	}
}

// StoreOf returns the store that a file names, and the place of the key. All else in the file may be
// wrong.
func StoreOf(o Options) (address string, at Place, err error) {
	c := newCompiler(o)
	c.read()
	c.errs = nil
	if c.checkStore(); len(c.errs) > 0 {
		return "", Place{}, c.errs[0]
	}
	return c.file.Store.value, c.place(c.file.Store.node), nil
}

// ParseStore parses the address of a store. It refuses one whose password has / ? or #, and digits
// before that, as in postgres://me:12#34@host: the digits would be the port of a host with the name of
// the user, and the rest would be named in messages.
func ParseStore(address string) (u *url.URL, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, false
	}
	isPort := u.User != nil || u.Port() == "" || !strings.Contains(address, "@")
	return u, isPort && !strings.Contains(address, "#")
}

// checkStore checks the address of the store. A password has no place in a file that people share.
// The messages do not repeat the address: it may hold one.
func (c *compiler) checkStore() {
	t := c.file.Store
	if !t.given() {
		return
	}
	u, ok := ParseStore(t.value)
	if !ok {
		c.fail(t.node, "this is not the address of a store").WithHint("write store: postgres://user@host:port/database; without it runs are in the state folder")
		return
	}
	_, found := u.User.Password()
	for key := range u.Query() {
		found = found || strings.HasSuffix(strings.ToLower(key), "password")
	}
	if found {
		c.fail(t.node, "the address of the store holds a password, which everybody could read who gets this file").
			WithHint("leave it out here, and put it in PGPASSWORD or in ~/.pgpass, or set SWARM_STORE to the whole address")
	}
}

// checkNotify checks how a person is notified. $NAME stands for an address in the environment. The
// address of a Slack webhook lets anybody write there, so it never stands in the file.
func (c *compiler) checkNotify(n *notifyKeys) {
	for _, to := range []struct {
		key     string
		address text
	}{{"webhook", n.Webhook}, {"slack", n.Slack}, {"ntfy", n.Ntfy}} {
		key, address := to.key, to.address
		if _, reference := secret.Reference(address.value); reference {
			continue
		}
		const slack = "hooks.slack.com"
		if u, err := url.Parse(address.value); address.given() && (key == "slack" || err == nil && strings.EqualFold(u.Hostname(), slack)) && (err != nil || u.Hostname() != "127.0.0.1") {
			c.fail(address.node, "the address of a Slack webhook is a secret, which would be stored with the run").
				WithHint("write slack: $SLACK_WEBHOOK, and set that variable to the address")
			continue
		}
		c.checkURL(address, "write "+key+": $NAME, and set that variable of the environment to the address")
	}
}

// checkURL checks an address. It must hold no secret, because it is stored with the run and shown.
// instead says where a secret belongs.
func (c *compiler) checkURL(t text, instead string) {
	if !t.given() {
		return
	}
	u, err := url.Parse(t.value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		what := "this"
		if !strings.ContainsAny(t.value, "@?") { // a secret may follow those
			what = swarm.Quote(t.value)
		}
		c.fail(t.node, "%s is not the address of a server", what).
			WithHint("write one such as http://127.0.0.1:11434/v1")
		return
	}
	if u.User != nil {
		c.fail(t.node, "the address holds a login, which would be stored with the run").WithHint("%s", instead)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		if secret.OpensAddress(name) {
			c.fail(t.node, "%s in the address looks like a secret, which would be stored with the run", swarm.Quote(name)).
				WithHint("%s", instead)
			return
		}
	}
}

func (c *compiler) checkCommand(l list[text], key string) {
	if l.given() && (len(l.items) == 0 || l.items[0].value == "") {
		c.fail(l.node, "%s names no program", key).WithHint("write %s: [program, argument]", key)
	}
}

// texts returns the values of a list.
func texts(l list[text]) []string {
	var out []string
	for _, t := range l.items {
		out = append(out, t.value)
	}
	return out
}

// scalar encodes a text as the file means it: numbers and booleans keep their type.
func scalar(t text) json.RawMessage {
	var value any = t.value
	plain := strings.ReplaceAll(t.value, "_", "")
	switch t.node.Tag {
	case "!!bool":
		value = strings.EqualFold(t.value, "true")
	case "!!int":
		if n, err := strconv.ParseInt(plain, 10, 64); err == nil {
			value = n
		}
	case "!!float":
		if f, err := strconv.ParseFloat(plain, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			value = f
		}
	}
	return swarm.Encode(value)
}

// pairs returns the values by their names, or nil.
func pairs(m named[text]) map[string]string {
	if len(m.entries) == 0 {
		return nil
	}
	out := make(map[string]string, len(m.entries))
	for _, e := range m.entries {
		out[e.name] = e.value.value
	}
	return out
}
