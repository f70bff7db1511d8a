#!/bin/sh
# The demonstration: runs examples/median in a folder of its own, with a home of its own, and then shows from the run's log how
# the evaluator's words reached the coder. Ends with 0 only if the tests really failed first and passed then.
set -eu

swarm=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v node >/dev/null 2>&1; then
	echo "the agents of the demonstration are Node programs: install Node 20 or newer" >&2
	exit 2
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/swarm-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp -R "$root/examples/median/." "$work"
export SWARM_HOME="$work/.home"
cd "$work"

echo "\$ swarm up        # in $work, which is removed at the end"
"$swarm" up
echo
echo "\$ swarm out @last tester --iteration 1        # the tests of the first version"
"$swarm" out @last tester --iteration 1
echo
echo "\$ swarm show @last --turn coder/2/1        # what the coder was asked then"
"$swarm" show @last --turn coder/2/1 | sed '/^--- output of /,$d'
echo
"$swarm" show @last --json | node "$root/scripts/demo-report.mjs"
