package mail

import (
	"strings"
	"testing"
)

// Each line is an agent's text, and the receivers that it claims.
func TestClaims(t *testing.T) {
	others := []string{"coder", "reviewer", "tester-2", "test", "review"}
	for text, want := range map[string]string{
		// Claims.
		"I sent the plan to @coder.":                                      "coder",
		"I sent the plan to coder":                                        "coder",
		"I've sent the plan to the coder agent.":                          "coder",
		"I have sent everything to Coder for review.":                     "coder",
		"Sent the plan to @coder.":                                        "coder",
		"Handed off to coder.":                                            "coder",
		"Done. I handed the work over to coder, with the tests.":          "coder",
		"I've asked reviewer to look at it.":                              "reviewer",
		"I asked @reviewer for a second opinion.":                         "reviewer",
		"I notified coder and reviewer.":                                  "coder",
		"Okay, I have forwarded the log to `tester-2`.":                   "tester-2",
		"- I told coder that the port is 8081":                            "coder",
		"1. Delegated the parser to @coder":                               "coder",
		"I just messaged @test about it.":                                 "test",
		"I told coder everything.":                                        "coder",
		"I sent coder the plan.":                                          "coder",
		"We passed the draft on to reviewer.":                             "reviewer",
		"The plan is ready. I sent it to coder and the log to reviewer.":  "coder reviewer",
		"**I have sent the plan to coder.**":                              "coder",
		"I have now handed the task to coder (see above).":                "coder",
		"I’ve informed reviewer.":                                         "reviewer",
		"All set!\nI assigned the first half to coder; the rest is mine.": "coder",
		"I sent the plan to coder. I have not sent anything to reviewer.": "coder",
		"Plan delivered to @coder.":                                       "coder",
		"I delivered the plan to coder.":                                  "coder",
		"I emailed @reviewer the plan.":                                   "reviewer",
		// No claims.
		"Nothing delivered to @coder.":                          "",
		"Plan delivered to coder.":                              "",
		"Mails delivered to @coder bounce.":                     "",
		"I have not sent the plan to coder.":                    "",
		"I haven't sent the plan to coder yet.":                 "",
		"I will send the plan to coder.":                        "",
		"I'll hand it to coder next.":                           "",
		"I am going to ask reviewer.":                           "",
		"I want to send the plan to coder.":                     "",
		"Send the plan to coder.":                               "",
		"The plan was sent to coder.":                           "",
		"The plan should be sent to coder.":                     "",
		"Coder sent the plan to reviewer.":                      "",
		"planner asked coder to wait.":                          "",
		"> I sent the plan to coder.":                           "",
		"```\nI sent the plan to coder.\n```":                   "",
		"```\nI sent the plan to coder.":                        "",
		"    I sent the plan to coder.":                         "",
		"He wrote: \"I sent the plan to coder.\"":               "",
		"“I sent the plan to coder,” says the log.":             "",
		"If I sent the plan to coder, it would be lost.":        "",
		"Once I have sent the plan to coder, we are done.":      "",
		"I sent the plan to coder earlier.":                     "",
		"I already sent the plan to coder.":                     "",
		"In my last turn I sent the plan to coder.":             "",
		"I sent the build to test it.":                          "",
		"I passed the change on to review and merge.":           "",
		"I sent the patch to coder's branch.":                   "",
		"I added the function that is sent to coder.":           "",
		"I was asked by coder to write it.":                     "",
		"I asked myself what coder would do.":                   "",
		"I asked whether the coder is ready.":                   "",
		"I tried to send it to coder and failed.":               "",
		"Should I have sent it to coder?":                       "",
		"I sent it to codereview.":                              "",
		"I sent the plan to the customer.":                      "",
		"I told you that coder is busy.":                        "",
		"Nothing was forwarded to coder.":                       "",
		"Sent by coder.":                                        "",
		"`I sent the plan to coder`":                            "",
		"I sent the plan to coder, I could not reach reviewer.": "",
	} {
		var got []string
		for _, c := range Claims(text, others) {
			got = append(got, c.Agent)
			if c.Quote == "" {
				t.Errorf("%q: no quote", text)
			}
		}
		if want != "" && !MayClaim(text) {
			t.Errorf("MayClaim rules out %q", text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q claims to have written to %q, want %q", text, got, want)
		}
	}
}

func FuzzClaims(f *testing.F) {
	f.Add("I sent the plan to @coder.\n```\nI told reviewer")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range Claims(text, []string{"coder", "a.b"}) {
			if !strings.Contains(strings.ToLower(text), c.Agent) || strings.ContainsAny(c.Quote, "\n\r") {
				t.Errorf("%+v is claimed by %q", c, text)
			}
		}
	})
}
