swarm wait @last
git init -q .
cat > swarm/swarm.yaml <<EOF
providers: {sh: {kind: command, command: [sh, -c, "echo 'Use Go.' > notes.txt; echo Noted."]}}
agents: {coder: {provider: sh}}
EOF
swarm team "Take notes"
