# An agent that keeps a ledger of its own: what it was asked, when it began, when it was through.
prompt=$(cksum | tr ' ' -)
echo "start $SWARM_TURN_ID $SWARM_ATTEMPT $prompt" >> ledger
if [ -e slow ]; then sleep 0.0$((prompt % 3)); fi
echo "made by $SWARM_TURN_ID attempt $SWARM_ATTEMPT of $prompt"
echo "end $SWARM_TURN_ID $SWARM_ATTEMPT $prompt" >> ledger
