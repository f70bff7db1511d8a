swarm up
