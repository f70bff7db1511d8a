package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarm"
)

// Duration formats a time span: 12ms, 3.2s, 41s, 3m05s, 2h03m, 3d04h.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < 100*time.Millisecond:
		return strconv.FormatInt(max(1, d.Milliseconds()), 10) + "ms"
	case d < 9950*time.Millisecond:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Tokens formats the tokens of a usage: 950, 1.2k, 45k, 1.3M, with ~ if some are estimated, "" for
// none.
func Tokens(u swarm.Usage) string {
	n := u.Tokens()
	if n == 0 {
		return ""
	}
	text := Count(n)
	if u.Estimated {
		return "~" + text
	}
	return text
}

// Cached formats the part of the input that came from the provider's cache: 82%, "" for nothing.
func Cached(u swarm.Usage) string {
	if u.CachedTokens == 0 || u.InputTokens == 0 {
		return ""
	}
	return strconv.FormatInt(min(100, 100*u.CachedTokens/u.InputTokens), 10) + "%"
}

// SomeTokens formats the tokens of a usage with their noun: 1 token, ~24 tokens, "" for none. It says
// how many calls were cut with their process.
func SomeTokens(u swarm.Usage) string {
	text := Tokens(u) + " tokens"
	switch u.Tokens() {
	case 0:
		text = ""
	case 1:
		text = Tokens(u) + " token"
	}
	cut := "1 call was cut"
	switch {
	case u.CutCalls == 0:
		return text
	case u.CutCalls > 1:
		cut = fmt.Sprintf("%d calls were cut", u.CutCalls)
	}
	if text == "" {
		return cut
	}
	return text + " (" + cut + ")"
}

// Count formats a number: 950, 1.2k, 45k, 1.3M.
func Count(n int64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		switch v := float64(n) / unit.of; {
		case v >= 9.95:
			return strconv.FormatFloat(v, 'f', 0, 64) + unit.name
		case v >= 1 || v >= 0.9995:
			return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Bytes formats a size.
func Bytes(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	text := Count(n)
	return text[:len(text)-1] + " " + text[len(text)-1:] + "B"
}

// Dollars formats what something cost, with a ~ if tokens that it used were estimated, "" for nothing.
func Dollars(u swarm.Usage) string {
	text := USD(u.USD)
	if text != "" && u.Estimated {
		return "~" + text
	}
	return text
}

// USD formats an amount of money, "" for none.
func USD(amount float64) string {
	switch {
	case amount <= 0:
		return ""
	case amount < 0.01:
		return "<$0.01"
	}
	return "$" + strconv.FormatFloat(amount, 'f', 2, 64)
}

// Plural formats a number with its noun.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}

// Cost formats what something took, in brackets with a blank in front: " (3.2s, 1.2k tokens)", ""
// for nothing.
func Cost(took time.Duration, u swarm.Usage, more ...string) string {
	var parts []string
	if took >= 0 {
		parts = append(parts, Duration(took))
	}
	for _, p := range append([]string{SomeTokens(u)}, more...) {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// More says how many rows have no room, and counts them by word, in the order of the words: … 3
// more (2 running, 1 idle).
func More(words []string) string {
	count := map[string]int{}
	var order []string
	for _, word := range words {
		if count[word] == 0 {
			order = append(order, word)
		}
		count[word]++
	}
	for i, word := range order {
		order[i] = fmt.Sprintf("%d %s", count[word], word)
	}
	return fmt.Sprintf("… %d more (%s)", len(words), strings.Join(order, ", "))
}
