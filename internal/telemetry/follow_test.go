package telemetry

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"swarm"
	"swarm/internal/otlptest"
	"swarm/internal/sqlite"
)

const run = "20261115-082333-0j05me3"

// A stage is a run's log, written by hand, and a collector.
type stage struct {
	*testing.T
	log       swarm.RunLog
	collector *otlptest.Server

	mu      sync.Mutex
	notices []string
}

func newStage(t *testing.T) *stage {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, log: log, collector: otlptest.Start()}
	t.Cleanup(func() {
		log.Close()
		s.collector.Close()
	})
	s.write(swarm.RunStarted, "", swarm.RunStart{ID: run, Kind: swarm.PipelineRun, Name: "main"})
	s.write(swarm.PlanAdded, "", swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "mine", Kind: "claude-code"}}})
	return s
}

// write appends an event; turn is an agent's, whose name is its task's.
func (s *stage) write(kind swarm.EventKind, turn swarm.TurnID, body any) {
	s.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	agent, _, _ := strings.Cut(string(turn), "/")
	if _, err := s.log.Append(context.Background(), swarm.Batch{Events: []swarm.Event{{Kind: kind, Turn: turn, Agent: agent, Task: agent, Data: data}}}); err != nil {
		s.Fatal(err)
	}
}

// turn writes a whole turn.
func (s *stage) turn(id swarm.TurnID) {
	s.Helper()
	s.write(swarm.TurnStarted, id, swarm.TurnStart{Start: 1, Provider: "mine", Iteration: 1, Attempt: 1})
	s.write(swarm.TurnEnded, id, swarm.CallEnd{Status: swarm.CallOK, Usage: swarm.Usage{InputTokens: 10, OutputTokens: 2}})
}

// join follows the run as a process of its own would.
func (s *stage) join(vars ...string) (leave func()) {
	x := Open(env(append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.URL, "OTEL_BSP_SCHEDULE_DELAY=1"}, vars...)...), "v1")
	return x.Join(run, s.log, func(reason, hint string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notices = append(s.notices, reason+"; "+hint)
	})
}

// told lists the names and ids of the spans that the collector has.
func (s *stage) told() (all []string) {
	for _, x := range s.collector.Spans() {
		all = append(all, x.Name)
	}
	return all
}

func (s *stage) want(want ...string) {
	s.Helper()
	if got := s.told(); !slices.Equal(got, want) {
		s.Errorf("told was %q, not %q", got, want)
	}
}

// A process that takes a run over continues where the other one stopped.
func TestNothingIsToldTwice(t *testing.T) {
	s := newStage(t)
	leave := s.join()
	s.turn("a/1/1")
	s.write(swarm.TurnStarted, "b/1/1", swarm.TurnStart{Start: 1, Provider: "mine"})
	leave()
	s.want("invoke_agent a")

	leave = s.join()
	s.write(swarm.TurnStarted, "b/1/1", swarm.TurnStart{Start: 2, Provider: "mine"})
	s.write(swarm.TurnEnded, "b/1/1", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: "it said something"})
	s.write(swarm.RunEnded, "", swarm.RunEnd{Status: swarm.Failed, Exit: 1})
	leave()
	s.want("invoke_agent a", "invoke_agent b", "invoke_workflow main")
	if counts := s.collector.Counts(); !strings.Contains(counts, "swarm.turns gen_ai.agent.name=a swarm.outcome=ok: 1\n") {
		t.Errorf("counted was\n%s", counts)
	}
	if tree := s.collector.Tree(); strings.Contains(tree, "it said something") || !strings.Contains(tree, "invoke_agent b (client, error exited)") {
		t.Errorf("told was\n%s", tree)
	}
	s.join()()
	s.want("invoke_agent a", "invoke_agent b", "invoke_workflow main")
}

// What a killed process has not stored is sent again, as the same spans.
func TestWhatIsNotNotedIsTheSameAgain(t *testing.T) {
	s := newStage(t)
	leave := s.join()
	s.turn("a/1/1")
	leave()
	if err := (progress{}).save(s.log, 0); err != nil {
		t.Fatal(err)
	}
	s.join()()
	s.want("invoke_agent a", "invoke_agent a")
	spans := s.collector.Spans()
	if !proto.Equal(spans[0], spans[1]) {
		t.Errorf("%v is not %v", spans[0], spans[1])
	}
}

