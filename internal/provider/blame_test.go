package provider

import "testing"

func TestBlame(t *testing.T) {
	for text, want := range map[string]string{
		"exceeded retry limit, last status: 429 Too Many Requests": "limit",
		"API Error: Request rejected (429) · slow down":            "limit",
		"We’re currently experiencing high demand":                 "limit",
		"Selected model is at capacity":                            "limit",
		"You have exhausted your capacity on this model":           "limit",
		"Number of requests has exceeded your limit":               "limit",
		"Resource has been exhausted (e.g. check quota)":           "limit",
		"You've hit your usage limit. Try again at 5 pm":           "limit",
		"Overloaded": "limit",
		"unexpected status 401 Unauthorized: invalid":                      "login",
		"Not logged in · Please run /login":                                "login",
		`{"error":{"code":401,"message":"no","status":"UNAUTHENTICATED"}}`: "login",
		"Incorrect API key provided: sk-…":                                 "login",
		"Gemini API key is missing or not configured.":                     "login",
		"API key not valid. Please pass a valid API key.":                  "login",
		"Missing environment variable: `OPENAI_API_KEY`.":                  "login",
		"Authentication required":                                          "login",
		"stream disconnected before completion":                            "",
		"the file has 429 lines, of which 401 are empty":                   "",
		"status 500: it broke":                                             "",
		"Unable to connect. Is the computer able to access the url?":       "network",
		"getaddrinfo ENOTFOUND api.anthropic.com":                          "network",
		"error sending request for url (https://api.openai.com/)":          "network",
		"": "",
	} {
		got := ""
		switch _, limit, login := Blame(text); {
		case limit:
			got = "limit"
		case login:
			got = "login"
		case Unreached(text):
			got = "network"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
