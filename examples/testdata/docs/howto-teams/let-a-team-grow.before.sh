mkdir -p swarm
# A planner that asks for four agents.
cat > swarm/swarm.yaml <<EOF
provider: demo
providers: {demo: {kind: script, script: asks.yaml}}
agents: {planner: {permissions: {spawn: true}}, coder: {}}
edges: ["planner <-> coder"]
EOF
cat > swarm/asks.yaml <<EOF
- agent: planner
  iteration: 1
  say: I need more agents.
  call:
    - {tool: spawn_node, args: {name: tester, instructions: Test it}}
    - {tool: spawn_node, args: {name: writer, instructions: Write about it}}
    - {tool: spawn_node, args: {name: reader, instructions: Read it}}
    - {tool: spawn_node, args: {name: second, instructions: Code it too}}
- {agent: planner, say: Good.}
- {agent: coder, say: Good.}
- {agent: tester, say: Tested.}
- {agent: writer, say: Written.}
- {agent: reader, say: Read.}
EOF
swarm team "Write a parser" -d
until swarm approve | grep -q @second; do :; done
