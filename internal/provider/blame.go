package provider

import (
	"regexp"
	"strconv"
	"sync"
)

// Programs that give no status say in words what their model's server has answered. These are the words that were seen, or that
// their sources hold; they are looked for here and nowhere else. Most turns go well, so they are read when one does not.
var tells = sync.OnceValue(func() (t struct{ status, limit, login *regexp.Regexp }) {
	t.status = regexp.MustCompile(`(?i)\b(?:status|http|error|code|rejected)\b[ :=("]*([345]\d\d)\b`)
	t.limit = regexp.MustCompile(`(?i)too many requests|rate.?limit|(usage|hourly|weekly|session).limit|limit reached|exceeded your limit|quota|` +
		`overloaded|high demand|at capacity|exhausted your capacity|resource.?(has been )?exhausted|credit balance`)
	t.login = regexp.MustCompile(`(?i)unauthorized|unauthenticated|not (logged|signed) in|/login\b|(log|sign) in again|(invalid|incorrect|missing).{0,10}api.?key|` +
		`api.?key.{0,12}(invalid|incorrect|missing|not valid|not configured)|missing environment variable: .{0,40}(key|token)|` +
		`authentication.{0,10}(failed|error|required)|(token|login) (has |is )?expired`)
	return t
})

// Blame reads out of what a program says what its model's server has answered: a status, or 0, and whether the server was too busy
// or wanted a login.
func Blame(text string) (status int, limit, login bool) {
	if found := tells().status.FindStringSubmatch(text); found != nil {
		status, _ = strconv.Atoi(found[1])
	}
	switch status {
	case 429, 503, 529:
		return status, true, false
	case 401, 403:
		return status, false, true
	}
	limit = tells().limit.MatchString(text)
	return status, limit, !limit && tells().login.MatchString(text)
}
