package main

import (
	"strings"
	"testing"
	"time"

	"swarm"
)

// The time that a run took, in a list of runs, is without its pauses.
func TestListedTime(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 30, 0, 0, time.UTC)
	s := swarm.RunSummary{ID: "20261115-133000-abcdefg", Status: swarm.Completed, Started: now.Add(-time.Hour), Ended: now, Pauses: 50 * time.Minute}
	running := swarm.RunSummary{ID: "20261115-135000-abcdefg", Status: swarm.Paused, Started: now.Add(-time.Hour), Since: now.Add(-57 * time.Minute)}
	var out strings.Builder
	if err := runTable([]swarm.RunSummary{s, running}, false, now).Print(&out, 0, false); err != nil || !strings.Contains(out.String(), "10m") || !strings.Contains(out.String(), "3m") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "2w": 14 * 24 * time.Hour,
		"1w2d3h": (9*24 + 3) * time.Hour, "1.5d": 36 * time.Hour, "0d": 0,
	} {
		if got, err := span(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "7", "d", "7x", "-1h", "-1d", "3h2d", "1d2w", "nand", "1e9d", "infd", "5218w300d", "876600h1d", "9999999h", "1d 2h"} {
		if got, err := span(text); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestSince(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 11, 15, 14, 30, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"":                     {},
		"10m":                  now.Add(-10 * time.Minute),
		"2d":                   now.Add(-48 * time.Hour),
		"2026-11-14":           time.Date(2026, 11, 14, 0, 0, 0, 0, zone),
		"2026-11-14 10:00":     time.Date(2026, 11, 14, 10, 0, 0, 0, zone),
		"2026-11-14T10:00:05":  time.Date(2026, 11, 14, 10, 0, 5, 0, zone),
		"2026-11-14T10:00:00Z": time.Date(2026, 11, 14, 10, 0, 0, 0, time.UTC),
		"09:15":                time.Date(2026, 11, 15, 9, 15, 0, 0, zone),
	} {
		if got, err := since(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "25:00", "2026-13-01", "10"} {
		if got, err := since(text, now); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Any text is either refused or a duration within the limits.
func FuzzSpan(f *testing.F) {
	for _, seed := range []string{"0", "7d", "2w", "1w2d3h", "1h30m", "nand", "1e400d", "-1d", "ddd", "w"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := span(text)
		if err == nil && (d < 0 || d > 36525*24*time.Hour) {
			t.Errorf("%q is %v", text, d)
		}
		if err != nil && swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v", text, err)
		}
	})
}
