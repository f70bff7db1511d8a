#!/bin/sh
# Runs every fuzz target for FUZZTIME, one after the other. What is found is written to testdata/fuzz in the target's package, and
# from then on `make test` tries it too.
set -eu

packages=$(go list -buildvcs=false -f '{{.ImportPath}}={{.Dir}}' "${@:-./...}")
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for package in $packages; do
	dir=${package#*=} package=${package%%=*}
	for target in $(cat "$dir"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		echo "fuzz $package $target"
		if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$package" >"$log" 2>&1; then
			# On a busy machine Go takes the end of the time for a failure, without an input that fails.
			grep -q 'Failing input written' "$log" || ! grep -q '^ *context deadline exceeded$' "$log" && failed=1
		fi
		cat "$log"
	done
done
exit $failed
