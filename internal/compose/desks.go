package compose

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/providerkind"
)

// worksOutside says whether an agent that names no provider needs none: the agent, or else each of its
// tasks, has an external worker.
func (c *compiler) worksOutside(a *agent) bool {
	if a.keys != nil && a.keys.Desk.value {
		return a.keys.Worker.value == string(swarm.ExternalWorker)
	}
	outside := func(i int) bool {
		v := &c.tasks[i].value
		return v.Desk.value && v.Worker.value == string(swarm.ExternalWorker)
	}
	return len(a.tasks) > 0 && !slices.ContainsFunc(a.tasks, func(i int) bool { return !outside(i) })
}

// agentWorker returns who does an agent's turns at a desk; "" = they have none.
func (c *compiler) agentWorker(a *agent) swarm.Worker {
	outside := a.spec != nil && providerkind.Of(a.spec.Kind).Outside
	switch k := a.keys; {
	case outside:
		return swarm.ExternalWorker
	case k != nil && k.Desk.value:
		return swarm.Worker(cmp.Or(k.Worker.value, string(swarm.CommandWorker)))
	}
	return ""
}

// ownWorker returns what a task itself says about its desk; "" = nothing.
func (c *compiler) ownWorker(t *task) swarm.Worker {
	v, of := &t.value, c.agentWorker(c.agents[t.agent])
	switch {
	case v.Desk.given() && !v.Desk.value && of != "":
		return swarm.NoWorker
	case v.Worker.given():
		return swarm.Worker(v.Worker.value)
	case v.Desk.value && of == "":
		return swarm.CommandWorker
	}
	return ""
}

// worker returns who does a task at a desk; "" = it has none.
func (c *compiler) worker(t *task) swarm.Worker {
	own := swarm.Task{Desk: c.ownWorker(t)}
	return own.WorkerOf(&swarm.Agent{Desk: c.agentWorker(c.agents[t.agent])})
}

// checkDesks checks what the selected tasks and their agents say about desks.
func (c *compiler) checkDesks(sel *selection) {
	for _, a := range c.agentsOf(sel) {
		if c.agentWorker(a) != "" {
			c.checkDeskName(a.node, a.name)
		}
		if k := a.keys; k != nil && a.spec != nil {
			c.checkWorker(a, k.Worker, k.Desk, c.agentWorker(a) != "" && !(k.Desk.given() && !k.Desk.value))
		}
	}
	for _, i := range sel.tasks {
		t := &c.tasks[i]
		a, v := c.agents[t.agent], &t.value
		if a.spec == nil {
			continue
		}
		has := v.Desk.value || !v.Desk.given() && c.agentWorker(a) != ""
		c.checkWorker(a, v.Worker, v.Desk, has)
		if has {
			c.checkDeskName(t.key, t.name)
		}
		if w := v.Workdir; has && w.given() {
			c.fail(w.node, "the task %q has a desk, and works in that folder", t.name).
				WithHint("leave workdir out; desks: DIR at the top of the file says where the desks are")
		}
		if f := v.Files; !has && f.given() {
			c.fail(f.node, "files are for the inbox of a desk, and the task %q has none", t.name).
				WithHint("write desk: true, or {{include: PATH}} in the prompt")
		}
		if has {
			c.checkFiles(t)
		}
		c.checkSameName(v.Files.items, inbox)
		for _, d := range t.after {
			c.checkOutputs(t, d)
		}
	}
	if d := c.file.Desks; d.given() {
		c.checkFolder("desks", d, "the desks then are in the state folder")
		if mode, err := c.o.Prompts.Mode(c.folder(d.value)); err == nil && !mode.IsDir() && mode&fs.ModeSymlink == 0 {
			c.fail(d.node, "desks is %s, which is not a folder", d.value).
				WithHint("write a folder, which is made if it is not there: desks: shared")
		}
	}
}

// checkFiles checks that the files for the inbox of a task's desk exist. A missing file that an
// earlier task may write is only a warning.
func (c *compiler) checkFiles(t *task) {
	for _, f := range t.value.Files.items {
		path := c.folder(f.value)
		mode, err := c.o.Prompts.Mode(path)
		missing := swarm.KindOf(err) == swarm.NotFound
		switch {
		case strings.TrimSpace(f.value) == "":
			c.fail(f.node, "files of the task %q has an empty path", t.name).WithHint("write the path of a file or a folder, or remove the entry")
		case path == "/":
			c.fail(f.node, "files of the task %q has the root folder /", t.name).WithHint("write a file or a folder in it: files: [data]")
		case c.startsAtHome("the file", f):
		case missing && len(t.after) > 0:
			c.warn(f.node, "the file %s of the task %q does not exist yet", f.value, t.name).
				WithHint("an earlier task must write %s; if none does, correct the path", path)
		case missing:
			c.fail(f.node, "the file %s of the task %q does not exist", f.value, t.name).
				WithHint("create it, or correct the path, which is relative to %s", c.o.Dir)
		case err != nil:
			c.fail(f.node, "a file of the task %q: %s", t.name, err.Error()).WithHint("%s", swarm.HintOf(err))
		case mode&fs.ModeSymlink != 0:
			c.fail(f.node, "%s is a symbolic link, and links are not copied to an inbox", f.value).
				WithHint("write the path that the link leads to")
		case !mode.IsRegular() && !mode.IsDir():
			c.fail(f.node, "%s is neither a file nor a folder", f.value).WithHint("write the path of a file or a folder")
		}
	}
}

