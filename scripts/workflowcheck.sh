#!/bin/sh
# Holds the loops, and the machines that they drive, to what an engine that replays them needs: see scripts/workflowcheck/main.go.
set -eu

cd "$(dirname "$0")/.."
bin=$(mktemp -d "${TMPDIR:-/tmp}/swarm-workflowcheck.XXXXXX")
trap 'rm -rf "$bin"' EXIT
trap 'exit 130' INT TERM HUP
GOFLAGS= GOWORK=off go build -C scripts/workflowcheck -o "$bin/workflowcheck" .
"$bin/workflowcheck" -test=false ./internal/flow ./internal/plan
