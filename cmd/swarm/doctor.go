package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/registry"
	"swarm/internal/term"
	"swarm/internal/tool"
	"swarm/web"
)

func (a *app) doctorCommand() *cobra.Command {
	var src source
	var start bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything swarm needs is installed and reachable",
		Long: `Check the state folder, git, what separates agents on this machine, the compose file, its
providers, its tool servers and the telemetry collector. For each problem, print what is missing and
how to fix it.

Programs and servers that the compose file names are neither started nor asked: doctor prints what it
would start and ask, and does it with --run. So it is safe in a folder that you do not know. Programs in
your PATH, of providers about which the file says nothing, are asked for their version.

Providers that no agent of the file uses are checked too:
  ✓  found
  ?  not checked without --run
  ✗  missing, and needed here
  ·  missing, and not needed here

Exits with 2 when something needed is missing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := a.examine(cmd.Context(), &src, start)
			for _, x := range all {
				if x.Problem != "" && x.Needed {
					a.exit = swarm.ExitBadInput
				}
			}
			if a.json {
				return a.print(all)
			}
			color, err := a.paints()
			if err != nil {
				return err
			}
			for _, x := range all {
				a.printFinding(x, term.Paint(color))
			}
			return nil
		},
	}
	src.flags(cmd)
	cmd.Flags().BoolVar(&start, "run", false, "start the programs and ask the servers that the compose file names")
	return cmd
}

// printFinding prints the result of one check. In a terminal, long texts are wrapped.
func (a *app) printFinding(x finding, paint term.Paint) {
	mark, style := "✓", term.Green
	switch {
	case x.Problem != "" && x.Needed:
		mark, style = "✗", term.Wrong
	case x.Problem != "":
		mark, style = "·", term.Dim
	case x.Unchecked != "":
		mark, style = "?", term.Yellow
	}
	const names = 22 // columns
	what, indent := fmt.Sprintf("%-*s ", names, x.What), names+4
	width := a.width()
	if width > 0 && width < 3*names {
		what, indent = x.What+"\n   ", 3
	}
	fmt.Fprintf(a.stdout, "%s  %s%s\n", paint.With(style, mark), what, term.Hang(strings.TrimSpace(x.Found+" "+x.Problem+x.Unchecked), width, indent))
	if x.Hint != "" {
		fmt.Fprintf(a.stdout, "   %s %s\n", rank(paint, "hint:"), term.Hang(x.Hint, width, 9))
	}
}

// A finding is the result of one check of `swarm doctor`.
type finding struct {
	What      string `json:"what"`
	Found     string `json:"found,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Unchecked string `json:"unchecked,omitempty"` // what a check with --run would start or ask
	Hint      string `json:"hint,omitempty"`
	Version   string `json:"version,omitempty"`   // of a provider's program
	Signed    string `json:"signed_in,omitempty"` // yes or no
	Needed    bool   `json:"needed"`
}

func bad(what string, needed bool, err error) finding {
	return finding{What: what, Problem: err.Error(), Hint: swarm.HintOf(err), Needed: needed}
}

// examine makes all checks. With start, it also makes those that start programs or ask servers that
// the compose file names.
func (a *app) examine(ctx context.Context, src *source, start bool) []finding {
	h, err := a.home()
	if err == nil {
		err = h.Make()
	}
	if err != nil {
		return []finding{bad("state folder", true, err)}
	}
	all := []finding{{What: "state folder", Found: h.Dir(), Needed: true}, examineStore(ctx, h.Store)}
	if out, err := exec.CommandContext(ctx, "git", "--version").Output(); err != nil {
		all = append(all, finding{What: "git", Problem: "not found", Hint: "without it `swarm diff` has nothing to show"})
	} else {
		all = append(all, finding{What: "git", Found: strings.TrimSpace(string(out))})
	}
	all = append(all, examinePage())
	all = append(all, examineSeparation()...)
	file, b, name := a.examineFile(src)
	all = append(all, examineSandbox(b))
	dir, err := a.dir()
	if err != nil {
		return append(all, append(file, bad("folder", true, err))...)
	}
	all = append(all, file...)
	d := doctor{bundle: b, dir: dir, home: h.Dir(), start: start, hint: "to check it: swarm doctor --run"}
	if err := (&control.Begin{Bundle: b, File: name, Dir: dir, Set: src.set, Provider: src.provider}).Confirmed(h); err != nil {
		all = append(all, bad("confirmation", true, err))
		d.start = false // it would hand on what nobody has confirmed
		d.hint = "to check it: confirm the file, as said above, then swarm doctor --run"
	}
	all = append(all, d.examineProviders(ctx)...)
	all = append(all, examineServers(b, dir)...)
	return append(all, a.examineTelemetry(ctx)...)
}

