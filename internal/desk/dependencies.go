package desk

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/strictjson"
)

// Dependencies are inbox/dependencies.json: the desks whose outputs the agent gets, and which it waits for.
type Dependencies struct {
	DependsOn []Dependency `json:"depends_on"`
	WaitFor   []string     `json:"wait_for"`
}

// A Dependency names outputs of another agent, and where they are copied to.
type Dependency struct {
	Agent   string   `json:"agent"`
	Outputs []string `json:"outputs"` // paths below its outbox/
	CopyTo  string   `json:"copy_to"` // a folder below inbox/
}

// ReadDependencies reads the text of a dependencies.json. Unknown fields are ignored.
func ReadDependencies(text []byte) (Dependencies, error) {
	var d Dependencies
	if len(text) > MaxState {
		return d, swarm.Errorf(swarm.BadInput, "dependencies.json has %d bytes; %d are allowed", len(text), MaxState)
	}
	one, err := strictjson.ReadValue(text)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(one, &d); err != nil {
		return d, swarm.Errorf(swarm.BadInput, "dependencies.json cannot be read: %w", err).
			WithHint(`write {"depends_on": [{"agent": …, "outputs": ["outbox/…"], "copy_to": "inbox/…"}], "wait_for": […]}`)
	}
	return d, d.Check()
}

// Check returns the first name or path that leads out of a desk, or nil.
func (d Dependencies) Check() error {
	got := map[string]string{} // a path of the inbox → the output that is copied there
	for i, dep := range d.DependsOn {
		err := dep.check()
		if err == nil {
			err = dep.checkTargets(got)
		}
		if err != nil {
			return inField(fmt.Sprintf("depends_on[%d]", i), err)
		}
	}
	for i, name := range d.WaitFor {
		if err := checkAgent(name); err != nil {
			return inField(fmt.Sprintf("wait_for[%d]", i), err)
		}
	}
	return nil
}

func (d Dependency) check() error {
	if err := checkAgent(d.Agent); err != nil {
		return inField("agent", err)
	}
	for i, name := range d.Outputs {
		if _, err := localPath(name, Outbox, false); err != nil {
			return inField(fmt.Sprintf("outputs[%d]", i), err)
		}
	}
	if _, err := d.folder(); err != nil {
		return inField("copy_to", err)
	}
	return nil
}

// checkTargets checks that each output gets a place of its own in the inbox. got has the places that
// other dependencies have taken.
func (d Dependency) checkTargets(got map[string]string) error {
	for i, output := range d.Outputs {
		to, err := d.target(output)
		if err != nil {
			return inField(fmt.Sprintf("outputs[%d]", i), err)
		}
		from := d.Agent + "/" + path.Clean(output)
		if other := got[to]; other != "" && other != from {
			return inField(fmt.Sprintf("outputs[%d]", i), sameInput(to, other, from))
		}
		got[to] = from
	}
	return nil
}

// target is the path in the inbox that gets an output.
func (d Dependency) target(output string) (string, error) {
	folder, err := d.folder()
	if err != nil {
		return "", err
	}
	source, err := localPath(output, Outbox, false)
	if err != nil {
		return "", err
	}
	to := path.Join(folder, path.Base(source))
	if folder == InstructionsFile || folder == DependenciesFile || to == InstructionsFile || to == DependenciesFile {
		return "", swarm.Errorf(swarm.BadInput, "the output %s of %s would replace a file of the protocol", output, d.Agent).
			WithHint("set copy_to to a folder: inbox/%s/", d.Agent)
	}
	return to, nil
}

// sameInput is the error for two inputs with one place in the inbox.
func sameInput(to, a, b string) error {
	return swarm.Errorf(swarm.BadInput, "%s and %s would both be %s", a, b, to).
		WithHint("set copy_to to a folder for each, deliver the folder that they are in, or rename one of them")
}

// checkAgent checks the name of another desk. Copies of a task have a number: collect.2.
func checkAgent(name string) error {
	if base, number, ok := strings.Cut(name, "."); ok {
		if n, err := strconv.Atoi(number); err == nil && n > 0 && number == strconv.Itoa(n) {
			name = base
		}
	}
	return swarm.CheckTaskName(name)
}

