package provider

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestResetAt(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Skip("the machine knows no time zones")
	}
	before := time.Local
	time.Local = zone
	defer func() { time.Local = before }()
	now := time.Date(2026, 10, 6, 16, 14, 0, 0, zone)
	for text, want := range map[string]string{
		"Claude AI usage limit reached|1791304200":                                                                  "10-06 18:30",
		"You've hit your limit · resets 7pm":                                                                        "10-06 19:00",
		"You've hit your session limit · resets 7:10pm (America/Los_Angeles)":                                       "10-07 04:10",
		"5-hour limit reached ∙ resets 2am":                                                                         "10-07 02:00",
		"You've hit your weekly limit · resets Oct 12, 8am (Europe/Paris)":                                          "10-12 08:00",
		"Weekly limit reached ∙ resets Oct 13 at 3pm":                                                               "10-13 15:00",
		"You've hit your weekly limit · resets Jan 2, 8am":                                                          "01-02 08:00",
		"You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again at 5:32 PM.": "10-06 17:32",
		"You've hit your usage limit. Try again at Oct 9th, 2026 5:32 AM.":                                          "10-09 05:32",
		"You've hit your usage limit. Upgrade to Pro or try again in 3 days 4 hours 5 minutes.":                     "10-09 20:19",
		"You have exhausted your capacity on this model. Your quota will reset after 3h2m10s.":                      "10-06 19:16",
		"Usage limit reached for all Pro models. Access resets at 10:57 PM GMT-3.":                                  "10-07 03:57",
		"Weekly usage limit reached. Resets in 19hr":                                                                "10-07 11:14",
		"You have exceeded the 5-hour usage quota. It will reset at 2026-10-06 23:11:46 +0800 CST.":                 "10-06 17:11",
		`{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1791304200}`:        "10-06 18:30",
		`{"error":{"type":"usage_limit_reached","resets_in_seconds":9568}}`:                                         "10-06 18:53",
		`{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7200.6s"}]}}`:       "10-06 18:14",
		"Rate limit reached for gpt-5 in organization org-1 on tokens per day. Please try again in 7m12s.":          "10-06 16:21",
		"Free usage exceeded, subscribe to Go [retrying in 73801s - attempt #1]":                                    "10-07 12:44",
		"resets 4:10pm": "10-06 16:10", // it has just passed
		"Your limit will reset at 1pm (Etc/GMT+5)":      "10-06 20:00",
		"You've hit your usage limit. Try again later.": "",
		"Please try again in a moment":                  "",
		"rate limited, retry 3 times":                   "",
		"the file reset.go has 12 lines":                "",
		"resets Foo 12, 8am":                            "",
		"resets 25pm":                                   "",
		"try again at 99:99":                            "",
		"":                                              "",
	} {
		got := ""
		if at := ResetAt(text, now); !at.IsZero() {
			got = at.In(zone).Format("01-02 15:04")
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What a server says is used up is waited for, if it takes longer than the usual pauses.
func TestResetsInHeaders(t *testing.T) {
	soon, later := time.Now().Add(20*time.Second), time.Now().Add(3*time.Hour)
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": later.Format(time.RFC3339)}, 3 * time.Hour},
		{map[string]string{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": strconv.FormatInt(later.Unix(), 10)}, 3 * time.Hour},
		{map[string]string{"anthropic-ratelimit-unified-status": "allowed", "anthropic-ratelimit-unified-reset": strconv.FormatInt(later.Unix(), 10)}, 0},
		{map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "3h0m0s", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "9h"}, 3 * time.Hour},
		{map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": strconv.FormatInt(later.UnixMilli(), 10)}, 3 * time.Hour},
		{map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": strconv.FormatInt(soon.Unix(), 10)}, 0},
		{map[string]string{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": strconv.FormatInt(time.Now().Add(4*time.Minute).Unix(), 10)}, 4 * time.Minute},
		{map[string]string{"retry-after": "2", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "3h"}, 2 * time.Second},
	} {
		h := http.Header{}
		for name, value := range c.header {
			h.Set(name, value)
		}
		if got := RetryAfter(h); got.Round(time.Minute) != c.want.Round(time.Minute) {
			t.Errorf("%v: %s, want %s", c.header, got, c.want)
		}
	}
}
