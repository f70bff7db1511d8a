CREATE TABLE ev(seq INTEGER PRIMARY KEY, time INTEGER, kind TEXT, agent TEXT, task TEXT, turn TEXT, rcv TEXT, key TEXT, data TEXT, sum INTEGER);
CREATE UNIQUE INDEX ev_key ON ev(key) WHERE key IS NOT NULL;
CREATE TABLE body(hash BLOB PRIMARY KEY, data BLOB);
CREATE TABLE run(loops TEXT, pid INTEGER, start INTEGER, fence INTEGER, until INTEGER, held INTEGER);
CREATE TABLE fold(name TEXT PRIMARY KEY, version TEXT, seq INTEGER, data BLOB) WITHOUT ROWID;
INSERT INTO run(fence, until, held) VALUES(0, 0, 0);
