-- Runs that were removed for good: their ids are never reused, and their journals never recreate them.
-- stage 0: rows are still to be deleted; 1: all are deleted. rev: as of a run, so that the removal is seen as a change.
CREATE TABLE gone (
	run_id INTEGER PRIMARY KEY,
	uuid TEXT NOT NULL UNIQUE,
	experiment_id INTEGER NOT NULL,
	removed_ms INTEGER NOT NULL,
	rev INTEGER NOT NULL,
	stage INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX gone_by_rev ON gone (rev);
CREATE INDEX gone_unfinished ON gone (run_id) WHERE stage = 0;
CREATE INDEX run_deleted ON run (deleted_ms, id) WHERE deleted_ms IS NOT NULL;
PRAGMA user_version = 4;
