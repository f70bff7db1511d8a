package repl

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// crowd is a session in which fifty agents stream.
func crowd(b *testing.B) *fakeSession {
	f := newFake(b)
	f.team.Agents = nil
	for i := range 50 {
		f.team.Agents = append(f.team.Agents, fmt.Sprintf("agent-%02d", i))
	}
	f.team.Default = "agent-00"
	return f
}

// enlist has every agent begin a task.
func (f *fakeSession) enlist(b *testing.B) (tasks []string) {
	for _, name := range f.team.Agents {
		e, err := f.Enter("@" + name + " talk &")
		if err != nil {
			b.Fatal(err)
		}
		f.StartTask(e.Tasks[0])
		tasks = append(tasks, e.Tasks...)
	}
	return tasks
}

var chatter = strings.Fields(strings.Repeat("Each agent says words, 日本語 too, and `code`, which come one by one; and now and then\n a line ends. ", 20))

// stream has all tasks talk, each about 50 words a second, until it is stopped.
func stream(s *Screen, tasks []string) (stop func()) {
	quit := make(chan struct{})
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() {
			t := time.NewTicker(20 * time.Millisecond)
			defer t.Stop()
			for n := i; ; n++ {
				select {
				case <-quit:
					return
				case <-t.C:
				}
				word := chatter[n%len(chatter)] + " "
				if n%12 == 0 {
					word += "\n"
				}
				s.Delta(task, termtest.Text(word))
			}
		})
	}
	return func() { close(quit); all.Wait() }
}

func percentile(all []time.Duration, p float64) float64 {
	slices.Sort(all)
	return float64(all[min(len(all)-1, int(p*float64(len(all))))].Microseconds()) / 1000
}

// The cost of a key while fifty agents stream: from the message to the frame that shows it. The
// floor is the same without any output.
func BenchmarkKey(b *testing.B) {
	for _, talking := range []bool{false, true} {
		b.Run(map[bool]string{false: "silence", true: "50-agents"}[talking], func(b *testing.B) {
			f := crowd(b)
			s := NewScreen(f, view.New("x"), Options{Terminal: term.Terminal{In: strings.NewReader(""), Out: io.Discard, Now: time.Now, Color: true}})
			m := s.model
			s.window.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
			f.begin(s)
			tasks := f.enlist(b)
			for i := range 2000 { // a full transcript
				s.Delta(tasks[i%50], termtest.Text(strings.Join(chatter[:30], " ")+"\n"))
			}
			if talking {
				defer stream(s, tasks)()
			}
			var took []time.Duration
			for b.Loop() {
				if len(m.input.text) > 300 {
					m.input.set("")
				}
				begun := time.Now()
				s.window.Update(tea.KeyPressMsg{Code: 'a', Text: "$agent-07 "})
				took = append(took, time.Since(begun))
			}
			b.ReportMetric(percentile(took, 0.5), "p50-ms")
			b.ReportMetric(percentile(took, 0.99), "p99-ms")
		})
	}
}

// A watcher is a terminal that notes when a word is written to it.
type watcher struct {
	mu   sync.Mutex
	word string
	seen chan time.Time
}

func (w *watcher) Write(b []byte) (int, error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.word != "" && strings.Contains(string(b), w.word) {
		w.word = ""
		select {
		case w.seen <- now:
		default:
		}
	}
	return len(b), nil
}

func (w *watcher) watch(word string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.word = word
}

// bare is the smallest possible program: it shows the word that it was sent last.
type bare struct{ word string }

func (m *bare) Init() tea.Cmd { return nil }

func (m *bare) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if word, ok := msg.(string); ok {
		m.word = word
	}
	return m, nil
}

func (m *bare) View() tea.View {
	v := tea.NewView(m.word)
	v.AltScreen = true
	return v
}

// The time from a change of state, and from a key, to the bytes for the terminal, while fifty
// agents stream. The floor is a program that only shows one word, at sixty frames a second.
func BenchmarkToTerminal(b *testing.B) {
	env := []string{"TERM=xterm", "TERM_PROGRAM=Apple_Terminal"}
	b.Run("floor", func(b *testing.B) {
		w := &watcher{seen: make(chan time.Time, 1)}
		in, _ := io.Pipe()
		p := tea.NewProgram(&bare{}, tea.WithInput(in), tea.WithOutput(w), tea.WithFPS(60), tea.WithEnvironment(env), tea.WithWindowSize(160, 50), tea.WithoutSignalHandler())
		left := make(chan error)
		go func() { _, err := p.Run(); left <- err }()
		w.measure(b, func(word string) { p.Send(word) })
		p.Quit()
		if err := <-left; err != nil {
			b.Error(err)
		}
	})
	for _, what := range []string{"state", "key"} {
		b.Run(what, func(b *testing.B) {
			f := crowd(b)
			in, keys := io.Pipe()
			w := &watcher{seen: make(chan time.Time, 1)}
			s := NewScreen(f, view.New("x"), Options{Terminal: term.Terminal{In: in, Out: w, Now: time.Now, Color: true, Env: env, Size: func() (int, int) { return 160, 50 }}})
			left := make(chan error)
			go func() { _, err := s.Run(); left <- err }()
			f.begin(s)
			stop := stream(s, f.enlist(b))
			w.measure(b, func(word string) {
				if what == "state" {
					f.Tell(swarm.Notice, "", "", swarm.Reason{Reason: word})
				} else if _, err := io.WriteString(keys, "\x15"+word); err != nil {
					b.Fatal(err)
				}
			})
			stop()
			if err := s.Close(); err != nil {
				b.Error(err)
			}
			if err := <-left; err != nil {
				b.Error(err)
			}
		})
	}
}

// measure returns the time from an action until the terminal gets a word.
func (w *watcher) measure(b *testing.B, do func(word string)) {
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		time.Sleep(rand.N(40 * time.Millisecond)) // so that it comes anywhere between two frames
		word := string(rune(0xac00 + n%10_000))   // which nothing else holds: what has not changed is not written
		w.watch(word)
		begun := time.Now()
		do(word)
		select {
		case at := <-w.seen:
			took = append(took, at.Sub(begun))
		case <-time.After(time.Second): // it was said so much meanwhile that the word was never on the screen
			took = append(took, time.Second)
		}
	}
	b.ReportMetric(percentile(took, 0.5), "p50-ms")
	b.ReportMetric(percentile(took, 0.99), "p99-ms")
	b.ReportMetric(percentile(took, 1), "max-ms")
}
