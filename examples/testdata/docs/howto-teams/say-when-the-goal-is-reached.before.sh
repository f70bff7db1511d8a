swarm close @last
swarm wait @last
