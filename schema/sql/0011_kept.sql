-- Version 11: saved views of the page and reports, by name, with earlier editions of their texts.

-- shelf: 'view' or 'report'. preferred: its experiment opens with it. edition: number of the newest text.
CREATE TABLE kept (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	shelf TEXT NOT NULL,
	experiment_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	preferred INTEGER NOT NULL DEFAULT 0,
	edition INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	UNIQUE (experiment_id, shelf, name)
);

CREATE TABLE kept_text (
	kept_id INTEGER NOT NULL,
	edition INTEGER NOT NULL,
	text TEXT NOT NULL,
	written_ms INTEGER NOT NULL,
	PRIMARY KEY (kept_id, edition)
) WITHOUT ROWID;
PRAGMA user_version = 11;
