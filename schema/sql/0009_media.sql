-- Images, histograms, texts, tables and sounds. Each content is stored once (format: media.h) and deleted with its last
-- use. kind: 1 image, 2 histogram, 3 text, 4 table, 5 audio.
CREATE TABLE content (
	id INTEGER PRIMARY KEY,
	digest TEXT NOT NULL UNIQUE,
	type TEXT NOT NULL,      -- media type of the returned file
	size INTEGER NOT NULL,   -- of that file, in bytes
	width INTEGER NOT NULL,  -- pixels; columns and rows of a table; else 0
	height INTEGER NOT NULL,
	bytes BLOB NOT NULL
);
CREATE TABLE media (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	step INTEGER NOT NULL,
	wall_time REAL,
	content_id INTEGER NOT NULL
);
CREATE INDEX media_by_run ON media (run_id, key_id, step);
CREATE INDEX media_by_content ON media (content_id);
CREATE TRIGGER media_frees AFTER DELETE ON media
WHEN NOT EXISTS (SELECT 1 FROM media WHERE content_id = OLD.content_id)
BEGIN
	DELETE FROM content WHERE id = OLD.content_id;
END;
PRAGMA user_version = 9;
