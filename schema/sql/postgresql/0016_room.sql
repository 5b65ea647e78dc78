-- Rows that every request updates: columns that change are at the end, since the WAL has a row's new version from its first
-- changed byte on, and pages reserve room for that version next to the last, so that no index changes.
ALTER TABLE metric RENAME TO metric_before;
ALTER TABLE metric_before DROP CONSTRAINT metric_pkey;
DROP INDEX metric_by_run;
CREATE TABLE metric (
	key_id bigint NOT NULL,
	run_id bigint NOT NULL,
	first double precision, first_step bigint, first_time double precision,
	min double precision, min_step bigint, max double precision, max_step bigint,
	nonfinite bigint NOT NULL, nonfinite_step bigint,
	count bigint NOT NULL,
	last double precision, last_step bigint, last_time double precision,
	PRIMARY KEY (key_id, run_id)
) WITH (fillfactor = 45);
INSERT INTO metric SELECT key_id, run_id, first, first_step, first_time, min, min_step, max, max_step, nonfinite, nonfinite_step,
	count, last, last_step, last_time FROM metric_before;
DROP TABLE metric_before;
CREATE INDEX metric_by_run ON metric (run_id, key_id);
ALTER TABLE series SET (fillfactor = 45);
UPDATE meta SET value = '16' WHERE name = 'version';
