swarm desk new report --template writer --objective 'Say what is old'
swarm desk run report -- false || true
