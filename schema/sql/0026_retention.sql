-- Files on disk whose deletion is stored: they are removed next, unless an upload has replaced them.
CREATE TABLE leaving (
	path TEXT PRIMARY KEY,
	bytes INTEGER NOT NULL,
	time_ns INTEGER NOT NULL
) WITHOUT ROWID;
-- Rules of what is deleted after some time. experiment_id -1: of experiments without rules of their own. NULL: off.
-- keep_best: how many of the experiment's best runs keep their artifacts.
CREATE TABLE retention (
	experiment_id INTEGER PRIMARY KEY,
	artifact_ms INTEGER,
	keep_best INTEGER NOT NULL,
	trash_ms INTEGER,
	quota_bytes INTEGER
);
PRAGMA user_version = 26;
