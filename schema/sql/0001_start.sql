-- Times are integer milliseconds since 1970 UTC. A summary's NaN is NULL; points themselves are only in blobs.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(16))));

CREATE TABLE experiment (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL,
	deleted_ms INTEGER
);
INSERT INTO experiment VALUES (0, 'Default', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), NULL);

-- rev: the last change of the run, from one counter for the whole store. beats: our own journal writes the run,
-- so silence means that it died. last_ms: time of its last record.
CREATE TABLE run (
	id INTEGER PRIMARY KEY,
	uuid TEXT NOT NULL UNIQUE,
	experiment_id INTEGER NOT NULL REFERENCES experiment (id),
	name TEXT NOT NULL,
	status TEXT NOT NULL,
	inferred INTEGER NOT NULL DEFAULT 0,
	beats INTEGER NOT NULL DEFAULT 0,
	start_ms INTEGER,
	end_ms INTEGER,
	last_ms INTEGER NOT NULL DEFAULT 0,
	last_step INTEGER NOT NULL DEFAULT -1,
	segment INTEGER NOT NULL DEFAULT 0,
	world_size INTEGER NOT NULL DEFAULT 0,
	deleted_ms INTEGER,
	rev INTEGER NOT NULL
);
CREATE INDEX run_by_experiment ON run (experiment_id, start_ms, id);
CREATE INDEX run_by_state ON run (experiment_id, deleted_ms, status, start_ms, end_ms);
CREATE INDEX run_by_rev ON run (rev);
CREATE INDEX run_beating ON run (last_ms) WHERE beats = 1 AND status = 'running';

CREATE TABLE note (run_id INTEGER PRIMARY KEY REFERENCES run (id), text TEXT NOT NULL);

-- Names of params, tags, metrics and environment entries, stored once.
CREATE TABLE key (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

-- segment -1: of the run, the first value is final. Else the value in the newest segment, which may change.
CREATE TABLE param (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, key_id)
) WITHOUT ROWID;
CREATE INDEX param_by_key ON param (key_id, run_id, value);

CREATE TABLE segment_param (
	run_id INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, segment, key_id)
) WITHOUT ROWID;

CREATE TABLE tag (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, key_id)
) WITHOUT ROWID;
CREATE INDEX tag_by_key ON tag (key_id, run_id, value);

CREATE TABLE environment (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, key_id)
) WITHOUT ROWID;

-- hide_*: the smallest first_* of later segments; points from there on are hidden. final: who set the status
-- (0 none, 1 a rank or a client, 2 the launcher).
CREATE TABLE segment (
	run_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	first_step INTEGER NOT NULL,
	first_epoch INTEGER NOT NULL,
	hide_step INTEGER NOT NULL,
	hide_epoch INTEGER NOT NULL,
	start_ms INTEGER,
	end_ms INTEGER,
	status TEXT NOT NULL,
	final INTEGER NOT NULL DEFAULT 0,
	world_size INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (run_id, number)
) WITHOUT ROWID;

-- One journal. durable: the offset up to which its bytes are stored.
CREATE TABLE writer (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	uuid TEXT NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	durable INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	path TEXT,
	UNIQUE (run_id, uuid)
);

-- Summaries cover the folded points only, without those in the log. ordered: steps never decrease.
CREATE TABLE series (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	ordered INTEGER NOT NULL DEFAULT 1,
	chunks INTEGER NOT NULL DEFAULT 0,
	count INTEGER NOT NULL DEFAULT 0,
	nonfinite INTEGER NOT NULL DEFAULT 0,
	first REAL, last REAL, min REAL, max REAL,
	first_step INTEGER, last_step INTEGER, min_step INTEGER, max_step INTEGER,
	first_time REAL, last_time REAL,
	nonfinite_step INTEGER,
	UNIQUE (run_id, key_id, rank, segment)
);

-- Summaries of a run's visible run-level points by key, including the log (written in the commit that stores them).
CREATE TABLE metric (
	key_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	count INTEGER NOT NULL,
	nonfinite INTEGER NOT NULL,
	first REAL, last REAL, min REAL, max REAL,
	first_step INTEGER, last_step INTEGER, min_step INTEGER, max_step INTEGER,
	first_time REAL, last_time REAL,
	nonfinite_step INTEGER,
	PRIMARY KEY (key_id, run_id)
) WITHOUT ROWID;
CREATE INDEX metric_by_run ON metric (run_id, key_id);

-- Points not folded yet: one row per batch and run, packed (web/store/points/pack.h).
CREATE TABLE log (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	points INTEGER NOT NULL,
	data BLOB NOT NULL
);
CREATE INDEX log_by_run ON log (run_id, id);

-- id = series id * 2^20 + number, so that chunks of a series are adjacent (format: web/store/points/chunk.h).
CREATE TABLE chunk (
	id INTEGER PRIMARY KEY,
	points INTEGER NOT NULL,
	min_step INTEGER NOT NULL,
	max_step INTEGER NOT NULL,
	min_time REAL,
	max_time REAL,
	data BLOB NOT NULL
);

CREATE TABLE alert (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	step INTEGER NOT NULL,
	value REAL,
	weight REAL NOT NULL,
	PRIMARY KEY (run_id, key_id, kind)
) WITHOUT ROWID;

-- Intact records that could not be applied.
CREATE TABLE problem (
	run_id INTEGER NOT NULL,
	text TEXT NOT NULL,
	time_ms INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (run_id, text)
) WITHOUT ROWID;

CREATE TABLE idempotency (
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	accepted INTEGER NOT NULL,
	PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_ms);
PRAGMA user_version = 1;
