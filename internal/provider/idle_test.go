package provider

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		idle := Idle[string]{End: func(p string) { ended = append(ended, p) }, For: time.Minute}
		coder, tester := Request{Run: "r", Agent: "coder"}, Request{Run: "r", Agent: "tester"}
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
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
