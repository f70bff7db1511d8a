module swarm

go 1.26.8
