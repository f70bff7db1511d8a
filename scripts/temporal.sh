#!/bin/sh
# Builds Temporal's program, which has a server for tests, once and outside of this folder (about 8 minutes of CPU):
# $SWARM_TEST_CACHE/temporal@VERSION/temporal, or nothing at all.
#
#   scripts/temporal.sh            builds it
#   scripts/temporal.sh server     runs a server of its own, until standard input ends
#
# The server keeps what it has in a file of a temporary folder: one that keeps it in memory forgets its namespace after minutes. It
# listens on a free port of this machine only. When it is ready, its address is printed.
set -eu

version=1.5.1
cache=${SWARM_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swarm-test}
place=$cache/temporal@$version

if [ "${1-}" != server ]; then
	[ ! -d "$place" ] || exit 0
	mkdir -p "$cache"
	half=$(mktemp -d "$cache/.half.XXXXXX")
	trap 'rm -rf "$half"' EXIT
	trap 'exit 130' INT TERM HUP
	echo "building Temporal's program $version" >&2
	GOBIN="$half" GOFLAGS= GOWORK=off "${GO:-go}" install "github.com/temporalio/cli/cmd/temporal@v$version" >"$half/log" 2>&1 || {
		tail -5 "$half/log" >&2
		echo "temporal.sh: Temporal's program could not be built" >&2
		exit 1
	}
	mkdir "$half/done"
	mv "$half/temporal" "$half/done/"
	mv -T "$half/done" "$place" 2>/dev/null || [ -d "$place" ]
	exit 0
fi

[ -x "$place/temporal" ] || { echo "Temporal's program is not here (sh scripts/temporal.sh builds it)" >&2; exit 3; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/swarm-temporal.XXXXXX")
server=
finish() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
# HOME is not the person's: the program keeps settings there.
export HOME="$dir" TEMPORAL_DISABLE_UPDATE_CHECK=1
for try in 1 2 3 4 5; do
	port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
	# With the default rate an activity takes 100 ms, and a workflow may continue as new once a second.
	"$place/temporal" server start-dev --headless --ip 127.0.0.1 --port "$port" --db-filename "$dir/temporal.db" --log-level error \
		--dynamic-config-value history.transferProcessorMaxPollRPS=10000 --dynamic-config-value 'history.continueAsNewMinInterval="0s"' >"$dir/log" 2>&1 </dev/null &
	server=$!
	while kill -0 $server 2>/dev/null; do
		if "$place/temporal" operator cluster health --address "127.0.0.1:$port" >/dev/null 2>&1; then
			echo "127.0.0.1:$port"
			cat >/dev/null # until standard input ends
			exit 0
		fi
		sleep 0.1
	done
	server= # it has ended
done
cat "$dir/log" >&2
exit 1
