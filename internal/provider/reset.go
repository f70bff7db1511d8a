package provider

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Servers and programs say in their own words when a limit resets. These forms were seen, or are in
// their sources. They are read here and nowhere else:
//
//	Claude AI usage limit reached|1760000000                                    Claude Code, before 2.0
//	You've hit your session limit · resets 7:10pm (America/Los_Angeles)         Claude Code
//	You've hit your weekly limit · resets Oct 12, 8am (Europe/Paris)            Claude Code
//	You've hit your usage limit. … or try again at 5:32 PM.                     Codex, of today
//	You've hit your usage limit. … try again at Jan 5th, 2026 5:32 PM.          Codex, of another day
//	You've hit your usage limit. … try again in 3 days 4 hours 5 minutes.       Codex, before 0.50
//	You have exhausted your capacity on this model. Your quota will reset after 3h2m10s.   Gemini CLI
//	Usage limit reached for all Pro models. Access resets at 10:57 PM GMT-3.    Gemini CLI
//	Weekly usage limit reached. Resets in 19hr                                  opencode
//	You have exceeded the 5-hour usage quota. It will reset at 2026-07-30 16:11:46 +0800 CST.
//	{"type":"usage_limit_reached","resets_at":1788879437,"resets_in_seconds":9568}         OpenAI
//	{"retryDelay":"51820.6s"}                                                   Gemini
var resets = sync.OnceValue(func() (r struct{ epoch, seconds, before, part, date, clock *regexp.Regexp }) {
	r.epoch = regexp.MustCompile(`(?i)(?:limit reached\||\\?"resets_?at\\?":\s*)(\d{10})\b`)
	r.seconds = regexp.MustCompile(`(?i)\\?"(?:resets_in_seconds|retry-?delay|retry-after)\\?":\s*\\?"?(\d+(?:\.\d+)?)s?\b`)
	r.before = regexp.MustCompile(`(?i)\b(?:resets?|try again|retry(?:ing)?)\b:?\s*(?:after|at|in|on)?\s+`)
	r.part = regexp.MustCompile(`(?i)^(\d+(?:\.\d+)?)\s*([a-z]+)[\s,]*(?:and\s+)?`)
	r.date = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?`)
	r.clock = regexp.MustCompile(`(?i)^(?:([a-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?(?:, ?(\d{4}))?,?\s+(?:at )?)?` +
		`(\d{1,2})(?::(\d\d))?\s*([ap]m)?\b\s*(?:\(([\w/+-]+)\)|(?:GMT|UTC)([+-]\d{1,2})?)?`)
	return r
})

// ResetAt finds in a text when a limit resets. Zero means that the text does not say. A time of day
// without a zone is meant where the program runs, which is here.
func ResetAt(text string, now time.Time) time.Time {
	r := resets()
	if found := r.epoch.FindStringSubmatch(text); found != nil {
		seconds, _ := strconv.ParseInt(found[1], 10, 64)
		return time.Unix(seconds, 0)
	}
	if found := r.seconds.FindStringSubmatch(text); found != nil {
		return now.Add(after(found[1], time.Second))
	}
	for _, at := range r.before.FindAllStringIndex(text, 20) {
		rest := text[at[1]:]
		if wait, ok := readDuration(rest); ok {
			return now.Add(wait)
		}
		if until, ok := readDate(rest); ok {
			return until
		}
		if until, ok := readClock(rest, now); ok {
			return until
		}
	}
	return time.Time{}
}

// units are the units of durations, as people and programs write them.
var units = map[string]time.Duration{
	"d": 24 * time.Hour, "day": 24 * time.Hour, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "m": time.Minute, "min": time.Minute,
	"minute": time.Minute, "s": time.Second, "sec": time.Second, "second": time.Second, "ms": time.Millisecond,
}

// readDuration reads a duration at the beginning of a text: 3h2m10s, 19hr, 3 days 4 hours.
func readDuration(text string) (sum time.Duration, ok bool) {
	for {
		found := resets().part.FindStringSubmatch(text)
		if found == nil {
			return sum, ok
		}
		unit := strings.ToLower(found[2])
		each, known := units[unit]
		if !known {
			each, known = units[strings.TrimSuffix(unit, "s")]
		}
		if !known {
			return sum, ok
		}
		sum, ok, text = min(sum+after(found[1], each), longestReset), true, text[len(found[0]):]
	}
}

// after is a number of units. What is too long for any limit is cut.
func after(number string, unit time.Duration) time.Duration {
	n, _ := strconv.ParseFloat(number, 64)
	return time.Duration(min(n*float64(unit), float64(longestReset)))
}

const longestReset = 365 * 24 * time.Hour

// readDate reads a date with a time at the beginning of a text.
func readDate(text string) (time.Time, bool) {
	found := resets().date.FindStringSubmatch(text)
	if found == nil {
		return time.Time{}, false
	}
	clock := found[2]
	if len(clock) == len("15:04") {
		clock += ":00"
	}
	zone, layout := strings.ReplaceAll(found[3], ":", ""), "2006-01-02 15:04:05"
	if zone == "" {
		at, err := time.ParseInLocation(layout, found[1]+" "+clock, time.Local)
		return at, err == nil
	}
	at, err := time.Parse(layout+"Z0700", found[1]+" "+clock+zone)
	return at, err == nil
}

// readClock reads a time of day at the beginning of a text, with or without a date. Without one the
// next such time is meant, or the one that has just passed.
func readClock(text string, now time.Time) (time.Time, bool) {
	found := resets().clock.FindStringSubmatch(text)
	if found == nil || found[5] == "" && found[6] == "" {
		return time.Time{}, false
	}
	hour, _ := strconv.Atoi(found[4])
	minute, _ := strconv.Atoi(found[5])
	switch half := strings.ToLower(found[6]); {
	case half != "" && (hour < 1 || hour > 12), hour > 23, minute > 59:
		return time.Time{}, false
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	zone := time.Local
	if found[7] != "" {
		if named, err := time.LoadLocation(found[7]); err == nil {
			zone = named
		}
	} else if offset, err := strconv.Atoi(found[8]); err == nil {
		zone = time.FixedZone("", offset*3600)
	}
	local := now.In(zone)
	if found[1] == "" {
		at := time.Date(local.Year(), local.Month(), local.Day(), hour, minute, 0, 0, zone)
		if at.Before(now.Add(-justPassed)) {
			at = at.AddDate(0, 0, 1)
		}
		return at, true
	}
	month, err := time.Parse("Jan", found[1][:1]+strings.ToLower(found[1][1:]))
	if err != nil {
		return time.Time{}, false
	}
	day, _ := strconv.Atoi(found[2])
	year, err := strconv.Atoi(found[3])
	if err != nil {
		year = local.Year()
	}
	at := time.Date(year, month.Month(), day, hour, minute, 0, 0, zone)
	if err != nil && at.Before(now.AddDate(0, 0, -1)) {
		at = at.AddDate(1, 0, 0)
	}
	return at, true
}

const justPassed = 10 * time.Minute

// RetryAfter returns how long a server wants no request; 0 = it does not say. A server that does not
// say so may still say when what is used up is there again. That counts as [IfLong] says.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return after(h.Get("Retry-After-Ms"), time.Millisecond)
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return after(text, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	var longest time.Duration
	for name, values := range h {
		if !strings.Contains(name, "Ratelimit") || !strings.Contains(name, "Reset") {
			continue
		}
		if h.Get(strings.Replace(name, "Reset", "Remaining", 1)) == "0" || h.Get(strings.Replace(name, "Reset", "Status", 1)) == "rejected" {
			longest = max(longest, resetHeader(values[0], time.Now()))
		}
	}
	return IfLong(longest)
}

// IfLong returns wait if it is longer than the usual pauses between retries, and 0 otherwise. It is
// for waits that a server mentions without asking for them: some servers name a reset time in every
// answer. The usual pauses cover a shorter wait.
func IfLong(wait time.Duration) time.Duration {
	if wait <= longestWait {
		return 0
	}
	return wait
}

// resetHeader reads the time in a header such as x-ratelimit-reset-tokens: a duration, a number of
// seconds, a date, or seconds or milliseconds since 1970.
func resetHeader(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case n >= 1e12:
			return time.UnixMilli(int64(min(n, 1e15))).Sub(now)
		case n >= 1e9:
			return time.Unix(int64(n), 0).Sub(now)
		}
		return after(text, time.Second)
	}
	if wait, ok := readDuration(text); ok {
		return wait
	}
	at, ok := readDate(text)
	if !ok {
		return 0
	}
	return at.Sub(now)
}
