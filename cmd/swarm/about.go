package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/flow"
	"swarm/internal/project"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/registry"
	"swarm/internal/term"
	"swarm/internal/tool"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.print(map[string]string{"version": version, "loops": flow.Version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(a.stdout, "swarm %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of swarm.yaml, for editors",
		Example: "  swarm schema > swarm/swarm.schema.json\n  # and as the first line of swarm/swarm.yaml, as swarm init writes it:\n  # yaml-language-server: $schema=swarm.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(append(compose.Schema(), '\n'))
			return err
		},
	}
}

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a small working swarm/swarm.yaml with prompts",
		Long: `Write a small working swarm/swarm.yaml with prompts into this folder. The JSON Schema beside it
gives completion and checks in editors that have a YAML language server.

Existing files are never changed.`,
		Example: "  swarm init && swarm up",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.dir()
			if err != nil {
				return err
			}
			files, err := project.Init(dir, append(compose.Schema(), '\n'))
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string][]string{"files": files})
			}
			for _, f := range files {
				fmt.Fprintf(a.stdout, "wrote %s\n", f)
			}
			_, err = fmt.Fprintln(a.stdout, "to run it: swarm up")
			return err
		},
	}
}

func (a *app) configCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show the settings in force and where they come from",
		Example: "  swarm config\n  swarm config --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.configuration(&src)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(c)
			}
			table := term.NewTable("SETTING", "VALUE", "FROM")
			for _, s := range c {
				table.Row(s.Name, s.Value, s.From)
			}
			return a.table(table)
		},
	}
	src.flags(cmd)
	return cmd
}

// A setting is a value in force and where it comes from.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func (a *app) configuration(src *source) ([]setting, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	from := "default"
	if os.Getenv("SWARM_HOME") != "" {
		from = "SWARM_HOME"
	}
	all := []setting{{"home", h.Dir(), from}}
	o, err := src.options(a, nil)
	s := compose.Defaults()
	switch {
	case swarm.KindOf(err) == swarm.NotFound && src.file == "":
		s.Provider, o.File = o.Provider, ""
	case err != nil:
		return nil, err
	default:
		all = append(all, setting{"file", o.File, "found"})
		o.Stdin = func() ([]byte, error) { return nil, nil }
		read, err := compose.ReadSettings(o)
		if err != nil {
			return nil, err
		}
		s = *read
	}
	if s.Provider != "" {
		from = o.File
		switch {
		case src.provider != "":
			from = "--provider"
		case o.Provider != "":
			from = "SWARM_PROVIDER"
		}
		all = append(all, setting{"provider", s.Provider, from})
	}
	return append(all, settingsOf(s, compose.Defaults(), o.File)...), nil
}

// settingsOf lists settings. A value that differs from the default comes from the file.
func settingsOf(s, defaults compose.Settings, file string) (all []setting) {
	rows := func(s compose.Settings) []setting {
		return []setting{
			{Name: "default_agent", Value: s.DefaultAgent}, {Name: "max_parallel", Value: fmt.Sprint(s.MaxParallel)},
			{Name: "wait_timeout", Value: s.WaitTimeout.String()}, {Name: "reply_timeout", Value: s.ReplyTimeout.String()},
			{Name: "approvals.spawn", Value: s.Approvals.Spawn}, {Name: "approvals.tools", Value: s.Approvals.Tools},
			{Name: "swarm.max_agents", Value: fmt.Sprint(s.Swarm.MaxAgents)}, {Name: "swarm.max_iterations_per_agent", Value: fmt.Sprint(s.Swarm.MaxIterationsPerAgent)},
			{Name: "swarm.agent_timeout_seconds", Value: fmt.Sprint(int(s.Swarm.AgentTimeout.Seconds()))},
			{Name: "swarm.max_messages_per_agent", Value: fmt.Sprint(s.Swarm.MaxMessagesPerAgent)},
			{Name: "swarm.workspace_snippet_chars", Value: fmt.Sprint(s.Swarm.WorkspaceSnippetChars)}, {Name: "swarm.workspace_max_entries", Value: fmt.Sprint(s.Swarm.WorkspaceMaxEntries)},
		}
	}
	usual := rows(defaults)
	for i, r := range rows(s) {
		r.From = "default"
		if r.Value != usual[i].Value {
			r.From = file
		}
		if r.Value != "" {
			all = append(all, r)
		}
	}
	return all
}

