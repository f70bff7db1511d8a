# The block is the turn of the agent that leads.
mkdir -p inside/swarm && cd inside
cat > swarm/swarm.yaml <<EOF
providers:
  sh: {kind: command, command: [sh, -ec, 'test \$SWARM_AGENT != lead || sh -ex "$1" < /dev/null']}
  other: {kind: command, command: [echo, Here]}
agents: {lead: {provider: sh, permissions: {spawn: true, orchestrate: true}}, coder: {provider: other}, reviewer: {provider: other}}
edges: ["lead -> coder", "lead -> reviewer"]
approvals: {spawn: auto}
EOF
swarm team "Write it"
swarm show @last | grep "reported: It works"
