-- One schema holds all runs. Numbers of events, their times and leases are set inside the
-- transaction of an append, under the lock of the run's row.

CREATE SCHEMA swarm;

CREATE TABLE swarm.format (version int NOT NULL);
INSERT INTO swarm.format VALUES (1);

-- The store's clock, in microseconds. No program's own clock sets a time in this schema.
CREATE FUNCTION swarm.clock() RETURNS bigint LANGUAGE sql VOLATILE
	AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE TABLE swarm.run (
	num     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id      text COLLATE "C" NOT NULL UNIQUE,
	created bigint NOT NULL DEFAULT swarm.clock(),
	last    bigint NOT NULL DEFAULT 0, -- the number of the newest event
	newest  bigint NOT NULL DEFAULT 0, -- its time
	sum     bigint NOT NULL DEFAULT 0, -- its checksum
	loops   text NOT NULL DEFAULT '',  -- the version of the loops that drive the run
	fence   bigint NOT NULL DEFAULT 0,
	host    text NOT NULL DEFAULT '',  -- the owner: its machine, ...
	place   text NOT NULL DEFAULT '',  -- ... what tells its processes apart from those of other machines, ...
	pid     bigint NOT NULL DEFAULT 0,
	session bytea NOT NULL DEFAULT '', -- ... and its open log
	held    boolean NOT NULL DEFAULT false, -- the owner's log is open, as far as the store knows
	until   bigint NOT NULL DEFAULT 0  -- the lease's end
) WITH (fillfactor = 50);

-- The runs that were removed. A machine deletes the files of a run only if the run is listed here, or
-- if it removes the run itself.
CREATE TABLE swarm.removed (id text COLLATE "C" PRIMARY KEY, time bigint NOT NULL DEFAULT swarm.clock());

CREATE TABLE swarm.event (
	run   bigint NOT NULL,
	seq   bigint NOT NULL,
	time  bigint NOT NULL,
	kind  text NOT NULL,
	agent text NOT NULL,
	task  text NOT NULL,
	turn  text NOT NULL,
	rcv   text NOT NULL,
	key   text COLLATE "C",
	data  bytea NOT NULL,
	sum   bigint NOT NULL, -- over all fields and the sum of the event before it
	PRIMARY KEY (run, seq)
);
CREATE UNIQUE INDEX event_key ON swarm.event (run, key) WHERE key IS NOT NULL;

CREATE TABLE swarm.text (
	run  bigint NOT NULL,
	hash bytea NOT NULL, -- SHA-256
	data bytea NOT NULL,
	PRIMARY KEY (run, hash)
);

CREATE TABLE swarm.fold (
	run     bigint NOT NULL,
	name    text NOT NULL,
	version text NOT NULL,
	seq     bigint NOT NULL,
	data    bytea NOT NULL,
	PRIMARY KEY (run, name)
);

CREATE TABLE swarm.summary (
	run  bigint PRIMARY KEY,
	data bytea NOT NULL
);

-- The number of the last commit of each open log. A log whose connection broke in a commit finds out
-- here whether the commit was made.
CREATE TABLE swarm.writer (
	run     bigint NOT NULL,
	session bytea NOT NULL,
	n       bigint NOT NULL,
	PRIMARY KEY (run, session)
) WITH (fillfactor = 50);
