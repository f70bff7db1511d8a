# An agent whose first attempt is not what was expected.
cat > /dev/null
case $SWARM_TURN_ID in
*/1) echo "the first draft" | tee draft.md ;;
*) echo "the second draft" | tee draft.md ;;
esac
