-- The order of points across series of imported files: one row per batch of such a writer (web/store/points/order.h),
-- in order of arrival.
ALTER TABLE writer ADD COLUMN ordered INTEGER NOT NULL DEFAULT 0;

CREATE TABLE arrival (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	data BLOB NOT NULL
);
CREATE INDEX arrival_by_run ON arrival (run_id, id);
PRAGMA user_version = 5;
