-- Editions of notes: note has the newest, note_text those that were replaced. editing: what one author writes in one go has
-- one word, and its last text is the edition.
ALTER TABLE note ADD COLUMN edition bigint NOT NULL DEFAULT 1;
ALTER TABLE note ADD COLUMN editing text NOT NULL DEFAULT '';
ALTER TABLE note ADD COLUMN written_ms bigint;
CREATE TABLE note_text (
	run_id bigint NOT NULL,
	edition bigint NOT NULL,
	text text NOT NULL,
	written_ms bigint,
	PRIMARY KEY (run_id, edition)
);
ALTER TABLE kept_text ADD COLUMN editing text NOT NULL DEFAULT '';
UPDATE meta SET value = '25' WHERE name = 'version';
