#!/bin/sh
# Builds the page of web/ into web/dist, which the program carries. It does nothing if no source has changed. Without npm, or
# when the build fails, it says so in one line: the program is then built without the page, or with the page of before.
# With SWARM_TEST_WEB a page that cannot be built is an error. Missing npm or packages are none: a machine may have no network.
set -eu
cd "$(dirname "$0")/../web"

sources="package.json package-lock.json index.html vite.config.ts tsconfig.json public src ../internal/api/openapi.json"
if [ -f dist/index.html ] && [ -z "$(find $sources -newer dist/index.html ! -name schema.d.ts -type f | head -1)" ]; then
	exit 0
fi
command -v npm >/dev/null 2>&1 || {
	echo "npm is not here, so swarm is built without its web page (install Node.js)" >&2
	exit 0
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
	echo "installing the packages of web/" >&2
	# npm ci refuses a lock file without the optional packages of other systems, which not every registry has.
	npm ci --no-audit --no-fund >"$log" 2>&1 || npm install --no-save --no-audit --no-fund >"$log" 2>&1 || {
		echo "the packages of the web page cannot be installed: $(grep -m1 'npm error' "$log" || tail -1 "$log")" >&2
		exit 0
	}
fi
echo "building the web page" >&2
npm run --silent build >"$log" 2>&1 || {
	cat "$log" >&2
	echo "the web page cannot be built, so the program has none, or that of before" >&2
	[ -z "${SWARM_TEST_WEB:-}" ] || exit 1
}
