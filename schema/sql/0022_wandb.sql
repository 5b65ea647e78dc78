-- Tables of W&B's API; the key of addresses that hold their own right.
CREATE TABLE run_text (
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
CREATE TABLE wandb_artifact (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	experiment_id INTEGER NOT NULL,
	collection TEXT NOT NULL,
	version INTEGER NOT NULL,
	type TEXT NOT NULL,
	digest TEXT NOT NULL,
	client TEXT NOT NULL,
	run TEXT NOT NULL,
	state INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	said TEXT NOT NULL,
	UNIQUE (experiment_id, collection, version)
);
CREATE INDEX wandb_artifact_by_client ON wandb_artifact (client);
CREATE INDEX wandb_artifact_by_run ON wandb_artifact (run);
CREATE TABLE wandb_alias (
	experiment_id INTEGER NOT NULL,
	collection TEXT NOT NULL,
	alias TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (experiment_id, collection, alias)
) WITHOUT ROWID;
CREATE TABLE wandb_file (
	artifact_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	md5 TEXT NOT NULL,
	PRIMARY KEY (artifact_id, name)
) WITHOUT ROWID;
CREATE TABLE wandb_use (
	run TEXT NOT NULL,
	artifact_id INTEGER NOT NULL,
	PRIMARY KEY (run, artifact_id)
) WITHOUT ROWID;
CREATE INDEX wandb_use_by_artifact ON wandb_use (artifact_id);
INSERT INTO meta VALUES ('address_key', lower(hex(randomblob(32))));
PRAGMA user_version = 22;
