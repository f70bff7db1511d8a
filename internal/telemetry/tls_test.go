package telemetry

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A collector with an unknown certificate gets nothing; one whose certificate is named gets
// everything.
func TestACertificateOfOnesOwn(t *testing.T) {
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(vars ...string) Health {
		x := Open(env(append(vars, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+s.URL)...), "v1")
		return x.Check(context.Background())[0]
	}
	if h := check(); !strings.Contains(h.Problem, "certificate") || asked != 0 {
		t.Errorf("%+v, asked %d times", h, asked)
	}
	if h := check("OTEL_EXPORTER_OTLP_CERTIFICATE=" + file); h.Problem != "" || asked != 1 {
		t.Errorf("%+v, asked %d times", h, asked)
	}
}
