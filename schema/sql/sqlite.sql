-- Times are integer milliseconds since 1970 UTC. A summary's NaN is NULL; points themselves are only in blobs.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(16))));

-- location: of the artifacts, given by a client of MLflow's API; '': in the store. updated_ms 0: as created_ms.
CREATE TABLE experiment (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	created_ms INTEGER NOT NULL,
	deleted_ms INTEGER,
	updated_ms INTEGER NOT NULL DEFAULT 0,
	location TEXT NOT NULL DEFAULT ''
);
INSERT INTO experiment (id, name, created_ms) VALUES (0, 'Default', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));

-- rev: the last change of the run, from one counter for the whole store. beats: our own journal writes the run,
-- so silence means that it died. last_ms: time of its last record. user: name given by the client. keys: number of
-- metric keys over all parts.
CREATE TABLE run (
	id INTEGER PRIMARY KEY,
	uuid TEXT NOT NULL UNIQUE,
	experiment_id INTEGER NOT NULL REFERENCES experiment (id),
	name TEXT NOT NULL,
	status TEXT NOT NULL,
	inferred INTEGER NOT NULL DEFAULT 0,
	beats INTEGER NOT NULL DEFAULT 0,
	start_ms INTEGER,
	end_ms INTEGER,
	last_ms INTEGER NOT NULL DEFAULT 0,
	last_step INTEGER NOT NULL DEFAULT -1,
	segment INTEGER NOT NULL DEFAULT 0,
	world_size INTEGER NOT NULL DEFAULT 0,
	deleted_ms INTEGER,
	rev INTEGER NOT NULL,
	user TEXT NOT NULL DEFAULT '',
	keys INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX run_by_experiment ON run (experiment_id, start_ms, id);
CREATE INDEX run_by_state ON run (experiment_id, deleted_ms, status, start_ms, end_ms);
CREATE INDEX run_by_rev ON run (rev);
CREATE INDEX run_beating ON run (last_ms) WHERE beats = 1 AND status = 'running';

-- The newest edition of the notes; note_text has those that were replaced. editing: what one author writes in one go has one
-- word, and its last text is the edition.
CREATE TABLE note (
	run_id INTEGER PRIMARY KEY REFERENCES run (id),
	text TEXT NOT NULL,
	edition INTEGER NOT NULL DEFAULT 1,
	editing TEXT NOT NULL DEFAULT '',
	written_ms INTEGER
);
CREATE TABLE note_text (
	run_id INTEGER NOT NULL,
	edition INTEGER NOT NULL,
	text TEXT NOT NULL,
	written_ms INTEGER,
	PRIMARY KEY (run_id, edition)
) WITHOUT ROWID;

-- Names of params, tags, metrics and environment entries, stored once.
CREATE TABLE key (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

-- segment -1: of the run, the first value is final. Else the value in the newest segment, which may change.
CREATE TABLE param (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, key_id)
) WITHOUT ROWID;
CREATE INDEX param_by_key ON param (key_id, run_id, value);

CREATE TABLE segment_param (
	run_id INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, segment, key_id)
) WITHOUT ROWID;

CREATE TABLE tag (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, key_id)
) WITHOUT ROWID;
CREATE INDEX tag_by_key ON tag (key_id, run_id, value);

CREATE TABLE environment (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run_id, key_id)
) WITHOUT ROWID;

-- hide_*: the smallest first_* of later segments; points from there on are hidden. final: who set the status
-- (0 none, 1 a rank or a client, 2 the launcher).
CREATE TABLE segment (
	run_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	first_step INTEGER NOT NULL,
	first_epoch INTEGER NOT NULL,
	hide_step INTEGER NOT NULL,
	hide_epoch INTEGER NOT NULL,
	start_ms INTEGER,
	end_ms INTEGER,
	status TEXT NOT NULL,
	final INTEGER NOT NULL DEFAULT 0,
	world_size INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (run_id, number)
) WITHOUT ROWID;

