#!/bin/sh
# Unpacks bubblewrap, with which sandboxes are tested, outside of this folder and of the system: Codex would use a bubblewrap of the system
# for its own sandbox, and with version 0.8.0 it then runs no commands. Without bubblewrap the tests of sandboxes say that they were skipped.
set -eu

cache=${SWARM_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swarm-test}
dir=$cache/bubblewrap
if [ -x "$dir/usr/bin/bwrap" ] || command -v bwrap >/dev/null 2>&1; then
	exit 0
fi
if command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1; then
	echo "unpacking bubblewrap" >&2
	new=$(mktemp -d)
	if (cd "$new" && { apt-get download -qq bubblewrap || { apt-get update -qq && apt-get download -qq bubblewrap; }; } &&
		dpkg-deb -x bubblewrap_*.deb files && mkdir -p "$cache" && mv files "$dir") >/dev/null 2>&1; then
		chmod 755 "$dir"
	else
		echo "bubblewrap could not be unpacked: the tests of sandboxes are skipped" >&2
	fi
	rm -r "$new"
else
	echo "bubblewrap is not here: the tests of sandboxes are skipped (install bubblewrap)" >&2
fi
