# A coding agent that is hard to get rid of. It speaks as Claude Code does and stays between turns; neither it nor its children, one
# of which has a session of its own, end when they are asked to, or when nobody speaks to them any more.
trap '' TERM HUP INT PIPE
case "$*" in *--version*) echo "1.0 (stand-in)"; exit ;; esac
forever='while :; do sleep 1000; done'
sh -c "$forever" &
setsid sh -c "$forever" </dev/null >/dev/null 2>&1 &
said='"session_id":"session-'$$'","parent_tool_use_id":null'
while read -r message; do
	printf '%s\n' "$message" # it repeats what it was told, so that everybody knows which turn begins
	echo '{"type":"system","subtype":"init",'$said'}'
	case $message in *"Never end."*)
		echo '{"type":"assistant",'$said',"message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"true"}}]}}'
		echo '{"type":"user",'$said',"message":{"content":[{"type":"tool_result","tool_use_id":"1","content":""}]}}'
		eval "$forever" ;;
	esac
	echo '{"type":"result","subtype":"success","is_error":false,"result":"done",'$said'}'
done
eval "$forever"