// A collector that comes back gets what it has missed; people are told once that it was away.
func TestACollectorThatWasAway(t *testing.T) {
	s := newStage(t)
	asked := make(chan struct{}, 100)
	s.collector.Answer(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		http.Error(w, "", http.StatusServiceUnavailable)
	})
	leave := s.join()
	for _, turn := range []swarm.TurnID{"a/1/1", "b/1/1", "c/1/1"} {
		s.turn(turn)
		<-asked
	}
	s.collector.Answer(nil)
	s.collector.Wait(3)
	leave()
	s.want("invoke_agent a", "invoke_agent b", "invoke_agent c")
	if len(s.notices) != 1 || !strings.Contains(s.notices[0], "503 Service Unavailable") {
		t.Errorf("said was %q", s.notices)
	}
}

// What a collector refuses for good is not sent again, and what comes after it is.
func TestWhatIsRefusedForGood(t *testing.T) {
	s := newStage(t)
	asked := make(chan struct{}, 100)
	s.collector.Answer(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		http.Error(w, "", http.StatusBadRequest)
	})
	leave := s.join("OTEL_METRICS_EXPORTER=none")
	s.turn("a/1/1")
	<-asked
	s.collector.Answer(nil)
	s.turn("b/1/1")
	s.collector.Wait(1)
	leave()
	s.want("invoke_agent b")
	if len(s.notices) != 1 {
		t.Errorf("said was %q", s.notices)
	}
}

func TestAPartThatIsRefusedIsSaid(t *testing.T) {
	s := newStage(t)
	s.collector.Answer(func(w http.ResponseWriter, _ *http.Request) {
		answer, _ := proto.Marshal(&tracepb.ExportTraceServiceResponse{PartialSuccess: &tracepb.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "too old"}})
		_, _ = w.Write(answer)
	})
	leave := s.join()
	s.turn("a/1/1")
	leave()
	if len(s.notices) != 1 || !strings.Contains(s.notices[0], `refused 1 of what it was sent: "too old"`) {
		t.Errorf("said was %q", s.notices)
	}
}

// The key of a collector goes to that collector only, and into no message.
func TestAKeyIsNotCarriedOn(t *testing.T) {
	s := newStage(t)
	other := otlptest.Start()
	defer other.Close()
	s.collector.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/v1/traces", http.StatusTemporaryRedirect)
	})
	leave := s.join("OTEL_EXPORTER_OTLP_HEADERS=x-key=canary", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+strings.Replace(s.collector.URL, "://", "://u:canary@", 1)+"/canary?key=canary")
	s.turn("a/1/1")
	leave()
	if n := len(other.Headers()); n != 0 {
		t.Errorf("another server was asked %d times", n)
	}
	if len(s.notices) != 1 || strings.Contains(s.notices[0], "canary") || !strings.Contains(s.notices[0], "307") {
		t.Errorf("said was %q", s.notices)
	}
}

func TestManySpansGoInBatchesAndSmall(t *testing.T) {
	s := newStage(t)
	for i := range 25 {
		s.turn(swarm.NewTurnID("a", i+1, 1))
	}
	s.join("OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_BSP_SCHEDULE_DELAY=60000")()
	if n := len(s.told()); n != 25 {
		t.Errorf("%d spans were told", n)
	}
	if n := len(s.collector.Headers()); n != 4 { // three times spans, once metrics
		t.Errorf("the collector was asked %d times", n)
	}
	for _, h := range s.collector.Headers() {
		if h.Get("Content-Encoding") != "gzip" {
			t.Errorf("sent was %v", h)
		}
	}
}

// The end of a run does not wait for a collector that hangs.
func TestACollectorThatHangs(t *testing.T) {
	s := newStage(t)
	s.collector.Answer(s.collector.Hang)
	leave := s.join("OTEL_BSP_EXPORT_TIMEOUT=20")
	s.turn("a/1/1")
	left := make(chan struct{})
	go func() {
		leave()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(time.Minute): // as long as the test may take, and less than the collector does
		t.Fatal("the run still waits")
	}
	if len(s.notices) != 1 || !strings.Contains(s.notices[0], "has waited 20ms") {
		t.Errorf("said was %q", s.notices)
	}
}
