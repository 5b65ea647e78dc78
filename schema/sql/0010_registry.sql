-- MLflow's registry: registered models, their numbered versions, tags, and aliases of versions.
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

-- stage: None, Staging, Production, Archived; Deleted_Internal: deleted, its number is never reused.
-- location: of the files, where source names another model. NULL: not given.
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

-- Versions that are not deleted, with the name of their model. prompt: some version of the model is a prompt.
CREATE VIEW version AS
SELECT v.*, r.name, EXISTS (SELECT 1 FROM model_version_tag t WHERE t.registered_id = r.id AND t.name = 'mlflow.prompt.is_prompt'
	AND t.value = 'true') AS prompt
FROM registered_model r JOIN model_version v ON v.registered_id = r.id WHERE v.stage <> 'Deleted_Internal';
PRAGMA user_version = 10;
