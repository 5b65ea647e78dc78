-- Version 12: files in an object store. object: the name of what holds a file's bytes, drawn when they came; NULL: a file of that
-- path below the folder of artifacts.
ALTER TABLE artifact ADD COLUMN object TEXT;

-- Objects that no file's row names: not yet, or no longer. since_ms: of the beginning, of the end. doomed: it is being removed,
-- and no row may name it any more.
CREATE TABLE object (
	name TEXT PRIMARY KEY,
	since_ms INTEGER NOT NULL,
	doomed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX object_by_age ON object (since_ms);

-- Whichever way a file's row goes, or comes to name other bytes, its object is not forgotten.
CREATE TRIGGER artifact_goes AFTER DELETE ON artifact WHEN OLD.object IS NOT NULL
BEGIN
	INSERT INTO object (name, since_ms) VALUES (OLD.object, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER artifact_changes AFTER UPDATE ON artifact WHEN OLD.object IS NOT NULL AND OLD.object IS NOT NEW.object
BEGIN
	INSERT INTO object (name, since_ms) VALUES (OLD.object, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
PRAGMA user_version = 12;