// startsAtHome refuses a path that a shell would expand.
func (c *compiler) startsAtHome(what string, path text) bool {
	if path.value != "~" && !strings.HasPrefix(path.value, "~/") {
		return false
	}
	c.fail(path.node, "%s %s starts with ~, which only a shell expands", what, path.value).
		WithHint("write the full path; echo %s prints it", path.value)
	return true
}

// checkDeskName refuses the name of the folder that lies beside the desks of a team.
func (c *compiler) checkDeskName(node *yaml.Node, name string) {
	if name == "messages" && c.file.Edges.given() {
		c.fail(node, "%q is the folder by which agents at desks write to each other, and no name for a desk", name).
			WithHint("give it another name")
	}
}

// checkWorker checks a pair of the keys worker and desk, of a task or of an agent. has says whether
// there is a desk.
func (c *compiler) checkWorker(a *agent, worker text, desk boolean, has bool) {
	if !has && worker.given() {
		c.fail(worker.node, "worker says who works at a desk, and there is none").WithHint("write desk: true beside it")
		return
	}
	kind := providerkind.Of(a.spec.Kind)
	node := cmp.Or(worker.node, desk.node)
	switch {
	case node == nil:
	case kind.Outside && desk.given() && !desk.value:
		c.fail(desk.node, "the provider %q of %q reaches nobody without a desk", a.spec.Name, a.name).
			WithHint("leave desk out, or choose another provider")
	case !has || worker.value == string(swarm.ExternalWorker):
	case kind.Outside:
		if worker.given() {
			c.fail(worker.node, "the provider %q of %q starts no worker", a.spec.Name, a.name).
				WithHint("write worker: external, or choose another provider")
		}
	case !slices.Contains(providerkind.DeskWorkers(), kind.Name):
		c.fail(node, "%q cannot work at a desk: its provider is %q, which starts no program in a folder", a.name, a.spec.Name).
			WithHint("choose a provider that can, such as %s, or write worker: external for a worker that swarm does not start",
				strings.Join(providerkind.DeskWorkers()[:3], ", "))
	}
}

// checkOutputs checks what a dependency says about files. Only a desk has an inbox and an outbox.
func (c *compiler) checkOutputs(t *task, d after) {
	other := &c.tasks[d.task]
	for key, node := range map[string]*yaml.Node{"outputs": d.keys.Outputs.node, "copy_to": d.keys.CopyTo.node} {
		without := ""
		switch {
		case node == nil:
			continue
		case c.worker(t) == "":
			without = t.name
		case c.worker(other) == "":
			without = other.name
		default:
			continue
		}
		c.fail(node, "%s is about desks, and the task %q has none", key, without).
			WithHint("write desk: true for %s, or read what it said: {{output:%s}}", without, other.name)
		return
	}
	to := path.Join(inbox, other.name)
	if k := d.keys.CopyTo; k.given() {
		c.checkDeskPath(k, inbox)
		if to = deskPath(k, inbox); to == inbox+"/instructions.md" || to == inbox+"/dependencies.json" {
			c.fail(k.node, "%s is a file of the desk, and cannot be a folder", to).WithHint("write %s", path.Join(inbox, other.name))
		}
	}
	for _, o := range d.keys.Outputs.items {
		c.checkDeskPath(o, outbox)
	}
	c.checkSameName(d.keys.Outputs.items, to)
}

// checkSameName checks that no two files get one name in a folder of the inbox.
func (c *compiler) checkSameName(files []text, folder string) {
	got := map[string]string{}
	for _, f := range files {
		name := path.Base(path.Clean(f.value))
		if other, ok := got[name]; ok {
			c.fail(f.node, "%s and %s would both be %s", other, f.value, path.Join(folder, name)).
				WithHint("name the folder that they are in, or rename one of them")
			return
		}
		got[name] = f.value
	}
}

// The folders of a desk that a dependency names.
const (
	inbox  = "inbox"
	outbox = "outbox"
)

// deskPath returns a path of a desk. In the file the folder's own name may be left out.
func deskPath(p text, below string) string {
	clean := path.Clean(p.value)
	if clean == below || strings.HasPrefix(clean, below+"/") {
		return clean
	}
	return path.Join(below, clean)
}

// checkDeskPath checks a path below a folder of a desk, with or without that folder's name.
func (c *compiler) checkDeskPath(p text, below string) {
	clean := path.Clean(p.value)
	bad := clean == "." || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(p.value, `\`)
	if bad {
		c.fail(p.node, "%s is not a path in the %s of a desk", swarm.Quote(p.value), below).
			WithHint("write a relative path without .., such as %s/data.json", below)
	}
}
