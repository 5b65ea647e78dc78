-- Data of MLflow's clients in addition to runs, params, tags and points.
-- updated_ms 0: as created_ms. user: name given by the client.
ALTER TABLE experiment ADD COLUMN updated_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN user TEXT NOT NULL DEFAULT '';

CREATE TABLE experiment_tag (
	experiment_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (experiment_id, name)
) WITHOUT ROWID;

CREATE TABLE dataset (
	id INTEGER PRIMARY KEY,
	experiment_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	digest TEXT NOT NULL,
	source_type TEXT NOT NULL,
	source TEXT NOT NULL,
	schema TEXT,
	profile TEXT,
	UNIQUE (experiment_id, name, digest)
);

-- A data set that a run used; number keeps the order of arrival.
CREATE TABLE run_dataset (
	run_id INTEGER NOT NULL,
	dataset_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	PRIMARY KEY (run_id, dataset_id)
) WITHOUT ROWID;
CREATE INDEX run_dataset_by_dataset ON run_dataset (dataset_id, run_id);

CREATE TABLE run_dataset_tag (
	run_id INTEGER NOT NULL,
	dataset_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, dataset_id, name)
) WITHOUT ROWID;

-- uuid: m- and 32 digits. status: pending, ready, failed.
CREATE TABLE model (
	id INTEGER PRIMARY KEY,
	uuid TEXT NOT NULL UNIQUE,
	experiment_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	type TEXT NOT NULL,
	source_run TEXT NOT NULL,
	status TEXT NOT NULL,
	status_text TEXT,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	deleted_ms INTEGER
);
CREATE INDEX model_by_experiment ON model (experiment_id, created_ms);

CREATE TABLE model_param (
	model_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (model_id, name)
) WITHOUT ROWID;

CREATE TABLE model_tag (
	model_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (model_id, name)
) WITHOUT ROWID;

-- Points that were logged with a model; value NULL is NaN.
CREATE TABLE model_metric (
	model_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	time_ms INTEGER NOT NULL,
	step INTEGER NOT NULL,
	run TEXT NOT NULL,
	value REAL,
	dataset_name TEXT NOT NULL DEFAULT '',
	dataset_digest TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (model_id, name, time_ms, step, run)
) WITHOUT ROWID;

-- direction: 0 the run read the model, 1 it made it.
CREATE TABLE run_model (
	run_id INTEGER NOT NULL,
	direction INTEGER NOT NULL,
	model TEXT NOT NULL,
	step INTEGER NOT NULL,
	PRIMARY KEY (run_id, direction, model)
) WITHOUT ROWID;

-- Uploaded files by path below the root of artifacts. The digest is valid while time and size match the file.
CREATE TABLE artifact (
	path TEXT PRIMARY KEY,
	bytes INTEGER NOT NULL,
	time_ns INTEGER NOT NULL,
	sha256 TEXT NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 3;
