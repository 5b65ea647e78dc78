-- Files stored with a run (dptrack_file), as recorded in its journal. The last one of a name counts.
CREATE TABLE file (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	sha256 TEXT NOT NULL
);
CREATE UNIQUE INDEX file_by_name ON file (run_id, name);
PRAGMA user_version = 15;
