package provider

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // End runs in the goroutines of timers too
		var ended []string
		end := func(p string) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, p)
		}
		idle := Idle[string]{End: end, For: time.Minute}
		coder, tester := Request{Run: "r", Agent: "coder"}, Request{Run: "r", Agent: "tester"}
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(ended, want) {
				t.Errorf("%s: %q have ended, want %q", what, ended, want)
			}
		}
		if p, ok := idle.Take(coder); ok {
			t.Errorf("%q waits for nobody", p)
		}
		idle.Keep(coder, "one")
		idle.Keep(tester, "two")
		time.Sleep(40 * time.Second)
		if p, ok := idle.Take(coder); !ok || p != "one" {
			t.Errorf("%q waits for the coder", p)
		}
		idle.Keep(coder, "one") // and its time begins anew
		idle.Keep(coder, "three")
		check("the coder has one already", "three")
		time.Sleep(40 * time.Second)
		check("the tester's has waited for too long", "three", "two")
		if p, ok := idle.Take(tester); ok {
			t.Errorf("%q waits, and has ended", p)
		}
		if err := idle.Close(); err != nil {
			t.Error(err)
		}
		check("nobody comes any more", "three", "two", "one")
		idle.Keep(tester, "four")
		check("and later neither", "three", "two", "one", "four")
		time.Sleep(time.Hour)
		check("each ends once", "three", "two", "one", "four")
	})
}
