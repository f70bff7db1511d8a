# What the coder and the tester do: say a line, wait until the test lets them go on, and write to the other.
cat > /dev/null
echo "$SWARM_AGENT begins <b>now</b>"
until [ -e "go-$SWARM_AGENT" ]; do sleep 0.05; done
case $SWARM_AGENT in
coder)
	echo "package main // turn $SWARM_TURN_ID" >> roman.go
	[ "$SWARM_TURN_ID" != coder/1/1 ] || swarm send @tester "roman.go is written. Please test it."
	;;
tester) [ "$SWARM_TURN_ID" != tester/1/1 ] || swarm send @lead "All tests pass." ;;
esac
echo "$SWARM_AGENT is done"
