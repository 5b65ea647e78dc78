-- Version 12: files in an object store. object: random name of the object with the bytes; NULL: a file at that path below
-- the folder of artifacts.
ALTER TABLE artifact ADD COLUMN object TEXT;

-- Objects that no file uses: unfinished or replaced ones. since_ms: when that began. doomed: gc is removing it, so no row
-- may use it.
CREATE TABLE object (
	name TEXT PRIMARY KEY,
	since_ms INTEGER NOT NULL,
	doomed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX object_by_age ON object (since_ms);

-- However a file's row is deleted or changed, its old object is recorded for gc.
CREATE TRIGGER artifact_goes AFTER DELETE ON artifact WHEN OLD.object IS NOT NULL
BEGIN
	INSERT INTO object (name, since_ms) VALUES (OLD.object, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER artifact_changes AFTER UPDATE ON artifact WHEN OLD.object IS NOT NULL AND OLD.object IS NOT NEW.object
BEGIN
	INSERT INTO object (name, since_ms) VALUES (OLD.object, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
PRAGMA user_version = 12;
