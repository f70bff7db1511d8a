#!/bin/sh
# Installs programs from npm for tests, each package once, outside of this folder: npm.sh @scope/name@1.2.3 name@4.5.6 …
# A package is in $SWARM_TEST_CACHE/npm/<package>@<version>/ (default: ~/.cache/swarm-test), where internal/npmtest finds it, or it
# is not there at all: it is installed beside that place and then renamed. What is there already is not looked at again.
set -eu

cache=${SWARM_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swarm-test}/npm
[ $# -gt 0 ] || {
	echo "usage: npm.sh package@version …" >&2
	exit 2
}
half=
trap '[ -z "$half" ] || rm -rf "$half"' EXIT
trap 'exit 130' INT TERM HUP

for spec in "$@"; do
	case $spec in
	*..* | /* | *[!A-Za-z0-9@/._+-]*) version= ;;
	?*@[0-9]*) version=${spec##*@} ;;
	*) version= ;;
	esac
	[ -n "$version" ] || {
		echo "npm.sh: $spec names no exact version: write package@1.2.3" >&2
		exit 2
	}
	place=$cache/$spec
	[ ! -d "$place" ] || continue
	command -v npm >/dev/null 2>&1 || {
		echo "npm.sh: npm is not here, so $spec is not installed (install Node.js)" >&2
		exit 1
	}
	echo "installing $spec" >&2
	mkdir -p "$(dirname "$place")"
	half=$(mktemp -d "$cache/.half.XXXXXX")
	npm install --prefix "$half" --no-audit --no-fund --loglevel=error "$spec" >/dev/null || {
		echo "npm.sh: $spec could not be installed" >&2
		exit 1
	}
	# mv would move into a folder that somebody else made meanwhile; rename does not.
	node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$half" "$place" 2>/dev/null ||
		[ -d "$place" ] || {
		echo "npm.sh: $spec could not be put into $cache" >&2
		exit 1
	}
	rm -rf "$half"
	half=
done
