-- MLflow's registry: registered models, their numbered versions, tags, and aliases that stand for a version.
CREATE TABLE registered_model (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	description TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL
);

CREATE TABLE registered_tag (
	registered_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (registered_id, name)
) WITHOUT ROWID;

CREATE TABLE registered_alias (
	registered_id INTEGER NOT NULL,
	alias TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (registered_id, alias)
) WITHOUT ROWID;

-- stage: None, Staging, Production, Archived; of a deleted one Deleted_Internal: its number is never given again.
-- location: where the files lie, where source names another model. NULLs: never said.
CREATE TABLE model_version (
	registered_id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	description TEXT,
	user TEXT,
	stage TEXT NOT NULL,
	source TEXT NOT NULL,
	location TEXT NOT NULL,
	run TEXT,
	run_link TEXT,
	status TEXT NOT NULL,
	status_text TEXT,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	PRIMARY KEY (registered_id, version)
) WITHOUT ROWID;

CREATE TABLE model_version_tag (
	registered_id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (registered_id, version, name)
) WITHOUT ROWID;

-- Versions that were not deleted, with the name that they stand under. prompt: some version of the model is a prompt's.
CREATE VIEW version AS
SELECT v.*, r.name, EXISTS (SELECT 1 FROM model_version_tag t WHERE t.registered_id = r.id AND t.name = 'mlflow.prompt.is_prompt'
	AND t.value = 'true') AS prompt
FROM registered_model r JOIN model_version v ON v.registered_id = r.id WHERE v.stage <> 'Deleted_Internal';
PRAGMA user_version = 10;
