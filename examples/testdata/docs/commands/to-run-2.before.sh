# One prompt is one more agent: its words are in the script.
swarm wait @last
echo '- {agent: run, say: "Good.\n"}' >> swarm/demo.yaml
