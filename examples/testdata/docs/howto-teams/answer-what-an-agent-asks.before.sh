cat > swarm/swarm.yaml <<EOF
provider: claude-code
tasks: {code: {prompt-string: Please deploy it}}
EOF
swarm up -d
until swarm approve | grep -q code/1/1; do :; done
