package mail

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Claim is an agent's sentence that claims to have written to another agent.
type Claim struct {
	Agent string // the claimed receiver
	Quote string
}

// Claims finds sentences in which an agent claims to have just handed something to another agent:
// "I sent the plan to @coder". It prefers misses to false alarms. Quotes, negations, plans, and
// reports about others or another time don't count. A name that is a common word counts only after
// an @.
func Claims(output string, others []string) (claims []Claim) {
	for _, sentence := range sentences(ownWords(output)) {
		m := didWrite().FindStringSubmatch(sentence)
		if m == nil {
			m = headline().FindStringSubmatch(sentence)
		}
		if m == nil || otherwise().MatchString(sentence) {
			continue
		}
		verb, rest := strings.ToLower(m[1]), m[2]
		for _, name := range others {
			if namesReceiver(verb, rest, name) && !slices.ContainsFunc(claims, func(c Claim) bool { return c.Agent == name }) {
				claims = append(claims, Claim{name, short(sentence)})
			}
		}
	}
	return claims
}

// MayClaim reports whether Claims can find anything in an output, for any list of agents. It is cheap,
// and rules out most outputs.
func MayClaim(output string) bool {
	text := strings.ToLower(emphasis.Replace(output))
	return slices.ContainsFunc(strings.Split(didVerbs, "|"), func(verb string) bool { return strings.Contains(text, verb) })
}

// didVerbs are the verbs of claims.
const didVerbs = "sent|handed|forwarded|passed|delivered|delegated|assigned|messaged|emailed|notified|informed|told|asked"

// pattern compiles an expression on first use, so that it does not slow down the start of a
// command.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// didWrite matches a sentence about what its speaker has done: the verb and the rest.
var didWrite = pattern(`(?i)^(?:(?:ok|okay|done|great|so|then|now|also|finally|first|and|next|yes|good)\s*[,:—-]?\s+)*` +
	`(?:(?:i|we)(?:['’]ve|\s+have)?\s+)?(?:(?:now|just|also|then|successfully)\s+)*` +
	`(` + didVerbs + `)\b(.*)$`)

// headline matches the same without a subject: "Plan delivered to @coder". It must end with an @name.
var headline = pattern(`(?i)^(?:the\s+)?[a-z]+\s+(sent|handed|forwarded|delivered)` +
	`(\s+(?:off\s+|over\s+|on\s+)?to\s+@[a-z][a-z0-9-]*)$`)

// otherwise matches words that change the meaning: it did not happen, not now, or it is a question.
var otherwise = pattern(`(?i)\b(?:not|never|nothing|nobody|without|unable|cannot|failed|refused|already|earlier|` +
	`previously|before|yesterday|last|previous|ago|if|unless|would|could|should|might|may)\b|n['’]t\b|\?$`)

// common are agents' names that are also common words: "I sent the build to test it".
var common = []string{
	"all", "build", "check", "code", "deploy", "design", "docs", "draft", "edit", "fix", "help", "judge", "lead", "main",
	"merge", "plan", "release", "research", "review", "run", "search", "ship", "summary", "test", "tests", "work", "write",
}

// after matches what may follow a name: "to coder's branch" and "to coder tools" name something else.
var after = pattern(`^(?:$|[,;:)!.…—-]\s|[,;:)!.…—-]*$|\s+(?:for|with|so|and|as|who|via|by|in|about|to|using|that|what|how|` +
	`why|where|whether|everything|all|it|a|an|the|my|our|this|these|its|his|her|their|again|too|now|directly|` +
	`through|\()\b|\s*\()`)

// namesReceiver reports whether the text after a verb names an agent as the receiver.
func namesReceiver(verb, rest, name string) bool {
	behind := `(?i)^(?:\s+off|\s+over|\s+on)?\s+(?:the\s+|our\s+)?`
	direct := verb == "messaged" || verb == "emailed" || verb == "notified" || verb == "informed" || verb == "told" || verb == "asked"
	patterns := []string{`(?i)\bto\s+(?:the\s+|our\s+)?`}
	if direct {
		patterns = []string{behind}
	} else if verb == "sent" {
		patterns = append(patterns, behind)
	}
	at := `@`
	if !slices.Contains(common, name) {
		at = `@?`
	}
	for _, p := range patterns {
		found := regexp.MustCompile(p + at + regexp.QuoteMeta(name) + `(?:\s+agent\b)?`).FindStringIndex(rest)
		if found != nil && after().MatchString(rest[found[1]:]) {
			return true
		}
	}
	return false
}

var (
	fenced  = pattern("(?ms)^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[^\n]*$|\\z)")
	ticked  = pattern("`(@?[a-z][a-z0-9-]*)`")
	inCode  = pattern("`[^`\n]*`")
	quoting = pattern(`(?m)^\s*(?:>|    |\t).*$`)
	quoted  = pattern(`"[^"\n]*"|“[^”\n]*”|«[^»\n]*»`)
	bullet  = pattern(`^(?:[-*+•]|\d+[.)])\s+|^#+\s+`)
	ended   = pattern(`[.!?](?:\s+|$)|\n|;\s`)
)

// ownWords removes code and quotes from a text, because they are not the agent's own words.
func ownWords(text string) string {
	text = fenced().ReplaceAllString(text, "")
	text = quoting().ReplaceAllString(text, "")
	text = ticked().ReplaceAllString(text, "$1")
	text = inCode().ReplaceAllString(text, "…")
	text = quoted().ReplaceAllString(text, "…")
	return emphasis.Replace(text)
}

// emphasis removes the marks of bold text.
var emphasis = strings.NewReplacer("**", "", "__", "")

func sentences(text string) (all []string) {
	for len(text) > 0 {
		end := ended().FindStringIndex(text)
		if end == nil {
			end = []int{len(text), len(text)}
		}
		sentence := text[:end[0]]
		if end[0] < len(text) && text[end[0]] == '?' {
			sentence += "?"
		}
		if sentence = bullet().ReplaceAllString(strings.TrimSpace(sentence), ""); sentence != "" {
			all = append(all, sentence)
		}
		text = text[end[1]:]
	}
	return all
}
