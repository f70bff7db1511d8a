package model_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
	"swarm/internal/provider/model"
)

// BenchmarkTurn measures a turn with a prompt of 4 KB and an answer of 2 KB. Its floor is the same
// exchange by net/http alone, with the answer thrown away.
func BenchmarkTurn(b *testing.B) {
	prompt := strings.Repeat("do what has to be done, well. ", 140)
	answer := modeltest.Answer{Text: strings.Repeat("here is what I have done, and why. ", 60), Usage: modeltest.Usage{Input: 1000, Output: 500}}
	for _, kind := range kinds {
		server := modeltest.Start(answer)
		spec := specOf(kind, server.URL)
		spec.Env = map[string]string{keyName(kind): "$LOCAL"}
		p, err := model.Open(spec, provider.Options{Environ: []string{"LOCAL=" + key}})
		if err != nil {
			b.Fatal(err)
		}
		turn := func(b *testing.B) {
			if reply, err := p.Turn(b.Context(), provider.Request{Prompt: prompt, Model: "tiny"}, func(swarm.Delta) {}); err != nil || len(reply.Output) != len(answer.Text) {
				b.Fatal(err)
			}
		}
		turn(b)
		body := server.Requests()[0].Body
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024
		client := &http.Client{Transport: transport}
		bare := func(b *testing.B) {
			w, err := client.Post(server.URL+"/v1"+paths[kind], "application/json", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, w.Body)
			w.Body.Close()
		}
		for _, side := range []struct {
			name string
			do   func(*testing.B)
		}{{"turn", turn}, {"floor", bare}} {
			b.Run(kind+"/"+side.name, func(b *testing.B) {
				for b.Loop() {
					side.do(b)
				}
			})
			b.Run(kind+"/1000-at-once/"+side.name, func(b *testing.B) {
				b.SetParallelism(500)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						side.do(b)
					}
				})
			})
		}
		server.Close()
	}
}
