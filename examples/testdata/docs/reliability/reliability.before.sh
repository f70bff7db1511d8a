swarm init
swarm up
