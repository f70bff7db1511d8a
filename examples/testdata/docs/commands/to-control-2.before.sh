swarm wait @last || true
mkdir asks && cd asks
sh -ex "$PREPARED/../teams/a-team-that-grows.before.sh"
