-- Version 17: the chunks of an ended run as one object in the object store of the files; the run then has no rows in chunk.
CREATE TABLE archive (
	run_id INTEGER PRIMARY KEY,
	object TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	sha256 TEXT NOT NULL
);
CREATE TRIGGER archive_goes AFTER DELETE ON archive
BEGIN
	INSERT INTO object (name, since_ms) VALUES (OLD.object, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
PRAGMA user_version = 17;
