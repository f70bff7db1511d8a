#!/bin/sh
# Builds a real OpenTelemetry Collector for tests, once and outside of this folder (minutes of CPU):
# $SWARM_TEST_CACHE/otelcol@VERSION/otelcol, where internal/npmtest finds it, or nothing at all.
set -eu

version=0.160.0 # with stable modules of v1.66.0
place=${SWARM_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swarm-test}/otelcol@$version
[ ! -d "$place" ] || exit 0
mkdir -p "$(dirname "$place")"
half=$(mktemp -d "$(dirname "$place")/.half.XXXXXX")
trap 'rm -rf "$half"' EXIT
trap 'exit 130' INT TERM HUP

echo "building an OpenTelemetry Collector $version" >&2
cat >"$half/builder.yaml" <<EOF
dist: {module: otelcol, name: otelcol, output_path: $half/build}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v$version}]
exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter v$version}]
providers:
  - {gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.66.0}
  - {gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.66.0}
EOF
(cd "$half" && GOFLAGS= "${GO:-go}" run "go.opentelemetry.io/collector/cmd/builder@v$version" --config builder.yaml >log 2>&1) || {
	tail -5 "$half/log" >&2
	echo "collector.sh: the collector could not be built" >&2
	exit 1
}
mkdir "$half/done"
mv "$half/build/otelcol" "$half/done/"
mv -T "$half/done" "$place" 2>/dev/null || [ -d "$place" ]
