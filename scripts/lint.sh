#!/bin/sh
# Runs golangci-lint in the version that .golangci.yml was written for. It is built from source, once, outside of this folder:
# $SWARM_TEST_CACHE/golangci-lint (default: ~/.cache/swarm-test). It is there whole or not at all: it is built beside that place and
# then renamed. One that was built with an older Go cannot read newer code, so Go's version is part of its name.
#
# Its cache of findings is this checkout's own, in bin/. A finding that is cached under the same contents in another checkout names a
# file there, so rules that look at a path or a line do not match once that checkout is gone.
set -eu

cd "$(dirname "$0")/.."
version=v2.12.2
cache=${SWARM_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swarm-test}/golangci-lint
lint=$cache/$version-$(go env GOVERSION)
if ! [ -x "$lint" ]; then
	echo "building golangci-lint $version, once" >&2
	mkdir -p "$cache"
	half=$(mktemp -d "$cache/.half.XXXXXX")
	trap 'rm -rf "$half"' EXIT
	trap 'exit 130' INT TERM HUP
	GOBIN=$half GOFLAGS= nice -n 19 go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
	mv "$half/golangci-lint" "$lint"
fi
GOLANGCI_LINT_CACHE=$PWD/bin/lint-cache
export GOLANGCI_LINT_CACHE
exec "$lint" run --allow-parallel-runners "$@" ./... # other checkouts have caches of their own
