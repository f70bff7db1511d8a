package temporal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"reflect"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/engine/enginetest"
	"swarm/internal/flow"
	"swarm/internal/postgres"
	"swarm/internal/postgrestest"
	"swarm/internal/sqlite"
	"swarm/internal/temporaltest"
)

// connect connects to a Temporal server of this test binary.
func connect(t *testing.T) client.Client {
	t.Helper()
	handler := slog.DiscardHandler
	if os.Getenv("SWARM_TEST_TEMPORAL_LOG") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	c, err := client.Dial(client.Options{HostPort: temporaltest.Address(t), Logger: log.NewStructuredLogger(slog.New(handler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// options returns those of a run that no other test has.
func options(c client.Client) Options {
	name := rand.Text()
	return Options{Client: c, Queue: name, Prefix: name + "-", Heartbeat: 4 * time.Second, Pause: 20 * time.Millisecond}
}

func local(t *testing.T) swarm.Store { return sqlite.NewStore(t.TempDir()) }

// cluster runs the engine's suite, or a few seconds of it where the tests of many machines are not
// wanted.
func cluster(t *testing.T, c client.Client, store func(*testing.T) swarm.Store, change func(*Options), workers bool) {
	s := enginetest.Subject{Store: store, Workers: workers}
	if os.Getenv("SWARM_TEST_LONG") == "" {
		s.Step = 19
	}
	if os.Getenv("SWARM_TEST_CLUSTER") == "" {
		s.Step, s.Only = 37, []string{"a crash at every append", "cancel cuts a running turn", "two processes work for one run",
			"a turn is given to another process while the first one hangs"}
	}
	s.Engine = func(*testing.T) engine.Engine {
		o := options(c)
		change(&o)
		return Engine(o)
	}
	if workers {
		s.Hanging = func(*testing.T) (hangs, other engine.Engine) {
			o := options(c)
			o.Heartbeat = time.Second
			silent := o
			silent.beat = time.Hour
			return Engine(silent), Engine(o)
		}
	}
	enginetest.Run(t, s)
}

// onlyInCluster skips a test that takes long.
func onlyInCluster(t *testing.T) {
	t.Helper()
	if os.Getenv("SWARM_TEST_CLUSTER") == "" {
		t.Skip("it takes minutes: make test-cluster")
	}
}

func asTheyAre(*Options) {}

// The workflow goes on in another process, under the fence of the process that was lost.
func TestWorkers(t *testing.T) {
	cluster(t, connect(t), local, asTheyAre, true)
}

// A process that goes on after a crash takes the run, so another workflow begins with the log alone.
func TestConformance(t *testing.T) {
	onlyInCluster(t)
	cluster(t, connect(t), local, asTheyAre, false)
}

func TestContinueAsNewAfterEveryRecord(t *testing.T) {
	onlyInCluster(t)
	cluster(t, connect(t), local, func(o *Options) { o.Records = 1 }, false)
}

// The log is in a database that several machines share.
func TestSharedStore(t *testing.T) {
	onlyInCluster(t)
	c, address := connect(t), postgrestest.Address(t)
	cluster(t, c, func(t *testing.T) swarm.Store {
		s, err := postgres.NewStore(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return renamed{s, swarm.NewRunID(time.Now()) + "-"}
	}, asTheyAre, true)
}

// renamed is a store in which a test has its own runs.
type renamed struct {
	swarm.Store
	prefix swarm.RunID
}

func (s renamed) Create(ctx context.Context, run swarm.RunID) (swarm.RunLog, error) {
	return s.Store.Create(ctx, s.prefix+run)
}

func (s renamed) Open(ctx context.Context, run swarm.RunID, access swarm.Access) (swarm.RunLog, error) {
	return s.Store.Open(ctx, s.prefix+run, access)
}

// A call goes through histories as JSON, so each of its fields must.
func TestCallsSurviveJSON(t *testing.T) {
	var c flow.Call
	for i := range reflect.TypeFor[flow.Call]().NumField() {
		f := reflect.ValueOf(&c).Elem().Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		case reflect.Bool:
			f.SetBool(true)
		default:
			f.Set(reflect.ValueOf(swarm.NewMessage("code", "argument")))
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back flow.Call
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(c, back) {
		t.Errorf("%+v became %+v, %v", c, back, err)
	}
	if text, err = json.Marshal(flow.Call{ID: "a/1/1", Kind: flow.KindTurn}); err != nil || string(text) != `{"id":"a/1/1","kind":"turn"}` {
		t.Errorf("an empty call is %s, %v", text, err)
	}
}