-- One journal. durable: the offset up to which its bytes are stored. ordered: arrival has the order of its points.
CREATE TABLE writer (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	uuid TEXT NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	durable INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	path TEXT,
	ordered INTEGER NOT NULL DEFAULT 0,
	UNIQUE (run_id, uuid)
);

-- Summaries of a run's visible run-level points by key, including the log (written in the commit that stores them).
CREATE TABLE metric (
	key_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	count INTEGER NOT NULL,
	nonfinite INTEGER NOT NULL,
	first REAL, last REAL, min REAL, max REAL,
	first_step INTEGER, last_step INTEGER, min_step INTEGER, max_step INTEGER,
	first_time REAL, last_time REAL,
	nonfinite_step INTEGER,
	PRIMARY KEY (key_id, run_id)
) WITHOUT ROWID;
CREATE INDEX metric_by_run ON metric (run_id, key_id);

-- Points not folded yet: one row per batch and run, packed (web/store/points/pack.h).
CREATE TABLE log (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	points INTEGER NOT NULL,
	data BLOB NOT NULL
);
CREATE INDEX log_by_run ON log (run_id, id);

-- id = series id * 2^20 + number, so that chunks of a series are adjacent (format: web/store/points/chunk.h).
CREATE TABLE chunk (
	id INTEGER PRIMARY KEY,
	points INTEGER NOT NULL,
	min_step INTEGER NOT NULL,
	max_step INTEGER NOT NULL,
	min_time REAL,
	max_time REAL,
	data BLOB NOT NULL
);

CREATE TABLE alert (
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	step INTEGER NOT NULL,
	value REAL,
	weight REAL NOT NULL,
	PRIMARY KEY (run_id, key_id, kind)
) WITHOUT ROWID;

-- Intact records that could not be applied.
CREATE TABLE problem (
	run_id INTEGER NOT NULL,
	text TEXT NOT NULL,
	time_ms INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (run_id, text)
) WITHOUT ROWID;

CREATE TABLE idempotency (
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	accepted INTEGER NOT NULL,
	PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_ms);

