#!/bin/sh
# Installs tmux, the terminal in which the REPL is tested, where it is missing and can be installed. Without it those tests say that they
# were skipped.
set -eu

if command -v tmux >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing tmux" >&2
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq tmux; } >/dev/null 2>&1 ||
		echo "tmux could not be installed: the tests in a terminal are skipped" >&2
else
	echo "tmux is not here: the tests in a terminal are skipped (install tmux)" >&2
fi
