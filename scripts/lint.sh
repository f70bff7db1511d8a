#!/bin/sh
# Runs golangci-lint, built from source in the version that .golangci.yml was written for, and kept in .cache/.
set -eu

version=v2.12.2
cd "$(dirname "$0")/.."
bin=$PWD/.cache/golangci-lint-$version
if ! [ -x "$bin/golangci-lint" ]; then
	echo "building golangci-lint $version, once"
	GOBIN=$bin GOFLAGS= nice -n 19 go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi
exec "$bin/golangci-lint" run "$@" ./...
