#!/bin/sh
# Runs the long tests, one kind after the other, and prints a table at the end. A kind that passed on the same sources is not run
# again. What a kind printed is in bin/torture.
#
#	make torture                      every kind
#	make torture KINDS="mutants fuzz" these kinds
#	make torture AGAIN=1              also kinds that have passed
#	make torture SCALE=100            a hundredth of what can be counted, to see that it works
set -u

GO=${GO:-go}
SCALE=${SCALE:-1}
LIMIT=${LIMIT:-60m} # for one kind
race=$(sh scripts/race.sh)
sources=$(git rev-parse HEAD)-$(git diff HEAD | cksum | cut -d' ' -f1)-$SCALE
state=bin/torture
mkdir -p "$state/passed"

# A kind is a name, what it does, and a command.
kinds='tests simulation flow sessions crashes kills power desks damage leftovers mutants fuzz'
about() {
	case $1 in
	tests) echo "every test three times, in any order" ;;
	simulation) echo "$((10000 / SCALE)) whole runs in virtual time, with faults" ;;
	flow) echo "the engine's crashes, recorded and resumed" ;;
	sessions) echo "1,000 random sessions" ;;
	crashes) echo "an engine's crash at every append, and mail" ;;
	kills) echo "1,000 kills of the program, and cancels" ;;
	power) echo "losses of power, and full disks" ;;
	desks) echo "writers, links and ways out against desks" ;;
	damage) echo "damaged logs" ;;
	leftovers) echo "programs that leave processes behind" ;;
	mutants) echo "broken promises that a test must find" ;;
	fuzz) echo "every fuzz target for ${FUZZTIME:-30s}" ;;
	esac
}
run() {
	long='env SWARM_TEST_LONG=1'
	[ "$SCALE" = 1 ] || long=env
	case $1 in
	tests) sh scripts/test.sh ./... -- -v -count=3 -shuffle=on -timeout "$LIMIT" ;;
	simulation) $GO test -v -timeout "$LIMIT" ./internal/simulation -seeds $((10000 / SCALE)) ;;
	flow) $long $GO test -v $race -timeout "$LIMIT" -run TestTheLoopAndTheLog ./internal/flow ;;
	sessions) $long $GO test -v $race -timeout "$LIMIT" -run TestRandomSessions ./internal/session ;;
	crashes) $long $GO test -v $race -timeout "$LIMIT" -run 'TestConformance|TestMailBetweenProcesses' ./internal/engine/local ./internal/sqlite ;;
	kills) $long $GO test -v -timeout "$LIMIT" -run 'Killed|Cancel' ./cmd/swarm ;;
	power) $long $GO test -v -timeout "$LIMIT" -run 'PowerLoss|FullDisk' ./cmd/swarm ;;
	desks) $long $GO test -v $race -timeout "$LIMIT" ./internal/desk ;;
	damage) $long $GO test -v -timeout "$LIMIT" -run 'Damage' ./internal/sqlite ./internal/recording ./cmd/swarm ;;
	leftovers) $long $GO test -v -timeout "$LIMIT" -run 'Leftover|LeaveNobody' ./internal/process ./cmd/swarm ;;
	mutants) SWARM_TEST_MUTANTS=all $GO test -v -timeout "$LIMIT" ./internal/mutants ;;
	fuzz) sh scripts/fuzz.sh ./... ;;
	esac
}

table=
failed=0
row() { table="$table$(printf '%-11s %-50s %7s %7s %8s' "$@")
"; }
row kind what tests failed seconds
for kind in ${KINDS:-$kinds}; do
	if [ -z "$(about "$kind")" ]; then
		echo "there is no kind \"$kind\"; there are: $kinds" >&2
		exit 2
	fi
	if [ -z "${AGAIN:-}" ] && [ "$(cat "$state/passed/$kind" 2>/dev/null)" = "$sources" ]; then
		row "$kind" "$(about "$kind")" - - "passed"
		continue
	fi
	echo "$(date +%H:%M:%S) $kind: $(about "$kind")"
	began=$(date +%s)
	rm -f "$state/passed/$kind"
	if run "$kind" >"$state/$kind.log" 2>&1; then
		echo "$sources" >"$state/passed/$kind"
		bad=0
	else
		bad=$(grep -c '^ *--- FAIL' "$state/$kind.log")
		[ "$bad" != 0 ] || bad=1 # it did not even begin
		failed=1
		grep -A3 '^ *--- FAIL\|^panic:\|build failed\|^FAIL' "$state/$kind.log" | head -40
		echo "more is in $state/$kind.log"
	fi
	row "$kind" "$(about "$kind")" "$(grep -c '^ *--- PASS\|^fuzz ' "$state/$kind.log")" "$bad" "$(($(date +%s) - began))"
done
printf '\n%s' "$table"
exit $failed
