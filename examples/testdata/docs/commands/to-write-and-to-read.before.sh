# A team whose planner has asked a person.
git add -A . && git commit -qm "Before"
echo change >> lines.txt
cat > swarm/asks.yaml <<EOF
- {agent: planner, iteration: 1, say: I ask., call: [{tool: request_help, args: {help_description: "The first or the second?"}}]}
- {agent: planner, say: Good.}
- {agent: coder, say: Good.}
- {agent: reviewer, say: Good.}
EOF
swarm team "Greet people" --mode INTERACTIVE --set providers.demo.script=asks.yaml -d
until swarm mail | grep -q first; do :; done
