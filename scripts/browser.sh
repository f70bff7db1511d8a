#!/bin/sh
# Installs Chromium, with which the web page is tested, where apt-get can. Without Chromium the tests of the page say that they
# were skipped.
set -eu
for name in chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null 2>&1; then
		exit 0
	fi
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
	echo "installing chromium" >&2
	if { apt-get install -qq -y --no-install-recommends chromium || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null 2>&1; then
		exit 0
	fi
fi
echo "chromium is not here: the tests of the web page are skipped (install chromium)" >&2
