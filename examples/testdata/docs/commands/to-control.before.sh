swarm close @last
swarm wait @last
swarm team "Greet people" --mode INTERACTIVE --set providers.demo.script=asks.yaml -d