-- Access to the server. hash: SHA-256 of the token in hex; the token itself is not stored. Revoked rows stay, so that
-- revoking the last token does not open the server. scope: 1 read, 2 write, 3 admin; 0: a person without any.
-- person: who has it; '': as name.
-- grants: what it may do in which experiments (web/store/base/grants.h); '': the scope in all.
-- issuer, subject: a person who signs in by that provider; no text has the hash, only sessions and children use it.
-- parent: the hash of the token whose rights this one has at each moment.
CREATE TABLE token (
	name TEXT PRIMARY KEY,
	hash TEXT NOT NULL UNIQUE,
	scope INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER,
	revoked_ms INTEGER,
	person TEXT NOT NULL DEFAULT '',
	grants TEXT NOT NULL DEFAULT '',
	issuer TEXT,
	subject TEXT,
	parent TEXT,
	share TEXT NOT NULL DEFAULT '',
	experiment_id INTEGER,
	used_ms INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX token_of_person ON token (issuer, subject);

-- From here to run_model: data of MLflow's clients in addition to runs, params, tags and points.
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

-- Uploaded files by path below the root of artifacts. The digest is valid while time and size match the file. object: random
-- name of the object with the bytes, in an object store; NULL: a file at that path below the folder of artifacts.
CREATE TABLE artifact (
	path TEXT PRIMARY KEY,
	bytes INTEGER NOT NULL,
	time_ns INTEGER NOT NULL,
	sha256 TEXT NOT NULL,
	object TEXT
) WITHOUT ROWID;

-- Runs that were removed for good: their ids are never reused, and their journals never recreate them.
-- stage 0: rows are still to be deleted; 1: all are deleted. rev: as of a run, so that the removal is seen as a change.
CREATE TABLE gone (
	run_id INTEGER PRIMARY KEY,
	uuid TEXT NOT NULL UNIQUE,
	experiment_id INTEGER NOT NULL,
	removed_ms INTEGER NOT NULL,
	rev INTEGER NOT NULL,
	stage INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX gone_by_rev ON gone (rev);
CREATE INDEX gone_unfinished ON gone (run_id) WHERE stage = 0;
CREATE INDEX run_deleted ON run (deleted_ms, id) WHERE deleted_ms IS NOT NULL;

-- The order of points across series of imported files: one row per batch of such a writer (web/store/points/order.h),
-- in order of arrival.
CREATE TABLE arrival (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	data BLOB NOT NULL
);
CREATE INDEX arrival_by_run ON arrival (run_id, id);

-- Summaries cover the folded points only, without those in the log. ordered: steps never decrease.
CREATE TABLE series (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	ordered INTEGER NOT NULL DEFAULT 1,
	chunks INTEGER NOT NULL DEFAULT 0,
	count INTEGER NOT NULL DEFAULT 0,
	nonfinite INTEGER NOT NULL DEFAULT 0,
	first REAL, last REAL, min REAL, max REAL,
	first_step INTEGER, last_step INTEGER, min_step INTEGER, max_step INTEGER,
	first_time REAL, last_time REAL,
	nonfinite_step INTEGER
);
CREATE UNIQUE INDEX series_by_part ON series (run_id, rank, segment, key_id);

-- A part of a run: a rank in one segment that has series. Series of a part are adjacent: a rank sends all its keys at once,
-- and an index by key would be written in many places.
CREATE TABLE part (
	run_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	PRIMARY KEY (run_id, rank, segment)
) WITHOUT ROWID;

-- Console output: lines of a rank in one segment, several per row, in the message that they arrived in (console.h).
CREATE TABLE console (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	first_line INTEGER NOT NULL,
	lines INTEGER NOT NULL,
	time_ms INTEGER NOT NULL,
	bytes BLOB NOT NULL
);
CREATE UNIQUE INDEX console_by_line ON console (run_id, rank, segment, first_line, lines, time_ms);

-- Code of a segment: commit, diff, packages, ...; the last value of a name is kept.
CREATE TABLE code (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	name TEXT NOT NULL,
	text TEXT NOT NULL
);
CREATE UNIQUE INDEX code_by_name ON code (run_id, segment, name);

-- Alerts sent by programs. level: 1 information, 2 warning, 3 error.
CREATE TABLE told (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	step INTEGER NOT NULL,
	time_ms INTEGER NOT NULL,
	level INTEGER NOT NULL,
	title TEXT NOT NULL,
	text TEXT NOT NULL
);
CREATE INDEX told_by_run ON told (run_id);

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

-- Saved views of the page and reports, by name, with earlier editions of their texts.
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
	editing TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (kept_id, edition)
) WITHOUT ROWID;

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

-- Sessions of the page. hash: SHA-256 of the cookie's value, in hex; token: of the token used for login, which
-- decides the scope of the session at each moment.
CREATE TABLE session (
	hash TEXT PRIMARY KEY,
	token TEXT NOT NULL,
	until_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Alert rules for runs, and the alerts that they fired.
-- experiment_id -1: all. kind: metric (its max above, or min below bound), nan (of the metric, '' any), failed, silent (for
-- bound seconds), done. Only runs changed after since_rev (the largest run.rev when the rule was created) are evaluated.
CREATE TABLE alert_rule (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	experiment_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	metric TEXT NOT NULL,
	above INTEGER NOT NULL,
	bound REAL NOT NULL,
	since_rev INTEGER NOT NULL,
	created_ms INTEGER NOT NULL
);

-- A rule fires once per run. due_ms: when to post the alert, or when its claim by a process expires; NULL: not to be posted.
CREATE TABLE alert_fired (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	rule_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	metric TEXT NOT NULL,
	step INTEGER NOT NULL,
	value REAL,
	text TEXT NOT NULL,
	time_ms INTEGER NOT NULL,
	due_ms INTEGER,
	tries INTEGER NOT NULL DEFAULT 0,
	posted_ms INTEGER,
	UNIQUE (rule_id, run_id)
);
CREATE INDEX alert_fired_by_run ON alert_fired (run_id);
CREATE INDEX alert_fired_due ON alert_fired (due_ms) WHERE due_ms IS NOT NULL;

-- Files stored with a run (dptrack_file), as recorded in its journal. The last one of a name counts.
CREATE TABLE file (
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	sha256 TEXT NOT NULL
);
CREATE UNIQUE INDEX file_by_name ON file (run_id, name);

-- The chunks of an ended run as one object in the object store of the files; the run then has no rows in chunk.
CREATE TABLE archive (
	run_id INTEGER PRIMARY KEY,
	object TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	sha256 TEXT NOT NULL
);

CREATE TRIGGER archive_goes AFTER DELETE ON archive
BEGIN
	INSERT INTO object (name, since_ms) VALUES (OLD.object, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;

-- Texts that a client's API keeps of a run besides the rows that it becomes, by name: W&B's config and summary, the lines of
-- its streams that are stored.
CREATE TABLE run_text (
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

-- Versions of W&B's artifacts. version: its number in the collection. state: 0 files are still uploaded, 1 committed, 2 deleted.
-- client: id that its client drew. run: that made it. said: JSON, what its client said (description, metadata, ...).
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

-- Files of artifacts, by their manifests. md5: of their bytes, in base64; of a reference the digest that its client
-- named. bytes: their size, -1: unknown. born: the artifact that they were uploaded for; 0: a reference.
CREATE TABLE wandb_file (
	artifact_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	md5 TEXT NOT NULL,
	bytes INTEGER NOT NULL DEFAULT -1,
	born INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (artifact_id, name)
) WITHOUT ROWID;
CREATE INDEX wandb_file_by_born ON wandb_file (born) WHERE born <> 0 AND born <> artifact_id;

-- Versions that runs use (how 1), have logged again (2), or both (3).
CREATE TABLE wandb_use (
	run TEXT NOT NULL,
	artifact_id INTEGER NOT NULL,
	how INTEGER NOT NULL DEFAULT 1,
	PRIMARY KEY (run, artifact_id)
) WITHOUT ROWID;
CREATE INDEX wandb_use_by_artifact ON wandb_use (artifact_id);

-- Who changed what (web/store/audit/audit.h), numbered without gaps. hash: of the entry and of the hash before it.
CREATE TABLE audit (
	seq INTEGER PRIMARY KEY,
	time_ms INTEGER NOT NULL,
	via TEXT NOT NULL,
	author TEXT NOT NULL,
	action TEXT NOT NULL,
	object TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	experiment TEXT NOT NULL,
	detail TEXT NOT NULL,
	hash TEXT NOT NULL
);
CREATE INDEX audit_by_object ON audit (object, id, seq);
-- One row: the last entry, so that entries missing at the end are noticed.
CREATE TABLE audit_head (
	one INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	hash TEXT NOT NULL
);

-- Files on disk whose deletion is stored: they are removed next, unless an upload has replaced them.
CREATE TABLE leaving (
	path TEXT PRIMARY KEY,
	bytes INTEGER NOT NULL,
	time_ns INTEGER NOT NULL
) WITHOUT ROWID;

-- Rules of what is deleted after some time. experiment_id -1: of experiments without rules of their own. NULL: off.
-- keep_best: how many of the experiment's best runs keep their artifacts.
CREATE TABLE retention (
	experiment_id INTEGER PRIMARY KEY,
	artifact_ms INTEGER,
	keep_best INTEGER NOT NULL,
	trash_ms INTEGER,
	quota_bytes INTEGER
);

-- The key of addresses that hold their own right.
INSERT INTO meta VALUES ('address_key', lower(hex(randomblob(32))));

PRAGMA user_version = 27;