// mostSkew is how far the clocks of a store and of this machine may be apart.
const mostSkew = 5 * time.Second

// examineStore checks where runs are, and whether what was acknowledged there lasts.
func examineStore(ctx context.Context, s swarm.Store) finding {
	const what = "store"
	shared, ok := s.(swarm.SharedStore)
	if !ok {
		return finding{What: what, Found: "runs are in the state folder; what is acknowledged is on its disk", Needed: true}
	}
	h, err := shared.Examine(ctx)
	if err != nil {
		return bad(what, true, err)
	}
	f := finding{What: what, Version: h.Server, Needed: true, Hint: h.Hint}
	f.Found = fmt.Sprintf("%s, %s, %s, %s; answers in %s", h.Name, h.Server, term.Plural(int(h.Runs), "run"), term.Bytes(h.Bytes), h.RoundTrip.Round(10*time.Microsecond))
	skew := "its clock agrees with this machine's"
	if h.Ahead.Abs() > mostSkew {
		skew = fmt.Sprintf("its clock is %s ahead of this machine's, and counts", h.Ahead.Round(time.Second))
		if h.Ahead < 0 {
			skew = fmt.Sprintf("its clock is %s behind this machine's, and counts", -h.Ahead.Round(time.Second))
		}
	}
	if h.Risk != "" {
		f.Found, f.Problem, f.Needed = f.Found+"; "+skew+".", h.Risk, false
		return f
	}
	f.Found += "; " + skew + "; what is acknowledged is on its disk"
	return f
}

// examinePage checks whether this program has the page for browsers, and says how to get in.
func examinePage() finding {
	if _, err := fs.Stat(web.Files(), "index.html"); err != nil {
		return finding{What: "page", Problem: "this program was built without the page for browsers", Hint: "install Node, and build it with make build"}
	}
	return finding{What: "page", Found: "swarm serve prints its address, swarm up --open opens it; a one-time code lets your browser in"}
}

