swarm wait @last || true
mkdir asks && cd asks
sh -ex "$PREPARED/../howto-teams/let-a-team-grow.before.sh"
