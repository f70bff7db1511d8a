#!/bin/sh
# Installs bubblewrap, with which sandboxes are tested, where it is missing and can be installed. Without it those tests say that they
# were skipped.
set -eu

if command -v bwrap >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing bubblewrap" >&2
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq bubblewrap; } >/dev/null 2>&1 ||
		echo "bubblewrap could not be installed: the tests of sandboxes are skipped" >&2
else
	echo "bubblewrap is not here: the tests of sandboxes are skipped (install bubblewrap)" >&2
fi
