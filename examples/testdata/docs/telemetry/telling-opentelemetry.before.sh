swarm init
