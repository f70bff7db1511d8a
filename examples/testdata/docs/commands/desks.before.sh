cat > worker.sh <<'EOF'
echo '{"state": "running"}' > status.json
echo 'A text.' > outbox/text.md
echo 'I wrote a text.' > outbox/summary.md
echo '{"state": "completed"}' > status.json
EOF