func (a *app) doctorCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything swarm needs is installed and reachable",
		Long: `Check the state folder, git, the compose file, its providers, its tool servers and the telemetry
collector. For each problem, print what is missing and how to fix it.

Providers that no agent of the file uses are checked too:
  ok  found
  --  missing, and needed here
  ..  missing, and not needed here

Exits with 2 when something needed is missing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := a.examine(cmd.Context(), &src)
			for _, x := range all {
				if x.Problem != "" && x.Needed {
					a.exit = swarm.ExitBadInput
				}
			}
			if a.json {
				return a.print(all)
			}
			for _, x := range all {
				mark := "ok"
				switch {
				case x.Problem != "" && x.Needed:
					mark = "--"
				case x.Problem != "":
					mark = ".."
				}
				fmt.Fprintf(a.stdout, "%s  %-22s %s\n", mark, x.What, term.Escape(strings.TrimSpace(x.Found+" "+x.Problem)))
				if x.Hint != "" {
					fmt.Fprintf(a.stdout, "    hint: %s\n", term.Escape(x.Hint))
				}
			}
			return nil
		},
	}
	src.flags(cmd)
	return cmd
}

// A finding is the result of one check of `swarm doctor`.
type finding struct {
	What    string `json:"what"`
	Found   string `json:"found,omitempty"`
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Version string `json:"version,omitempty"`   // of a provider's program
	Signed  string `json:"signed_in,omitempty"` // yes or no
	Needed  bool   `json:"needed"`
}

func bad(what string, needed bool, err error) finding {
	return finding{What: what, Problem: err.Error(), Hint: swarm.HintOf(err), Needed: needed}
}

func (a *app) examine(ctx context.Context, src *source) []finding {
	h, err := a.home()
	if err == nil {
		err = h.Make()
	}
	if err != nil {
		return []finding{bad("state folder", true, err)}
	}
	all := []finding{{What: "state folder", Found: h.Dir(), Needed: true}}
	if out, err := exec.CommandContext(ctx, "git", "--version").Output(); err != nil {
		all = append(all, finding{What: "git", Problem: "not found", Hint: "without it `swarm diff` has nothing to show"})
	} else {
		all = append(all, finding{What: "git", Found: strings.TrimSpace(string(out))})
	}
	file, b := a.examineFile(src)
	all = append(all, examineSandbox(b))
	dir, err := a.dir()
	if err != nil {
		return append(all, append(file, bad("folder", true, err))...)
	}
	all = append(append(all, file...), examineProviders(ctx, b, dir)...)
	all = append(all, examineServers(b, dir)...)
	return append(all, a.examineTelemetry(ctx)...)
}

// examineTelemetry checks that the telemetry collector answers. A missing collector never keeps a
// run from starting, so the finding is never marked as needed.
func (a *app) examineTelemetry(ctx context.Context) (all []finding) {
	x := a.exporter()
	if x == nil {
		return []finding{{What: "telemetry", Found: "off: no exporter is configured"}}
	}
	for _, h := range x.Check(ctx) {
		all = append(all, finding{What: "telemetry " + h.Signal, Found: h.To, Problem: h.Problem, Hint: h.Hint})
	}
	return all
}

// examineFile checks the compose file and compiles it. The bundle is empty when that fails.
func (a *app) examineFile(src *source) ([]finding, *compose.Bundle) {
	none := &compose.Bundle{}
	o, err := src.options(a, nil)
	if err != nil {
		return []finding{bad("compose file", false, err)}, none
	}
	o.Stdin = func() ([]byte, error) { return nil, nil }
	errs, warnings := compose.Check(o)
	if len(errs) > 0 {
		return []finding{bad("compose file", true, errs[0])}, none
	}
	all := []finding{{What: "compose file", Found: fmt.Sprintf("%s, %s", o.File, term.Plural(len(warnings), "warning")), Needed: true}}
	b, err := compose.Compile(o)
	if err != nil {
		return append(all, bad("plan", false, err)), none
	}
	return all, b
}

// examineProviders checks all providers at the same time, because each check may start a program:
// first those that the file's agents use, then the other presets.
func examineProviders(ctx context.Context, b *compose.Bundle, dir string) []finding {
	specs := slices.Clone(b.Plan.Providers)
	used := len(specs)
	for _, kind := range providerkind.Presets() {
		if !slices.ContainsFunc(specs, func(s swarm.ProviderSpec) bool { return s.Kind == kind && s.BaseURL == "" }) {
			specs = append(specs, swarm.ProviderSpec{Name: kind, Kind: kind})
		}
	}
	all := make([]finding, len(specs))
	var checks sync.WaitGroup
	for i, spec := range specs {
		checks.Go(func() { all[i] = examineProvider(ctx, spec, b, dir, i < used) })
	}
	checks.Wait()
	return all
}

// examineServers checks the tool servers of the file. It starts none of them.
func examineServers(b *compose.Bundle, dir string) (all []finding) {
	for _, s := range b.Settings.MCP {
		what := "tool server " + s.Name
		used := slices.ContainsFunc(b.Plan.Servers, func(used swarm.ToolServer) bool { return used.Name == s.Name })
		f := finding{What: what, Found: cmp.Or(s.URL, strings.Join(s.Command, " ")), Needed: used}
		if err := tool.Ready(s, tool.ServerOptions{Dir: dir}); err != nil {
			f = bad(what, used, err)
		}
		all = append(all, f)
	}
	return all
}

func examineProvider(ctx context.Context, spec swarm.ProviderSpec, b *compose.Bundle, dir string, used bool) finding {
	what := "provider " + spec.Name
	p, err := registry.Open(spec, control.ProviderOptions(spec, b.Bodies, dir))
	if err != nil {
		return bad(what, used, err)
	}
	f := finding{What: what, Found: spec.Kind, Needed: used}
	if c, ok := p.(provider.Checker); ok {
		health := c.Check(ctx)
		f.Found, f.Problem, f.Hint = strings.TrimSpace(spec.Kind+" "+health.Version), health.Problem, health.Hint
		f.Version, f.Signed = health.Version, health.Signed
		switch {
		case health.With != "" && health.With == strings.ToUpper(health.With):
			f.Found += ", key in " + health.With
		case health.With != "":
			f.Found += ", signed in with " + health.With
		case health.Problem != "":
			f.Found += ":"
		}
	}
	return f
}
