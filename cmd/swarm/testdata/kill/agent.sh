# An agent that keeps a ledger of its own: what it was asked, when it began, when it was through. It waits while there is a
# file hold.
prompt=$(cksum | tr ' ' -)
echo "start $SWARM_TURN_ID $SWARM_ATTEMPT $prompt" >> ledger
while [ -e hold ]; do sleep 0.01; done
echo "made by $SWARM_TURN_ID attempt $SWARM_ATTEMPT of $prompt"
echo "end $SWARM_TURN_ID $SWARM_ATTEMPT $prompt" >> ledger
