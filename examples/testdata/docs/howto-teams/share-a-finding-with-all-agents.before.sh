# A team that waits for what its person says next.
swarm init
cat > swarm/quiet.yaml <<EOF
- {agent: planner, say: Good.}
- {agent: coder, say: Good.}
- {agent: reviewer, say: Good.}
EOF
swarm team "Greet people by name" --mode INTERACTIVE --set providers.demo.script=quiet.yaml -d
