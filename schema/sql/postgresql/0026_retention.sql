-- Files on disk whose deletion is stored: they are removed next, unless an upload has replaced them.
CREATE TABLE leaving (
	path text COLLATE "C" PRIMARY KEY,
	bytes bigint NOT NULL,
	time_ns bigint NOT NULL
);
-- Rules of what is deleted after some time. experiment_id -1: of experiments without rules of their own. NULL: off.
-- keep_best: how many of the experiment's best runs keep their artifacts.
CREATE TABLE retention (
	experiment_id bigint PRIMARY KEY,
	artifact_ms bigint,
	keep_best bigint NOT NULL,
	trash_ms bigint,
	quota_bytes bigint
);
UPDATE meta SET value = '26' WHERE name = 'version';
