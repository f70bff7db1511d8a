package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"swarm/internal/otlptest"
)

type collectorKey struct{}

// collector starts an OpenTelemetry collector, and sets $COLLECTOR to its URL. Its arguments make
// it hang, refuse or accept requests, or stop: collector, collector hangs, collector refuses,
// collector takes, collector gone. The command collector told 3 waits until it has received three
// spans.
func collector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 2 {
		ts.Fatalf("usage: collector [hangs | refuses | takes | gone | told spans]")
	}
	s, ok := ts.Value(collectorKey{}).(**otlptest.Server)
	if !ok {
		ts.Fatalf("no room for a collector")
	}
	if *s == nil {
		*s = otlptest.Start()
		ts.Defer((*s).Close)
		ts.Setenv("COLLECTOR", (*s).URL)
	}
	switch (append(args, "takes"))[0] {
	case "hangs":
		(*s).Answer((*s).Hang)
	case "refuses":
		(*s).Answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) })
	case "gone":
		(*s).Listener.Close()
	case "told":
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		(*s).Wait(n)
	default:
		(*s).Answer(nil)
	}
}

// collected writes what the collector received to a file: told tree want.txt, told counts
// counts.txt, told headers, told resource, told spans.
func collected(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: told tree|counts|headers|resource|spans file")
	}
	s := *ts.Value(collectorKey{}).(**otlptest.Server) //nolint:forcetypeassert // only this file puts anything there
	var b bytes.Buffer
	switch args[0] {
	case "tree":
		b.WriteString(s.Tree())
	case "counts":
		b.WriteString(s.Counts())
	case "resource":
		for _, line := range s.Resource() {
			fmt.Fprintln(&b, line)
		}
	case "headers":
		for _, h := range s.Headers() {
			ts.Check(h.Write(&b))
		}
	case "spans": // each that has an id of its own, and the number of its trace
		traces, seen := map[string]int{}, map[string]bool{}
		for _, x := range s.Spans() {
			if id := string(x.TraceId) + string(x.SpanId); !seen[id] {
				seen[id] = true
				if traces[string(x.TraceId)] == 0 {
					traces[string(x.TraceId)] = len(traces) + 1
				}
				fmt.Fprintf(&b, "trace %d %s\n", traces[string(x.TraceId)], x.Name)
			}
		}
	default:
		ts.Fatalf("nothing is called %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
}
