package swarm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
)

func TestRunIDs(t *testing.T) {
	at := time.Date(2026, 11, 15, 14, 32, 5, 0, time.FixedZone("", 3600))
	var ids []string
	for ms := range 2500 {
		ids = append(ids, string(swarm.NewRunID(at.Add(time.Duration(ms)*time.Millisecond))))
	}
	if !slices.IsSorted(ids) {
		t.Error("they do not sort by time")
	}
	if !strings.HasPrefix(ids[0], "20261115-133205-00") || !swarm.IsRunID(ids[0]) || len(ids[0]) != 23 {
		t.Errorf("the first is %s", ids[0])
	}
	same := map[swarm.RunID]bool{}
	for range 1000 {
		same[swarm.NewRunID(at)] = true
	}
	if len(same) < 999 {
		t.Errorf("1000 ids of the same instant are only %d", len(same))
	}
}
