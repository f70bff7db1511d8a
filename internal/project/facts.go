package project

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"swarm/internal/contextpack"
)

// A stack is what one manifest tells: a language and its usual tools.
type stack struct{ language, name, manager, test string }

// facts collects what the manifests of the folder tell. A test target in a Makefile replaces the
// usual test command of a language.
func (s *surveyor) facts() contextpack.Notes {
	var languages, names, managers, tests []string
	add := func(to *[]string, value string) {
		if value != "" && !slices.Contains(*to, value) {
			*to = append(*to, value)
		}
	}
	for _, look := range []func() (stack, bool){s.goModule, s.node, s.python, s.rust, s.others} {
		if found, ok := look(); ok {
			add(&languages, found.language)
			add(&names, found.name)
			add(&managers, found.manager)
			add(&tests, found.test)
		}
	}
	if match(makesTest, s.read(s.here("Makefile", "GNUmakefile"))) != "" {
		tests = []string{"make test"}
	}
	var facts contextpack.Notes
	for _, f := range []struct {
		name   string
		values []string
	}{{"language", languages}, {"name", names}, {"packageManager", managers}, {"testCommand", tests}} {
		if len(f.values) > 0 {
			facts = append(facts, contextpack.Text(f.name, truncate(oneLine(strings.Join(f.values, ", ")), summaryBytes)))
		}
	}
	return facts
}

// Patterns for manifests. A run uses each of them once, so they are compiled where they are used.
const (
	makesTest  = `(?m)^(test)[ \t]*:[^=]`
	moduleName = `(?m)^module[ \t]+"?([^\s"]+)`
	tomlName   = `(?m)^name[ \t]*=[ \t]*"([^"\n]+)"`
)

// match returns the first group of the first match of expr in text.
func match(expr, text string) string {
	if text == "" {
		return ""
	}
	if m := regexp.MustCompile(expr).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func (s *surveyor) goModule() (stack, bool) {
	text := s.read("go.mod")
	return stack{"go", match(moduleName, text), "go modules", "go test ./..."}, text != ""
}

// A manifest is the part of package.json that a survey reads.
type manifest struct {
	Name            string            `json:"name"`
	Main            string            `json:"main"`
	Bin             json.RawMessage   `json:"bin"`
	PackageManager  string            `json:"packageManager"`
	Scripts         map[string]string `json:"scripts"`
	DevDependencies map[string]string `json:"devDependencies"`
}

func (s *surveyor) manifest() (m manifest, ok bool) {
	text := s.read("package.json")
	return m, text != "" && json.Unmarshal([]byte(text), &m) == nil
}

func (s *surveyor) node() (stack, bool) {
	m, ok := s.manifest()
	if !ok {
		return stack{}, false
	}
	found := stack{language: "javascript", name: m.Name, manager: "npm"}
	if _, typed := m.DevDependencies["typescript"]; typed || s.has("tsconfig.json") {
		found.language = "typescript"
	}
	for _, lock := range [][2]string{
		{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
		{"package-lock.json", "npm"},
	} {
		if s.has(lock[0]) {
			found.manager = lock[1]
			break
		}
	}
	if name, _, _ := strings.Cut(m.PackageManager, "@"); slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name) {
		found.manager = name
	}
	if test := m.Scripts["test"]; test != "" && !strings.Contains(test, "no test specified") {
		found.test = found.manager + " test"
		if found.manager == "bun" {
			found.test = "bun run test"
		}
	}
	return found, true
}

// mains returns the entry points that package.json names.
func (s *surveyor) mains() (names []string) {
	m, ok := s.manifest()
	if !ok {
		return nil
	}
	if m.Main != "" {
		names = append(names, m.Main)
	}
	var one string
	if json.Unmarshal(m.Bin, &one) == nil && one != "" {
		names = append(names, one)
	}
	var many map[string]string
	if json.Unmarshal(m.Bin, &many) == nil {
		for _, name := range many {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *surveyor) python() (stack, bool) {
	text := s.read("pyproject.toml")
	if text == "" && s.here("requirements.txt", "setup.py", "Pipfile") == "" {
		return stack{}, false
	}
	found := stack{language: "python", name: match(tomlName, text), manager: "pip"}
	switch {
	case s.has("uv.lock"):
		found.manager = "uv"
	case s.has("poetry.lock") || strings.Contains(text, "[tool.poetry"):
		found.manager = "poetry"
	case s.has("Pipfile"):
		found.manager = "pipenv"
	}
	if strings.Contains(text, "pytest") || s.has("pytest.ini") || strings.Contains(s.read("requirements.txt"), "pytest") {
		found.test = "pytest"
	}
	return found, true
}

func (s *surveyor) rust() (stack, bool) {
	text := s.read("Cargo.toml")
	return stack{"rust", match(tomlName, text), "cargo", "cargo test"}, text != ""
}

// others covers the languages whose manifest only has to exist: its content is not read.
func (s *surveyor) others() (stack, bool) {
	for _, known := range []struct {
		file string
		stack
	}{
		{"pom.xml", stack{"java", "", "maven", "mvn test"}},
		{"build.gradle", stack{"java", "", "gradle", "gradle test"}},
		{"build.gradle.kts", stack{"kotlin", "", "gradle", "gradle test"}},
		{"Gemfile", stack{"ruby", "", "bundler", ""}},
		{"composer.json", stack{"php", "", "composer", ""}},
		{"mix.exs", stack{"elixir", "", "mix", "mix test"}},
		{"CMakeLists.txt", stack{"c/c++", "", "cmake", "ctest"}},
	} {
		if s.has(known.file) {
			return known.stack, true
		}
	}
	return stack{}, false
}
