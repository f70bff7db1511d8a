package simulation

import (
	"flag"
	"os"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

var (
	oneSeed  = flag.Int64("seed", -1, "simulate this seed only, and print its log with -v")
	allSeeds = flag.Int("seeds", 0, "how many seeds to simulate")
)

// seeds is how many seeds are simulated.
func seeds() int {
	switch {
	case *allSeeds > 0:
		return *allSeeds
	case os.Getenv("SWARM_TEST_LONG") != "":
		return 10_000
	case testing.Short():
		return 40
	}
	return 200
}

// simulate simulates one seed and reports broken promises.
func simulate(t *testing.T, seed uint64) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed)
		w.simulate()
		w.check()
	})
	if len(w.wrong) > 0 {
		t.Errorf("seed %d: %s\nto repeat it: go test ./internal/simulation -run TestSeeds -seed %d -v", seed, strings.Join(w.wrong, "\n"), seed)
	}
	return w
}

// regressions are seeds that once broke a promise.
var regressions = map[uint64]string{
	3:    "mail that came before a crashed turn of a pipeline started again was taken for read, and no turn got it",
	2779: "after a takeover, turns that had waited for others started beyond max_parallel",
	2976: "the same, with turns of an earlier process that were taken over twice",
	3436: "a replay told one run_pausing less: two had the same key after a takeover during a pause",
	8533: "the same, with a turn that was cut before the pause",
	9899: "the same, with the second attempt of a turn",
}

// TestSeeds simulates runs with faults.
func TestSeeds(t *testing.T) {
	if *oneSeed >= 0 {
		w := simulate(t, uint64(*oneSeed))
		t.Logf("%s\n%s", strings.Join(w.done, "\n"), w.log())
		for _, c := range w.calls {
			t.Logf("process %d called %s from %v to %v, read %v, used %d\n%s", c.process, c.turn, c.began, c.ended, c.read, c.used, c.prompt)
		}
		return
	}
	for seed, was := range regressions {
		if w := simulate(t, seed); len(w.wrong) > 0 {
			t.Errorf("seed %d fails again: %s", seed, was)
		}
	}
	failed := 0
	for seed := range uint64(seeds()) {
		if w := simulate(t, seed); len(w.wrong) > 0 {
			if failed++; failed == 10 {
				t.Fatal("ten seeds are enough")
			}
		}
	}
}

// TestSameSeedSameLog simulates seeds twice. Both logs must have the same bytes, or a failing seed
// could not be repeated.
func TestSameSeedSameLog(t *testing.T) {
	for seed := range uint64(seeds() / 10) {
		logs := [2]string{}
		for i := range logs {
			cryptotest.SetGlobalRandom(t, seed)
			w := simulate(t, seed)
			logs[i] = w.log()
		}
		if logs[0] != logs[1] {
			a, b := strings.Split(logs[0], "\n"), strings.Split(logs[1], "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("seed %d: line %d is once\n%s\nand once\n%s", seed, i+1, a[i], b[i])
					break
				}
			}
		}
	}
}
