package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/engine/local"
	"swarm/internal/httpd"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// asker is an agent of the Agent Client Protocol that asks before it deploys.
const asker = `
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"sh","version":"1"}}}'
read -r line || exit 0
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r line
echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"1","title":"Bash","kind":"execute","rawInput":{"command":"make deploy"}},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}'
read -r line
text=refused
case $line in *'"yes"'*) text=deployed ;; esac
echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$text'"}}}}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
read -r line
`

// Approvals are answered in the prompt where lines are typed.
func TestApproveAndDeny(t *testing.T) {
	script := filepath.Join(t.TempDir(), "agent.sh")
	x := &table{t: t}
	x.must(os.WriteFile(script, []byte(asker), 0o600))
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	x.must(err)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	team := Team{Plan: swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "asks", Kind: "acp", Command: []string{"sh", script}}},
		Agents: []swarm.Agent{{Name: "pm", Provider: "asks"}, {Name: "ba", Provider: "asks"}}}, WaitTimeout: time.Minute}
	x.Session, err = Start(ctx, h, swarm.RunStart{Dir: t.TempDir(), Time: time.Now()}, team)
	x.must(err)
	x.Drive(ctx, run.Options{Engine: local.Run, Serve: httpd.Serve})
	command := func(text, want string) {
		t.Helper()
		e, err := x.Enter(t.Context(), text)
		got := e.Answer
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	command("/approve", "there are no open requests")
	tasks := append(x.say("@pm deploy &"), x.say("@ba deploy &")...)
	x.until("@pm: blocked: /approve @pm lets it run make deploy")
	x.until("@ba: blocked: /approve @ba lets it run make deploy")
	command("/approve", "@pm wants to run make deploy\n")
	command("/deny nosuch", `there is no request "nosuch"`)
	face := x.Face(t.Context())
	if all := face.Complete("/approve pm", 11); len(all) != 1 || !strings.HasPrefix(all[0].Text, "pm_1/1/1/") || all[0].Start != 9 || all[0].End != 11 {
		t.Errorf("/approve pm can become %+v", all)
	}
	if all := face.Complete("/deny ", 6); len(all) != 2 {
		t.Errorf("/deny can become %+v", all)
	}
	if all := face.Complete("/appr", 5); len(all) != 1 || all[0].Text != "/approve" {
		t.Errorf("/appr can become %+v", all)
	}
	command("/approve @pm", "@pm may run make deploy")
	command("/deny ba_1", "@ba may not run make deploy")
	_, err = x.Wait(t.Context(), tasks)
	x.must(err)
	if got := x.outputOf("pm"); got != "deployed" {
		t.Errorf("@pm said %q", got)
	}
	// A person's no is told to the agent, whose turn goes on.
	if got, task := x.outputOf("ba"), x.task("ba_1"); got == "deployed" || task.Status != swarm.Completed {
		t.Errorf("@ba was refused, said %q and is %s", got, task.Status)
	}
	command("/approve @pm", "there are no open requests")
	x.close()
}
