package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/line"
	"swarm/internal/repl"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

// command runs a command.
func (s *Session) command(ctx context.Context, c *line.Command) (repl.Entered, error) {
	arg := ""
	if len(c.Args) > 0 {
		arg = c.Args[0]
	}
	var answer string
	var err error
	switch c.Name {
	case "quit":
		return repl.Entered{Quit: true}, nil
	case "help":
		answer, err = help(arg, s.Lang().Agents)
	case "status":
		answer, err = s.status()
	case "tasks":
		answer, err = s.tasks()
	case "task":
		answer, err = s.task(arg)
	case "cancel":
		answer, err = s.cancel(ctx, arg)
	case "history":
		answer, err = s.history(strings.TrimPrefix(arg, "@"))
	case "use":
		answer, err = s.use(strings.TrimPrefix(arg, "@"))
	case "model":
		answer, err = s.model(c.Args)
	case "reset":
		answer, err = s.reset(ctx, strings.TrimPrefix(arg, "@"))
	case "why":
		answer, err = s.why(strings.TrimPrefix(arg, "@"))
	case "out":
		answer, err = s.out(strings.TrimPrefix(arg, "@"))
	case "approve":
		answer, err = s.answer(ctx, run.Decision{OK: true}, arg)
	case "deny":
		answer, err = s.answer(ctx, run.Decision{}, arg)
	case "retry":
		return s.retry(ctx, arg)
	case "open":
		answer, err = s.open()
	case "save":
		answer, err = s.save(arg)
	default:
		err = swarm.Errorf(swarm.BadInput, "there is no command /%s", c.Name).WithHint("/help lists them")
	}
	return repl.Entered{Answer: answer}, err
}

// open opens the page of the session.
func (s *Session) open() (string, error) {
	if s.OpenPage == nil {
		return "", swarm.Errorf(swarm.BadInput, "this session has no page").WithHint("swarm serve has the page of every run")
	}
	address, err := s.OpenPage()
	if err != nil {
		return "", err
	}
	return "the page: " + address + " (good once, for a minute)\n", nil
}

func (s *Session) unknownAgent(name string) error {
	return swarm.UnknownAgent(name, s.Lang().Agents)
}

func (s *Session) knows(agent string) bool { return slices.Contains(s.Lang().Agents, agent) }

// status returns the state of every agent, as the status panel shows it.
func (s *Session) status() (string, error) {
	team := s.Lang().Agents
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(); err != nil {
		return "", err
	}
	return repl.Status(s.view, team), nil
}

func (s *Session) tasks() (string, error) {
	p, err := s.Picture()
	if err != nil {
		return "", err
	}
	if len(p.Tasks) == 0 {
		return "no tasks yet\n", nil
	}
	t := term.NewTable("TASK", "AGENT", "STATUS", "TIME", "TOKENS", "")
	for _, one := range p.Tasks {
		t.Row(one.Name, "@"+one.Agent, string(one.Status), took(one), term.Tokens(one.Usage), view.FirstLine(cmp.Or(view.Waiting(one.Waits), one.EndReason())))
	}
	return t.Format(0, false), nil
}

func took(t view.Task) string {
	if t.Started.IsZero() {
		return ""
	}
	end := t.Ended
	if end.IsZero() {
		end = time.Now()
	}
	return term.Duration(end.Sub(t.Started))
}

