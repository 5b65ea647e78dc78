-- Editions of notes: note has the newest, note_text those that were replaced. editing: what one author writes in one go has
-- one word, and its last text is the edition.
ALTER TABLE note ADD COLUMN edition INTEGER NOT NULL DEFAULT 1;
ALTER TABLE note ADD COLUMN editing TEXT NOT NULL DEFAULT '';
ALTER TABLE note ADD COLUMN written_ms INTEGER;
CREATE TABLE note_text (
	run_id INTEGER NOT NULL,
	edition INTEGER NOT NULL,
	text TEXT NOT NULL,
	written_ms INTEGER,
	PRIMARY KEY (run_id, edition)
) WITHOUT ROWID;
ALTER TABLE kept_text ADD COLUMN editing TEXT NOT NULL DEFAULT '';
PRAGMA user_version = 25;
