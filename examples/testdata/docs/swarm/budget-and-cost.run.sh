# Each line answers the question of a run of its own.
cd research
while read -r line; do
	case $line in '#'* | '') continue ;; esac
	swarm solve "Compare Raft and Zab" --approve-plan -d
	until swarm approve | grep -q supervisor/plan; do :; done
	sh -exc "$line"
	swarm wait @last || true
done <"$1"
