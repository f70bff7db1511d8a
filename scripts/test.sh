#!/bin/sh
# Runs go test on packages: test.sh PACKAGE... -- FLAG...
#
# All packages but the program's have the race detector. The scripts of the program start it some thousand times, and with the
# detector they take twice as long: make test-long runs them with it.
set -u

GO=${GO:-go}
packages=
while [ $# -gt 0 ]; do
	[ "$1" != -- ] || { shift; break; }
	packages="$packages $1"
	shift
done

all=$($GO list $packages) || exit 1
program=$(echo "$all" | grep '/cmd/swarm$')
others=$(echo "$all" | grep -v '/cmd/swarm$')
failed=0
# What takes longest comes first.
[ -z "$program" ] || $GO test -timeout 25m "$@" $program || failed=1
[ -z "$others" ] || $GO test $(sh scripts/race.sh) -timeout 25m "$@" $others || failed=1
exit $failed