func (s *Session) find(name string) (view.Task, error) {
	p, err := s.Picture()
	if err != nil {
		return view.Task{}, err
	}
	var names []string
	for _, t := range p.Tasks {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return view.Task{}, swarm.Errorf(swarm.BadInput, "there is no task %q", name).WithHint("%s", swarm.DidYouMean(name, names))
}

func (s *Session) task(name string) (string, error) {
	t, err := s.find(name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s by @%s: %s", t.Name, t.Agent, t.Status)
	if waits := view.Waiting(t.Waits); waits != "" {
		fmt.Fprintf(&b, " for %s", waits)
	}
	fmt.Fprintln(&b)
	if reason := t.EndReason(); reason != "" {
		fmt.Fprintf(&b, "%s\n", reason)
	}
	if t.Turn != "" {
		fmt.Fprintf(&b, "turn %s, %s, %s tokens\n", t.Turn, took(t), term.Tokens(t.Usage))
	}
	asked, err := s.prompt(t.Turn)
	if err != nil {
		return "", err
	}
	said, err := s.output(t.Output)
	if asked != "" {
		fmt.Fprintf(&b, "prompt:\n%s\n", strings.TrimRight(asked, "\n"))
	}
	if said != "" {
		fmt.Fprintf(&b, "output:\n%s\n", strings.TrimRight(said, "\n"))
	}
	return b.String(), err
}

// prompt returns the full prompt of a turn; "" if the turn has not started.
func (s *Session) prompt(turn swarm.TurnID) (string, error) {
	start, ok, err := swarm.FindBody[swarm.TurnStart](s.run.Log(), swarm.StartKey(turn, 1)) // later starts have the same prompt
	if err != nil || !ok || start.Prompt == "" {
		return "", err
	}
	text, err := s.run.Log().Body(start.Prompt)
	return string(text), err
}

func (s *Session) output(o view.Output) (string, error) {
	if o.Hash == "" {
		return "", nil
	}
	text, err := s.run.Log().Body(o.Hash)
	return string(text), err
}

func (s *Session) cancel(ctx context.Context, what string) (string, error) {
	p, err := s.Picture()
	if err != nil {
		return "", err
	}
	agent, isAgent := strings.CutPrefix(what, "@")
	if isAgent && !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	var names []string
	for _, t := range p.Tasks {
		if !t.Status.Ended() && (what == "all" || t.Name == what || isAgent && t.Agent == agent) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		if what != "all" && !isAgent {
			if _, err := s.find(what); err != nil {
				return "", err
			}
		}
		return "nothing to cancel\n", nil
	}
	return "cancelling " + strings.Join(names, ", ") + "\n", s.Cancel(ctx, names...)
}

func (s *Session) history(agent string) (string, error) {
	if agent != "" && !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i, one := range s.lines {
		if agent == "" || slices.ContainsFunc(one.tasks, func(t string) bool { return strings.HasPrefix(t, agent+"_") }) {
			fmt.Fprintf(&b, "%3d  %s\n", i+1, strings.ReplaceAll(one.text, "\n", "\n     "))
		}
	}
	if b.Len() == 0 {
		return "nothing was entered yet\n", nil
	}
	return b.String(), nil
}

func (s *Session) use(agent string) (string, error) {
	if !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lang.Default = agent
	return "lines without @ go to @" + agent + "\n", nil
}

// model shows the models of all agents, or shows or sets that of one, for later lines. Without its name,
// the default agent gets the model.
func (s *Session) model(args []string) (string, error) {
	if len(args) == 0 {
		var all strings.Builder
		for _, agent := range s.Lang().Agents {
			one, err := s.model([]string{"@" + agent})
			if err != nil {
				return "", err
			}
			all.WriteString(one)
		}
		return all.String(), nil
	}
	agent := s.Lang().Default
	if strings.HasPrefix(args[0], "@") {
		agent, args = args[0][1:], args[1:]
	}
	if !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(args) == 0 {
		return fmt.Sprintf("@%s: %s\n", agent, cmp.Or(s.models[agent], s.agents()[agent].Model, s.agents()[agent].Tier, "the provider's own model")), nil
	}
	s.models[agent] = args[0]
	return fmt.Sprintf("@%s: %s\n", agent, args[0]), nil
}

// reset begins a new memory of an agent. Its running turn is cut and starts again without the old
// one.
func (s *Session) reset(ctx context.Context, agent string) (string, error) {
	if !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	return "@" + agent + " has forgotten the lines before\n", s.run.Say(ctx, swarm.ControlCommand{Command: swarm.CommandReset, Target: agent, Actor: s.team.Actor})
}

func (s *Session) why(agent string) (string, error) {
	if !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(); err != nil {
		return "", err
	}
	p := s.view.Picture()
	for i := len(p.Tasks) - 1; i >= 0; i-- {
		if t := p.Tasks[i]; t.Agent == agent {
			chain, err := s.view.Why(t.Name)
			if err != nil {
				return "", err
			}
			return chain.String() + "\n", nil
		}
	}
	return "@" + agent + " has nothing to do\n", nil
}

func (s *Session) out(agent string) (string, error) {
	if !s.knows(agent) {
		return "", s.unknownAgent(agent)
	}
	p, err := s.Picture()
	if err != nil {
		return "", err
	}
	for i := len(p.Tasks) - 1; i >= 0; i-- {
		if t := p.Tasks[i]; t.Agent == agent && t.Good.Hash != "" {
			return s.output(t.Good)
		}
	}
	return "", swarm.Errorf(swarm.BadInput, "Agent @%s has no output to reference. Run a task for @%s first.", agent, agent)
}

// retry enters the line of a task again. Enter holds entering already, so it calls enter.
func (s *Session) retry(ctx context.Context, task string) (repl.Entered, error) {
	if _, err := s.find(task); err != nil {
		return repl.Entered{}, err
	}
	s.mu.Lock()
	text := ""
	for _, one := range s.lines {
		if slices.Contains(one.tasks, task) {
			text = one.text
		}
	}
	s.mu.Unlock()
	return s.enter(ctx, text)
}

// save writes the session as a compose file for `swarm up`. It does not overwrite a file.
func (s *Session) save(path string) (string, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	text, err := s.compose(filepath.Dir(whole))
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", swarm.Errorf(swarm.BadInput, "the session cannot be saved: %w", err).WithHint("name a file that is not there yet")
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return "saved; to run it: swarm up -f " + path + "\n", err
}