// folder is where the outputs are copied to. Without copy_to it is the inbox itself.
func (d Dependency) folder() (string, error) {
	if d.CopyTo == "" {
		return Inbox, nil
	}
	return localPath(d.CopyTo, Inbox, true)
}

// inField says in which field an error is.
func inField(field string, err error) error {
	return swarm.Errorf(swarm.BadInput, "%s: %w", field, err).WithHint("%s", swarm.HintOf(err))
}

func (d Dependencies) render() []byte {
	if d.DependsOn == nil {
		d.DependsOn = []Dependency{}
	}
	if d.WaitFor == nil {
		d.WaitFor = []string{}
	}
	return renderJSON(d)
}

// Dependencies reads inbox/dependencies.json. A desk without one depends on nothing.
func (d *Desk) Dependencies() (Dependencies, error) {
	if _, err := d.root.Lstat(DependenciesFile); err != nil {
		return Dependencies{}, nil //nolint:nilerr // it is not there
	}
	text, err := d.read(DependenciesFile, MaxState)
	if err != nil {
		return Dependencies{}, d.unusable(DependenciesFile, err)
	}
	deps, err := ReadDependencies(text)
	if err != nil {
		return deps, d.inFile(DependenciesFile, text, err)
	}
	return deps, nil
}

// Provided lists the outputs of other desks as inputs in the instructions. They are copied when
// those desks are completed.
func (d Dependencies) Provided() (all []Provided) {
	for _, dep := range d.DependsOn {
		for _, output := range dep.Outputs {
			if to, err := dep.target(output); err == nil {
				all = append(all, Provided{strings.TrimPrefix(to, Inbox+"/"), "from " + dep.Agent + ", copied when it has completed"})
			}
		}
	}
	return all
}

// Names lists the desks that a desk waits for, each once.
func (d Dependencies) Names() []string {
	names := slices.Clone(d.WaitFor)
	for _, dep := range d.DependsOn {
		if !slices.Contains(names, dep.Agent) {
			names = append(names, dep.Agent)
		}
	}
	return names
}

// CheckDeadlock returns an error if the desks that this one waits for, which lie beside it, wait for it
// too.
func (d *Desk) CheckDeadlock() error {
	seen := map[string]bool{}
	var find func(from *Desk, way []string) error
	find = func(from *Desk, way []string) error {
		deps, err := from.Dependencies()
		if err != nil {
			return nil //nolint:nilerr // `swarm desk run` of that desk reports it
		}
		for _, name := range deps.Names() {
			way := append(slices.Clone(way), name)
			if name == d.Name() {
				return swarm.Errorf(swarm.BadInput, "deadlock: %s", strings.Join(way, " waits for ")).
					WithHint("correct %s of one of them", DependenciesFile)
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			other, err := Open(filepath.Join(filepath.Dir(d.path), name))
			if err != nil {
				continue
			}
			err = find(other, way)
			other.Close()
			if err != nil {
				return err
			}
		}
		return nil
	}
	return find(d, []string{d.Name()})
}

// Has returns why there is no such file or folder in the outbox, or nil.
func (d *Desk) Has(output string) error {
	name, err := localPath(output, Outbox, false)
	if err == nil {
		if err = checkParents(d.root, name); err == nil {
			_, err = d.root.Lstat(name)
		}
		if err != nil {
			return d.unusable(output, err)
		}
	}
	return err
}

// Receive copies the declared outputs of a finished agent into the inbox, before the worker starts. A
// missing output is an error that names it: the worker must not start without it. It returns the files
// that are too large to copy, for the caller to name in the instructions.
func (d *Desk) Receive(dep Dependency, from *Desk) (references []Recorded, err error) {
	if err := dep.check(); err != nil {
		return nil, err
	}
	for _, name := range dep.Outputs {
		to, err := dep.target(name)
		if err != nil {
			return references, err
		}
		source, err := localPath(name, Outbox, false)
		if err != nil {
			return references, err
		}
		large, err := d.copyFrom(from.root, source, to)
		if err != nil {
			return references, swarm.Errorf(swarm.WaitFailed, "the output %s of %s, which %s depends on: %w", name, dep.Agent, d.Name(), err).
				WithHint("see what it has: swarm desk collect %s", from.path)
		}
		references = append(references, large...)
	}
	return references, nil
}
