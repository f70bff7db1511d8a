package provider

import (
	"regexp"
	"strconv"
	"sync"
)

// Programs that give no status describe in words what their model's server has answered. These are
// the words that were seen, or that are in their sources. They are matched here and nowhere else.
// Most turns succeed, so the expressions are compiled when the first one does not.
var tells = sync.OnceValue(func() (t struct{ status, limit, login, network *regexp.Regexp }) {
	t.status = regexp.MustCompile(`(?i)\b(?:status|http|error|code|rejected)\b[ :=("]*([345]\d\d)\b`)
	t.limit = regexp.MustCompile(
		`(?i)too many requests|rate.?limit|(usage|hourly|weekly|session).limit|limit reached|exceeded your limit|hit your limit|out of extra usage|quota|` +
			`overloaded|high demand|at capacity|exhausted your capacity|resource.?(has been )?exhausted|credit balance`,
	)
	t.login = regexp.MustCompile(
		`(?i)unauthorized|unauthenticated|not (logged|signed) in|/login\b|(log|sign) in again|(invalid|incorrect|missing).{0,10}api.?key|` +
			`api.?key.{0,12}(invalid|incorrect|missing|not valid|not configured)|missing environment variable: .{0,40}(key|token)|` +
			`authentication.{0,10}(failed|error|required)|(token|login) (has |is )?expired`,
	)
	t.network = regexp.MustCompile(
		`(?i)\b(ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT)\b|getaddrinfo|unable to connect|cannot connect to|` +
			`connection (error|refused)|ConnectionRefused|fetch failed|error sending request|dns error|network is unreachable`,
	)
	return t
})

// Unreached says whether a program reports that it could not reach its model's server.
func Unreached(text string) bool { return tells().network.MatchString(text) }

// CheckNetwork is the hint for that.
const CheckNetwork = "it does not reach its model's server: see that the network, the proxy and the address in its settings are right, then try again"

// Blame finds in a program's text what its model's server has answered: a status, or 0, and whether
// it was a rate limit or a missing login.
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
