#!/bin/sh
# Runs the tests of the web page in Chromium, against the program that it is given. Where there is no browser, no Node or no
# page, it says so in one line.
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../web"

skip() {
	echo "the tests of the web page are skipped: $1"
	exit 0
}
command -v node >/dev/null 2>&1 || skip "there is no Node"
[ -d node_modules/playwright-core ] || skip "the packages of web/ are not installed"
[ -f dist/index.html ] || skip "the page is not built"
for name in chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null 2>&1; then
		SWARM_BIN=$program exec node --test --test-reporter=spec e2e/*.test.mjs
	fi
done
skip "there is no Chromium"
