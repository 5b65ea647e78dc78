-- Version 17: the chunks of an ended run as one object of the store that holds the files: then no row of chunk is its.
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