// examineSeparation checks what separates agents that have a shell, and what holds their processes.
func examineSeparation() (all []finding) {
	keys, tokens, leftovers := process.Separation()
	for _, x := range []struct {
		what, found string
		err         error
	}{
		{"keys", "agents cannot read those in the environment of swarm", keys},
		{"agents' tokens", "each works only in the processes of its agent", tokens},
		{"leftover processes", "each run has a cgroup, which is killed as a whole", leftovers},
	} {
		if x.err != nil {
			all = append(all, bad(x.what, false, x.err))
		} else {
			all = append(all, finding{What: x.what, Found: x.found})
		}
	}
	return all
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
func (a *app) examineFile(src *source) (_ []finding, _ *compose.Bundle, name string) {
	none := &compose.Bundle{}
	o, err := src.options(a, nil)
	if err != nil {
		return []finding{bad("compose file", false, err)}, none, o.File
	}
	o = o.ReadOnce()
	o.Stdin = func() ([]byte, error) { return nil, nil }
	errs, warnings := compose.Check(o)
	if len(errs) > 0 {
		return []finding{bad("compose file", true, errs[0])}, none, o.File
	}
	all := []finding{{What: "compose file", Found: fmt.Sprintf("%s, %s", o.File, term.Plural(len(warnings), "warning")), Needed: true}}
	b, err := compose.Compile(o)
	if err != nil {
		return append(all, bad("plan", false, err)), none, o.File
	}
	return all, b, o.File
}

// A doctor checks the providers of a compose file.
type doctor struct {
	bundle *compose.Bundle
	dir    string // the project's folder
	home   string // our own folder, in which no project has settings
	start  bool   // start programs and ask servers that the file names
	hint   string // how what is not started or asked is checked
}

// examineProviders checks all providers at the same time, because each check may start a program:
// first those that the file's agents use, then the other presets.
func (d *doctor) examineProviders(ctx context.Context) []finding {
	specs := slices.Clone(d.bundle.Plan.Providers)
	used := len(specs)
	for _, kind := range providerkind.Presets() {
		if !slices.ContainsFunc(specs, func(s swarm.ProviderSpec) bool { return s.Kind == kind && s.BaseURL == "" }) {
			specs = append(specs, swarm.ProviderSpec{Name: kind, Kind: kind})
		}
	}
	all := make([]finding, len(specs))
	var checks sync.WaitGroup
	for i, spec := range specs {
		checks.Go(func() { all[i] = d.examineProvider(ctx, spec, i < used) })
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

func (d *doctor) examineProvider(ctx context.Context, spec swarm.ProviderSpec, used bool) finding {
	what := "provider " + spec.Name
	dir := d.dir
	if !d.start {
		if would := d.effect(spec); would != "" {
			return finding{What: what, Found: spec.Kind, Unchecked: "not checked: would " + would, Needed: used,
				Hint: d.hint}
		}
		if providerkind.Of(spec.Kind).Checked == providerkind.Started {
			dir = d.home // a coding agent obeys the settings of the folder that it is started in
		}
	}
	p, err := registry.Open(spec, control.ProviderOptions(spec, d.bundle.Bodies, dir))
	if err != nil {
		return bad(what, used, err)
	}
	f := finding{What: what, Found: spec.Kind, Needed: used}
	if c, ok := p.(provider.Checker); ok {
		health := c.Check(ctx)
		if spec.Kind == spec.Name && health.Version+health.Problem != "" {
			f.Found = "" // the name says it
		}
		f.Found, f.Hint = strings.TrimSpace(f.Found+" "+health.Version), health.Hint
		f.Problem = strings.Replace(health.Problem, fmt.Sprintf(" of the provider %q", spec.Name), "", 1)
		f.Version, f.Signed = health.Version, health.Signed
		switch {
		case health.With != "" && health.With == strings.ToUpper(health.With):
			f.Found += ", key in " + health.With
		case health.With != "":
			f.Found += ", signed in with " + health.With
		case health.Problem != "" && f.Found != "":
			f.Found += ":"
		}
	}
	if spec.BaseURL != "" && f.Problem == "" && providerkind.Of(spec.Kind).BaseURL != "" {
		f.Found += " at " + spec.BaseURL + ", which is asked at the first turn only"
	}
	return f
}

// effect says what a check of a provider would start or ask, if that is for the person to decide: a
// program that the file names or sets variables for, one in the project's folder, or a server. It
// names variables and headers, and never their values.
func (d *doctor) effect(spec swarm.ProviderSpec) string {
	kind := providerkind.Of(spec.Kind)
	with := func(what string, values map[string]string) string {
		if len(values) == 0 {
			return ""
		}
		return ", with the " + what + " " + strings.Join(slices.Sorted(maps.Keys(values)), ", ")
	}
	switch kind.Checked {
	case providerkind.Asked:
		return "ask " + spec.BaseURL + with("headers", spec.Headers)
	case providerkind.Started:
		command := spec.Command
		if len(command) == 0 {
			command = []string{kind.Program.Name}
		}
		path, err := exec.LookPath(command[0])
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		project, linkErr := filepath.EvalSymlinks(d.dir)
		if linkErr != nil {
			project = d.dir
		}
		inside, _ := filepath.Rel(project, path)
		if len(spec.Command) == 0 && len(spec.Env) == 0 && (err != nil || !filepath.IsLocal(inside)) {
			return ""
		}
		return "start " + strings.Join(command, " ") + " in " + d.dir + with("variables", spec.Env)
	}
	return ""
}
