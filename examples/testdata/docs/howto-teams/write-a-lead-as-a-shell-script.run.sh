# The block is the lead of a team: a shell script.
mkdir lead && cd lead && mkdir swarm
cat > swarm/swarm.yaml <<EOF
providers:
  sh: {kind: command, command: [sh, -e, "$1"]}
  coder: {kind: command, command: [echo, It is written]}
agents: {lead: {provider: sh}, coder: {provider: coder}}
edges: ["lead -> coder"]
EOF
swarm team "Write a parser"
swarm show @last | grep "reported: It is written and tested"
