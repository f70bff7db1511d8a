package provider

import (
	"regexp"
	"strconv"
)

// Programs that give no status say in words what their model's server has answered. These are the words that were seen, or that
// their sources hold; they are looked for here and nowhere else.
var (
	tellsStatus = regexp.MustCompile(`(?i)\b(?:status|http|error|code|rejected)\b[ :=("]*([345]\d\d)\b`)
	tellsLimit  = regexp.MustCompile(`(?i)too many requests|rate.?limit|(usage|hourly|weekly|session).limit|limit reached|exceeded your limit|quota|overloaded|high demand|at capacity|exhausted your capacity|resource.?(has been )?exhausted|credit balance`)
	tellsLogin  = regexp.MustCompile(`(?i)unauthorized|unauthenticated|not (logged|signed) in|/login\b|(log|sign) in again|(invalid|incorrect|missing).{0,10}api.?key|api.?key.{0,12}(invalid|incorrect|missing|not valid|not configured)|missing environment variable: .{0,40}(key|token)|authentication.{0,10}(failed|error|required)|(token|login) (has |is )?expired`)
)

// Blame reads out of what a program says what its model's server has answered: a status, or 0, and whether the server was too busy
// or wanted a login.
func Blame(text string) (status int, limit, login bool) {
	if found := tellsStatus.FindStringSubmatch(text); found != nil {
		status, _ = strconv.Atoi(found[1])
	}
	switch status {
	case 429, 503, 529:
		return status, true, false
	case 401, 403:
		return status, false, true
	}
	limit = tellsLimit.MatchString(text)
	return status, limit, !limit && tellsLogin.MatchString(text)
}
