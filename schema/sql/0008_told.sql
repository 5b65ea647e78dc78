-- Console output: lines of a rank in one segment, several per row, in the message that they arrived in (console.h).
CREATE TABLE console (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	first_line INTEGER NOT NULL,
	lines INTEGER NOT NULL,
	time_ms INTEGER NOT NULL,
	bytes BLOB NOT NULL
);
CREATE UNIQUE INDEX console_by_line ON console (run_id, rank, segment, first_line, lines, time_ms);

-- Code of a segment: commit, diff, packages, ...; the last value of a name is kept.
CREATE TABLE code (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	name TEXT NOT NULL,
	text TEXT NOT NULL
);
CREATE UNIQUE INDEX code_by_name ON code (run_id, segment, name);

-- Alerts sent by programs. level: 1 information, 2 warning, 3 error.
CREATE TABLE told (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	step INTEGER NOT NULL,
	time_ms INTEGER NOT NULL,
	level INTEGER NOT NULL,
	title TEXT NOT NULL,
	text TEXT NOT NULL
);
CREATE INDEX told_by_run ON told (run_id);
PRAGMA user_version = 8;
