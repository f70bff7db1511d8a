#!/bin/sh
# PostgreSQL for tests.
#
#   scripts/postgres.sh            installs it with apt-get, where that is possible
#   scripts/postgres.sh cluster    runs a cluster of its own, until standard input ends
#
# The cluster runs as a plain user in a temporary folder, on a free port of this machine. When it is ready, its address is printed. It
# belongs to nobody else: it has a random password. FSYNC=on makes it as durable, and as slow, as PostgreSQL is by default. The line
# "crash" on standard input ends all its processes without a shutdown, and "start" starts it again. Each is answered with a line.
set -eu

bin=
for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
	if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then bin=$dir; fi
done
if [ -z "$bin" ] && command -v initdb >/dev/null 2>&1; then bin=$(dirname "$(command -v initdb)"); fi

if [ "${1-}" != cluster ]; then
	[ -z "$bin" ] || exit 0
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "installing PostgreSQL" >&2
		# The package's own cluster is not wanted.
		mkdir -p /etc/postgresql-common
		[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
		if { apt-get install -y -qq --no-install-recommends postgresql ||
			{ apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; }; } >/dev/null 2>&1; then
			exit 0
		fi
	fi
	echo "PostgreSQL is not here: the tests of the shared store are skipped (install postgresql)" >&2
	exit 0
fi

[ -n "$bin" ] || { echo "PostgreSQL is not here (sh scripts/postgres.sh installs it)" >&2; exit 3; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/swarm-postgres.XXXXXX")
server=
finish() {
	if [ -n "$server" ]; then # It closes all connections.
		kill -INT "$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null)" 2>/dev/null || kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
as=
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root.
	user=nobody
	! id postgres >/dev/null 2>&1 || user=postgres
	chown "$user" "$dir"
	as="runuser -u $user --"
fi
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
(umask 077 && echo "$password" >"$dir/password")
[ -z "$as" ] || chown "$user" "$dir/password"
cd "$dir"
$as "$bin/initdb" -D "$dir/data" -U swarm -A scram-sha-256 --pwfile="$dir/password" -E UTF8 --locale=C -N >"$dir/initdb.log" 2>&1 || {
	cat "$dir/initdb.log" >&2
	exit 1
}
start() {
	$as "$bin/postgres" -D "$dir/data" -p "$port" -k "$dir" -h 127.0.0.1 -c "fsync=${FSYNC:-off}" -c max_connections=200 \
		-c shared_buffers=64MB -c dynamic_shared_memory_type=mmap -c log_min_messages=fatal >"$dir/log" 2>&1 </dev/null &
	server=$!
	while kill -0 $server 2>/dev/null; do
		if [ "$(sed -n 8p "$dir/data/postmaster.pid" 2>/dev/null | tr -d ' ')" = ready ]; then return 0; fi
		sleep 0.05
	done
	server= # it has ended
	return 1
}
for try in 1 2 3 4 5; do
	port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
	if start; then
		echo "postgres://swarm:$password@127.0.0.1:$port/postgres"
		while read -r line; do # until standard input ends
			case $line in
			crash)
				kill -QUIT "$(head -n 1 "$dir/data/postmaster.pid")"
				wait "$server" || true
				server=
				echo crashed
				;;
			start)
				start || { cat "$dir/log" >&2; exit 1; }
				echo started
				;;
			esac
		done
		exit 0
	fi
done
cat "$dir/log" >&2
exit 1
