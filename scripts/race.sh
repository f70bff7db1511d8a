#!/bin/sh
# Prints the flag for the race detector. It needs a C compiler; where there is none and one can be installed without asking, it
# is. Otherwise the tests run without the detector, and that is said.
set -eu

if [ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null 2>&1; then
	echo -race
	exit
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "the race detector needs a C compiler: installing gcc" >&2
	if (apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev) >&2; then
		echo -race
		exit
	fi
fi
echo "there is no C compiler, so the tests run without the race detector; install gcc, or set CC" >&2
