-- A part of a run: a rank in one segment that has series. Series of a part are adjacent: a rank sends all its keys at once,
-- and an index by key would be written in many places. run.keys: number of metric keys over all parts.
ALTER TABLE run ADD COLUMN keys INTEGER NOT NULL DEFAULT 0;
UPDATE run SET keys = (SELECT count(DISTINCT key_id) FROM series WHERE run_id = run.id);

CREATE TABLE series_anew (
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
	nonfinite_step INTEGER
);
INSERT INTO series_anew SELECT id, run_id, key_id, rank, segment, ordered, chunks, count, nonfinite, first, last, min, max,
	first_step, last_step, min_step, max_step, first_time, last_time, nonfinite_step FROM series ORDER BY id;
DROP TABLE series;
ALTER TABLE series_anew RENAME TO series;
CREATE UNIQUE INDEX series_by_part ON series (run_id, rank, segment, key_id);
CREATE TABLE part (
	run_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	PRIMARY KEY (run_id, rank, segment)
) WITHOUT ROWID;
INSERT INTO part SELECT DISTINCT run_id, rank, segment FROM series;
PRAGMA user_version = 6;
