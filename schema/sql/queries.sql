-- Every statement of the store, by name. Parameters are ?1, ?2, … in the order of binding. C reads columns by name; `A as B`
-- has the columns of B. The text is for SQLite and PostgreSQL, unless a second one follows.

-- name: version_get
PRAGMA user_version;
-- postgresql:
SELECT CAST(value AS bigint) FROM meta WHERE name = 'version';
-- name: copy_into
VACUUM INTO ?1;
-- postgresql:
SELECT ?1;
-- name: begin_exclusive
BEGIN EXCLUSIVE;
-- postgresql:
BEGIN;
-- name: begin
BEGIN IMMEDIATE;
-- postgresql:
BEGIN;
-- A transaction that may take long and waits for others: it fills a whole store.
-- name: begin_long
BEGIN IMMEDIATE;
-- postgresql:
BEGIN;
-- name: begin_read
BEGIN;
-- postgresql:
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
-- name: commit
COMMIT;
-- name: rollback
ROLLBACK;
-- name: free_pages
PRAGMA freelist_count;
-- postgresql:
SELECT 0;
-- name: vacuum_some
PRAGMA incremental_vacuum(512);
-- postgresql:
SELECT 0 WHERE false;
-- name: quick_check
PRAGMA quick_check(1);
-- postgresql:
SELECT 'ok' AS quick_check;
-- name: store_id
SELECT value FROM meta WHERE name = 'store_id';
-- name: address_key
SELECT value FROM meta WHERE name = 'address_key';
-- name: rev_get
SELECT max((SELECT coalesce(max(rev), 0) FROM run), (SELECT coalesce(max(rev), 0) FROM gone)) AS rev;
-- postgresql:
SELECT rev FROM counter;
-- The newest change, and the identity of the rows: after restoring a backup or a dump, or after a failover to a standby,
-- rows may lack changes that clients have seen.
-- name: changes_now
SELECT max((SELECT coalesce(max(rev), 0) FROM run), (SELECT coalesce(max(rev), 0) FROM gone)) AS rev,
	coalesce((SELECT value FROM meta WHERE name = 'rows_of'), '') AS rows_of;
-- postgresql:
SELECT c.rev, concat_ws(' ', s.system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
	(SELECT oid FROM pg_database WHERE datname = current_database()), pg_relation_filenode('counter')) AS rows_of
FROM counter c CROSS JOIN pg_control_system() s;
-- name: rows_of_draw
INSERT INTO meta (name, value) VALUES ('rows_of', lower(hex(randomblob(16))))
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
-- postgresql:
SELECT 1;
-- name: rev_take
SELECT ?1 + max((SELECT coalesce(max(rev), 0) FROM run), (SELECT coalesce(max(rev), 0) FROM gone));
-- postgresql:
UPDATE counter SET rev = rev + ?1 RETURNING rev;

-- statements for a connection to PostgreSQL itself

-- All lookups of a group use an index; plans made while tables were small must not be kept.
-- Between two statements of a pipeline neither of the first two limits applies: TCP then detects a silent machine.
-- name: pg_write_limits
-- postgresql:
SELECT set_config('statement_timeout', '10000', true) AS statement,
	set_config('idle_in_transaction_session_timeout', '3000', true) AS idle,
	set_config('tcp_keepalives_idle', '1', true) AS silent, set_config('tcp_keepalives_interval', '1', true) AS asked,
	set_config('tcp_keepalives_count', '2', true) AS times, set_config('tcp_user_timeout', '3000', true) AS unheard,
	set_config('enable_seqscan', 'off', true) AS scans, set_config('enable_hashjoin', 'off', true) AS hashes,
	set_config('enable_mergejoin', 'off', true) AS merges, set_config('jit', 'off', true) AS compiled,
	set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
	ELSE current_setting('synchronous_commit') END, true) AS durable;
-- name: pg_long_limits
-- postgresql:
SELECT set_config('statement_timeout', '0', true) AS statement, set_config('idle_in_transaction_session_timeout', '0', true) AS idle,
	set_config('tcp_keepalives_idle', '5', true) AS silent, set_config('tcp_keepalives_interval', '2', true) AS asked,
	set_config('tcp_keepalives_count', '3', true) AS times, set_config('tcp_user_timeout', '10000', true) AS unheard,
	set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
	ELSE current_setting('synchronous_commit') END, true) AS durable;
-- name: pg_backend
-- postgresql:
SELECT CAST(pg_backend_pid() AS bigint) AS pid;
-- name: pg_tables
-- postgresql:
SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'meta';
-- name: pg_process_add
-- postgresql:
INSERT INTO process (done) VALUES (0) RETURNING id;
-- The group fails if the row of this process is gone.
-- name: pg_process_done
-- postgresql:
WITH known AS (UPDATE process SET done = ?2 WHERE id = ?1 RETURNING 1) SELECT 1 / count(*) FROM known;
-- name: pg_process_ask
-- postgresql:
DELETE FROM process WHERE id = ?1 RETURNING done;
-- name: live_listen
-- postgresql:
LISTEN dptrack;
-- name: live_get
-- postgresql:
SELECT c.rev, t.changes AS tokens FROM counter c CROSS JOIN token_count t;
-- name: live_tell
-- postgresql:
SELECT pg_notify('dptrack', '');

-- leases: rows of meta, "UNTIL_MS HOLDER" by the database's clock; ?3: for how many ms. One process holds a file alone, and so
-- every lease.

-- name: lease_take
SELECT 1 FROM (SELECT ?1, ?2, ?3);
-- postgresql:
INSERT INTO meta (name, value) VALUES ('lease ' || ?1, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) + ?3 || ' ' || ?2)
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value WHERE split_part(meta.value, ' ', 2) = ?2
	OR CAST(split_part(meta.value, ' ', 1) AS bigint) < CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) RETURNING 1;
-- name: lease_holder
-- postgresql:
SELECT split_part(value, ' ', 2) AS holder FROM meta WHERE name = 'lease ' || ?1;
-- name: lease_held
-- postgresql:
SELECT 1 FROM meta WHERE name = 'lease ' || ?1 AND CAST(split_part(value, ' ', 1) AS bigint) + CAST(?2 AS bigint)
	>= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint);
-- name: lease_give
-- postgresql:
DELETE FROM meta WHERE name = 'lease ' || ?1 AND split_part(value, ' ', 2) = ?2;

-- experiments

-- name: experiment_by_name
SELECT id FROM experiment WHERE name = ?1;
-- name: experiment_next_id
SELECT 1 + max((SELECT coalesce(max(id), 0) FROM experiment), (SELECT coalesce(max(experiment_id), 0) FROM gone));
-- postgresql:
SELECT nextval('experiment_id');
-- name: experiment_add
INSERT INTO experiment (id, name, created_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
-- Changes whenever an experiment is added, renamed or removed: a rename moves its updated_ms forward.
-- name: experiment_stamp
SELECT count(*) AS number, coalesce(max(id), 0) AS last, CAST(coalesce(sum(updated_ms), 0) AS BIGINT) AS updated FROM experiment;
-- name: experiment_name
SELECT name FROM experiment WHERE id = ?1;
-- name: experiment_names
SELECT id, name FROM experiment ORDER BY id;
-- name: experiment_list
SELECT id, name, created_ms,
	coalesce((SELECT substr(value, 1, 500) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'mlflow.note.content'), '') AS description,
	(SELECT count(*) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'dptrack.archived' AND value = 'true') AS archived
FROM experiment WHERE deleted_ms IS NULL AND (?1 IS NULL OR id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']')))
ORDER BY id <> 0, name;
-- postgresql:
SELECT id, name, created_ms,
	coalesce((SELECT substr(value, 1, 500) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'mlflow.note.content'), '') AS description,
	(SELECT count(*) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'dptrack.archived' AND value = 'true') AS archived
FROM experiment WHERE deleted_ms IS NULL AND (?1 IS NULL OR id = ANY (CAST(?1 AS bigint[]))) ORDER BY id <> 0, name;
-- name: experiment_trash as experiment_list
SELECT id, name, created_ms,
	coalesce((SELECT substr(value, 1, 500) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'mlflow.note.content'), '') AS description,
	(SELECT count(*) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'dptrack.archived' AND value = 'true') AS archived
FROM experiment WHERE deleted_ms IS NOT NULL AND (?1 IS NULL OR id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']')))
ORDER BY name;
-- postgresql:
SELECT id, name, created_ms,
	coalesce((SELECT substr(value, 1, 500) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'mlflow.note.content'), '') AS description,
	(SELECT count(*) FROM experiment_tag t WHERE t.experiment_id = experiment.id AND t.name = 'dptrack.archived' AND value = 'true') AS archived
FROM experiment WHERE deleted_ms IS NOT NULL AND (?1 IS NULL OR id = ANY (CAST(?1 AS bigint[]))) ORDER BY name;

-- The experiments of a permitted set (an array, NULL: all) are a parameter of the queries that list things of many experiments.

-- runs

-- name: run_by_uuid
SELECT id, uuid, experiment_id, name, status, inferred, beats, start_ms, end_ms, last_ms, last_step, segment, world_size,
	deleted_ms, keys, 0 AS version, EXISTS (SELECT 1 FROM archive a WHERE a.run_id = run.id) AS archived FROM run WHERE uuid = ?1;
-- postgresql:
SELECT id, uuid, experiment_id, name, status, inferred, beats, start_ms, end_ms, last_ms, last_step, segment, world_size,
	deleted_ms, keys, version, CAST(EXISTS (SELECT 1 FROM archive a WHERE a.run_id = run.id) AS int) AS archived
FROM run WHERE uuid = ?1;
-- name: run_by_id as run_by_uuid
SELECT id, uuid, experiment_id, name, status, inferred, beats, start_ms, end_ms, last_ms, last_step, segment, world_size,
	deleted_ms, keys, 0 AS version, EXISTS (SELECT 1 FROM archive a WHERE a.run_id = run.id) AS archived FROM run WHERE id = ?1;
-- postgresql:
SELECT id, uuid, experiment_id, name, status, inferred, beats, start_ms, end_ms, last_ms, last_step, segment, world_size,
	deleted_ms, keys, version, CAST(EXISTS (SELECT 1 FROM archive a WHERE a.run_id = run.id) AS int) AS archived
FROM run WHERE id = ?1;
-- Sent before run_by_*: a statement that waits for a row's lock sees that row's new version, but other tables (archive) in
-- their old state.
-- name: run_lock_uuid
-- postgresql:
SELECT id FROM run WHERE uuid = ?1 FOR UPDATE;
-- name: run_lock_id
-- postgresql:
SELECT id FROM run WHERE id = ?1 FOR UPDATE;
-- The runs of a group, always in the same order, so that groups never deadlock.
-- name: run_lock
-- postgresql:
SELECT id, version FROM run WHERE uuid = ANY (CAST(?1 AS text[])) ORDER BY id FOR UPDATE;
-- name: run_id_of
SELECT id, experiment_id FROM run WHERE uuid = ?1;
-- name: gone_of as run_id_of
SELECT run_id AS id, experiment_id FROM gone WHERE uuid = ?1;
-- name: run_experiment
SELECT experiment_id FROM run WHERE uuid = ?1;
-- name: run_next_id
SELECT 1 + max((SELECT coalesce(max(id), 0) FROM run), (SELECT coalesce(max(run_id), 0) FROM gone));
-- postgresql:
SELECT nextval('run_id');
-- name: run_next_ids
-- postgresql:
SELECT nextval('run_id') AS id FROM generate_series(1, ?1);
-- name: run_add
INSERT INTO run (id, uuid, experiment_id, name, status, start_ms, rev, "user") VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7);
-- name: runs_put
UPDATE run SET status = ?2, inferred = ?3, beats = ?4, start_ms = ?5, end_ms = ?6, last_ms = ?7, last_step = ?8,
	segment = ?9, world_size = ?10, deleted_ms = ?11, rev = CASE WHEN ?12 < 0 THEN rev ELSE ?12 END, keys = ?13 WHERE id = ?1;
-- postgresql:
UPDATE run AS r SET status = n.status, inferred = n.inferred, beats = n.beats, start_ms = n.start_ms, end_ms = n.end_ms,
	last_ms = n.last_ms, last_step = n.last_step, segment = n.segment, world_size = n.world_size, deleted_ms = n.deleted_ms,
	rev = CASE WHEN n.rev < 0 THEN r.rev ELSE n.rev END, keys = n.keys, version = r.version + 1
FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) AS n (id, status, inferred, beats, start_ms, end_ms, last_ms,
	last_step, segment, world_size, deleted_ms, rev, keys) WHERE r.id = n.id;
-- name: run_name_put
UPDATE run SET name = ?2 WHERE id = ?1;
-- name: run_experiment_put
UPDATE run SET experiment_id = ?2 WHERE id = ?1;
-- Before run_experiment_put: it uses the run's old experiment.
-- name: run_models_move
UPDATE model SET experiment_id = ?2 WHERE source_run = ?3 AND experiment_id = (SELECT experiment_id FROM run WHERE id = ?1);
-- name: run_name_tag_put
UPDATE tag SET value = ?2 WHERE run_id = ?1 AND key_id = (SELECT id FROM key WHERE name = 'mlflow.runName');
-- name: run_lost
SELECT id FROM run WHERE beats = 1 AND status = 'running' AND last_ms < ?1;
-- name: run_has_journal
SELECT 1 FROM writer WHERE run_id = ?1 AND rank <> -1 AND ordered = 0 LIMIT 1;

-- segments

-- name: segment_list
SELECT number, first_step, first_epoch, hide_step, hide_epoch, start_ms, end_ms, status, final, world_size
FROM segment WHERE run_id = ?1 ORDER BY number;
-- name: segment_put
INSERT INTO segment (run_id, number, first_step, first_epoch, hide_step, hide_epoch, start_ms, end_ms, status, final,
	world_size) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (run_id, number) DO UPDATE SET hide_step = ?5, hide_epoch = ?6, start_ms = ?7, end_ms = ?8, status = ?9,
	final = ?10, world_size = ?11;

-- keys, params, tags, notes, environment

-- name: key_by_name
SELECT id FROM key WHERE name = ?1;
-- The shortest name of a param or metric that a text begins or ends.
-- name: key_by_part
SELECT k.name FROM key k WHERE length(k.name) > length(?1)
	AND (substr(k.name, length(k.name) - length(?1)) = '/' || ?1 OR substr(k.name, 1, length(?1) + 1) IN (?1 || '_', ?1 || '/'))
	AND (EXISTS (SELECT 1 FROM param p JOIN run r ON r.id = p.run_id WHERE p.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']'))))
	OR EXISTS (SELECT 1 FROM metric m JOIN run r ON r.id = m.run_id WHERE m.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))))
ORDER BY length(k.name), k.name LIMIT 1;
-- postgresql:
SELECT k.name FROM key k WHERE length(k.name) > length(?1)
	AND (substr(k.name, length(k.name) - length(?1)) = '/' || ?1 OR substr(k.name, 1, length(?1) + 1) IN (?1 || '_', ?1 || '/'))
	AND (EXISTS (SELECT 1 FROM param p JOIN run r ON r.id = p.run_id WHERE p.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id = ANY (CAST(?2 AS bigint[]))))
	OR EXISTS (SELECT 1 FROM metric m JOIN run r ON r.id = m.run_id WHERE m.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id = ANY (CAST(?2 AS bigint[])))))
ORDER BY length(k.name), k.name LIMIT 1;
-- name: key_permitted
SELECT 1 FROM key k WHERE k.name = ?1
	AND (EXISTS (SELECT 1 FROM param p JOIN run r ON r.id = p.run_id WHERE p.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']'))))
	OR EXISTS (SELECT 1 FROM metric m JOIN run r ON r.id = m.run_id WHERE m.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))));
-- postgresql:
SELECT 1 FROM key k WHERE k.name = ?1
	AND (EXISTS (SELECT 1 FROM param p JOIN run r ON r.id = p.run_id WHERE p.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id = ANY (CAST(?2 AS bigint[]))))
	OR EXISTS (SELECT 1 FROM metric m JOIN run r ON r.id = m.run_id WHERE m.key_id = k.id
		AND (?2 IS NULL OR r.experiment_id = ANY (CAST(?2 AS bigint[])))));
-- name: key_add
INSERT INTO key (name) VALUES (?1);
-- postgresql:
INSERT INTO key (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET name = ?1 RETURNING id;
-- name: keys_by_name
-- postgresql:
SELECT id, name FROM key WHERE name = ANY (CAST(?1 AS text[]));
-- name: keys_add as keys_by_name
-- postgresql:
WITH made AS (INSERT INTO key (name) SELECT DISTINCT n COLLATE "C" AS n FROM unnest(CAST(?1 AS text[])) AS n ORDER BY n
	ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id, name) SELECT id, name FROM made;
-- name: params_by_names
SELECT w.key + 1 AS place, p.value FROM json_each('[' || trim(?2, '{}') || ']') AS w CROSS JOIN key k ON k.name = w.value
	CROSS JOIN param p ON p.run_id = ?1 AND p.key_id = k.id;
-- postgresql:
SELECT w.place, l.value FROM unnest(CAST(?2 AS text[])) WITH ORDINALITY AS w (name, place)
	CROSS JOIN LATERAL (SELECT id FROM key WHERE name = w.name OFFSET 0) AS k
	CROSS JOIN LATERAL (SELECT value FROM param WHERE run_id = ?1 AND key_id = k.id OFFSET 0) AS l;
-- name: param_by_key
SELECT value FROM param WHERE run_id = ?1 AND key_id = ?2;
-- name: params_of_run_count
SELECT count(*) FROM param WHERE run_id = ?1;
-- name: param_add
INSERT INTO param (run_id, key_id, segment, value) VALUES (?1, ?2, -1, ?3) ON CONFLICT DO NOTHING;
-- name: params_add
INSERT INTO param (run_id, key_id, segment, value) VALUES (?1, ?2, -1, ?3) ON CONFLICT DO NOTHING;
-- postgresql:
INSERT INTO param (run_id, key_id, segment, value) SELECT run_id, key_id, -1, value FROM unnest(?1, ?2, ?3)
	AS n (run_id, key_id, value) ON CONFLICT DO NOTHING;
-- name: param_change
UPDATE param SET value = ?3 WHERE run_id = ?1 AND key_id = ?2;
-- name: segment_param_put
INSERT INTO segment_param (run_id, segment, key_id, value) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING;
-- name: param_segment_put
INSERT INTO param (run_id, key_id, segment, value) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, key_id) DO UPDATE SET segment = ?3, value = ?4 WHERE param.segment < ?3 AND param.segment >= 0;
-- name: tag_put
INSERT INTO tag (run_id, key_id, value) VALUES (?1, ?2, ?3) ON CONFLICT (run_id, key_id) DO UPDATE SET value = ?3;
-- name: tag_find
SELECT key_id FROM tag WHERE run_id = ?1 AND key_id = (SELECT id FROM key WHERE name = ?2);
-- name: tag_delete
DELETE FROM tag WHERE run_id = ?1 AND key_id = ?2;
-- name: note_get
SELECT text FROM note WHERE run_id = ?1;
-- name: note_keep
INSERT INTO note_text (run_id, edition, text, written_ms) SELECT run_id, edition, text, written_ms FROM note
WHERE run_id = ?1 AND text <> ?2 AND text <> '' AND (editing = '' OR editing <> ?3);
-- name: note_put
INSERT INTO note (run_id, text, editing, written_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (run_id)
DO UPDATE SET text = ?2, edition = note.edition + 1, editing = ?3, written_ms = ?4 WHERE note.text <> ?2;
-- name: note_trim
DELETE FROM note_text WHERE run_id = ?1 AND edition < (SELECT edition FROM note_text WHERE run_id = ?1
	ORDER BY edition DESC LIMIT 1 OFFSET ?2);
-- name: note_edition
SELECT edition FROM note WHERE run_id = ?1;
-- name: note_editions
SELECT edition, written_ms, text FROM note_text WHERE run_id = ?1 UNION ALL
SELECT edition, written_ms, text FROM note WHERE run_id = ?1 ORDER BY edition;
-- name: note_text_find
SELECT edition FROM note_text WHERE run_id = ?1 AND edition = ?2;
-- name: note_text_delete
DELETE FROM note_text WHERE run_id = ?1 AND edition = ?2;
-- name: environment_put
INSERT INTO environment (run_id, key_id, value) VALUES (?1, ?2, ?3)
ON CONFLICT (run_id, key_id) DO UPDATE SET value = ?3;
-- name: environment_drop
DELETE FROM environment WHERE run_id = ?1 AND key_id = ?2;
-- name: console_end
SELECT first_line + lines FROM console WHERE run_id = ?1 AND rank = ?2 AND segment = ?3 ORDER BY first_line DESC LIMIT 1;
-- name: console_add
INSERT INTO console (run_id, rank, segment, first_line, lines, time_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
-- name: console_at
SELECT id, first_line, time_ms, bytes FROM console WHERE run_id = ?1 AND rank = ?2 AND segment = ?3 AND first_line <= ?4 AND first_line + lines > ?4;
-- name: console_put
UPDATE console SET bytes = ?2 WHERE id = ?1;
-- name: code_put
INSERT INTO code (run_id, segment, name, text) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, segment, name) DO UPDATE SET text = ?4;
-- name: file_put
INSERT INTO file (run_id, name, bytes, sha256) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, name) DO UPDATE SET bytes = ?3, sha256 = ?4;
-- name: told_add
INSERT INTO told (run_id, rank, segment, step, time_ms, level, title, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);
-- name: content_find
SELECT id FROM content WHERE digest = ?1;
-- name: content_add
INSERT INTO content (digest, type, size, width, height, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
-- postgresql:
INSERT INTO content (digest, type, size, width, height, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (digest) DO UPDATE SET size = ?3 RETURNING id;
-- name: media_add
INSERT INTO media (run_id, key_id, kind, rank, segment, step, wall_time, content_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- journals

-- name: writer_get
SELECT id, rank, segment, durable, ordered FROM writer WHERE run_id = ?1 AND uuid = ?2;
-- name: writer_durable
SELECT durable FROM writer WHERE run_id = ?1 AND uuid = ?2;
-- name: writer_add
INSERT INTO writer (run_id, uuid, rank, segment, durable, last_ms, host, pid, path, ordered)
VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9);
-- postgresql:
INSERT INTO writer (run_id, uuid, rank, segment, durable, last_ms, host, pid, path, ordered)
VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9) RETURNING id;
-- name: writer_rival
SELECT host, pid FROM writer WHERE run_id = ?1 AND rank = ?2 AND segment = ?3 AND last_ms > ?4 AND NOT (host = ?5 AND pid = ?6) LIMIT 1;
-- name: arrival_add
INSERT INTO arrival (run_id, data) VALUES (?1, ?2);
-- name: arrival_last
SELECT coalesce(max(id), 0) FROM arrival WHERE run_id = ?1;
-- name: arrival_next
SELECT id, data FROM arrival WHERE run_id = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT 1;
-- name: writer_put
UPDATE writer SET durable = ?2, last_ms = ?3 WHERE id = ?1;
-- name: writer_path_put
UPDATE writer SET path = ?3 WHERE run_id = ?1 AND uuid = ?2;
-- name: writer_paths_clear
UPDATE writer SET path = NULL WHERE run_id = ?1;
-- name: writer_last
SELECT coalesce(max(last_ms), 0) FROM writer WHERE run_id = ?1;
-- name: writer_segment_put
UPDATE writer SET segment = ?2 WHERE id = ?1;
-- name: problem_add
INSERT INTO problem (run_id, text, time_ms, count) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, text) DO UPDATE SET count = problem.count + ?4, time_ms = ?3;
-- name: idempotency_get
SELECT accepted FROM idempotency WHERE run_id = ?1 AND name = ?2 AND created_ms >= ?3;
-- name: idempotency_put
INSERT INTO idempotency (run_id, name, created_ms, accepted) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, name) DO UPDATE SET created_ms = ?3, accepted = ?4;
-- name: idempotency_expire
DELETE FROM idempotency WHERE created_ms < ?1;

-- the audit log

-- The entries of other processes wait for the end of the transaction.
-- name: audit_lock
-- postgresql:
LOCK TABLE audit_head IN EXCLUSIVE MODE;
-- name: audit_head
SELECT seq, hash FROM audit_head WHERE one = 1;
-- name: audit_head_put
INSERT INTO audit_head (one, seq, hash) VALUES (1, ?1, ?2) ON CONFLICT (one) DO UPDATE SET seq = ?1, hash = ?2;
-- name: audit_add
INSERT INTO audit (seq, time_ms, via, author, action, object, id, name, experiment, detail, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);
-- name: audit_rows
SELECT seq, time_ms, via, author, action, object, id, name, experiment, detail, hash FROM audit
WHERE seq > ?1 AND seq < ?2 AND time_ms >= ?3 AND time_ms < ?4 AND (?5 = '' OR author = ?5) AND (?6 = '' OR action = ?6)
	AND (?7 = '' OR object = ?7) AND (?8 = '' OR id = ?8) AND (?9 = '' OR experiment = ?9)
ORDER BY seq DESC LIMIT ?10;
-- name: audit_rows_up as audit_rows
SELECT seq, time_ms, via, author, action, object, id, name, experiment, detail, hash FROM audit
WHERE seq > ?1 AND seq < ?2 AND time_ms >= ?3 AND time_ms < ?4 AND (?5 = '' OR author = ?5) AND (?6 = '' OR action = ?6)
	AND (?7 = '' OR object = ?7) AND (?8 = '' OR id = ?8) AND (?9 = '' OR experiment = ?9)
ORDER BY seq LIMIT ?10;
-- The first and the last entry of an object; ?3: its name, '': any.
-- name: audit_ends
SELECT f.last, f.time_ms, f.author, f.action FROM (SELECT 0 AS last, time_ms, author, action FROM audit
	WHERE object = ?1 AND id = ?2 AND (?3 = '' OR name = ?3) ORDER BY seq LIMIT 1) AS f
UNION ALL SELECT l.last, l.time_ms, l.author, l.action FROM (SELECT 1 AS last, time_ms, author, action FROM audit
	WHERE object = ?1 AND id = ?2 AND (?3 = '' OR name = ?3) ORDER BY seq DESC LIMIT 1) AS l;
-- name: session_token
SELECT CASE WHEN t.person <> '' THEN t.person ELSE coalesce(t.name, '') END AS name FROM session s LEFT JOIN token t ON t.hash = s.token
WHERE s.hash = ?1 AND coalesce(t.share, '') = '';
-- name: model_name
SELECT name, experiment_id FROM model WHERE id = ?1;

-- tokens

-- name: token_list
SELECT t.name, t.hash, coalesce(p.scope, t.scope) AS scope, t.created_ms,
	CASE WHEN p.expires_ms < coalesce(t.expires_ms, p.expires_ms + 1) THEN p.expires_ms ELSE t.expires_ms END AS expires_ms,
	CASE WHEN t.parent IS NOT NULL AND p.hash IS NULL THEN t.created_ms ELSE coalesce(t.revoked_ms, p.revoked_ms) END AS revoked_ms,
	t.person, coalesce(p.grants, t.grants) AS grants, t.share
FROM token t LEFT JOIN token p ON p.hash = t.parent ORDER BY t.created_ms, t.name;
-- name: token_find
SELECT 1 FROM token WHERE hash = ?1;
-- name: token_in_force
SELECT 1 FROM token WHERE name = ?1 AND revoked_ms IS NULL;
-- name: token_put
INSERT INTO token (name, hash, scope, created_ms, expires_ms, person, grants) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE SET hash = ?2, scope = ?3, created_ms = ?4, expires_ms = ?5, revoked_ms = NULL, person = ?6, grants = ?7,
	parent = NULL;
-- Whether it is the last admin of all experiments at the time ?2.
-- name: token_last_admin
SELECT 1 FROM token t WHERE t.name = ?1 AND t.scope = 3 AND t.grants = '' AND NOT EXISTS (SELECT 1 FROM token o
	WHERE o.name <> ?1 AND o.scope = 3 AND o.grants = '' AND o.revoked_ms IS NULL AND (o.expires_ms IS NULL OR o.expires_ms > ?2));
-- name: token_revoke
UPDATE token SET revoked_ms = ?2 WHERE name = ?1;
-- name: token_clear
DELETE FROM token;
-- name: session_put
INSERT INTO session (hash, token, until_ms) VALUES (?1, ?2, ?3);
-- name: session_get
SELECT token, until_ms FROM session WHERE hash = ?1;
-- name: session_end
DELETE FROM session WHERE hash = ?1;
-- name: session_expire
DELETE FROM session WHERE until_ms <= ?1;
-- name: person_get
SELECT name, hash, scope, grants, revoked_ms FROM token WHERE issuer = ?1 AND subject = ?2;
-- name: person_put
INSERT INTO token (name, hash, scope, grants, created_ms, issuer, subject) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE SET hash = ?2, scope = ?3, grants = ?4, created_ms = ?5, expires_ms = NULL, revoked_ms = NULL,
	person = '', issuer = ?6, subject = ?7, parent = NULL;
-- name: person_grants_put
UPDATE token SET scope = ?2, grants = ?3 WHERE hash = ?1;
-- name: session_owner
SELECT coalesce(p.name, t.name) AS name, coalesce(p.hash, t.hash) AS hash, coalesce(p.person, t.person) AS person
FROM session s JOIN token t ON t.hash = s.token LEFT JOIN token p ON p.hash = t.parent WHERE s.hash = ?1;
-- name: token_taken
SELECT 1 FROM token WHERE hash = ?2 OR (name = ?1 AND revoked_ms IS NULL AND coalesce(parent, '') <> ?3);
-- name: token_children_end
DELETE FROM token WHERE parent = ?1 AND (revoked_ms IS NOT NULL OR expires_ms <= ?2);
-- name: token_children
SELECT count(*) FROM token WHERE parent = ?1 AND name <> ?2;
-- name: token_put_child
INSERT INTO token (name, hash, scope, created_ms, expires_ms, parent, person) VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6)
ON CONFLICT (name) DO UPDATE SET hash = ?2, scope = 0, created_ms = ?3, expires_ms = ?4, revoked_ms = NULL, issuer = NULL,
	subject = NULL, parent = ?5, person = ?6, grants = '';
-- name: share_put
INSERT INTO token (name, hash, scope, created_ms, expires_ms, grants, share, experiment_id) VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7);
-- name: share_valid
SELECT count(*) FROM token WHERE share <> '' AND revoked_ms IS NULL AND expires_ms > ?1;
-- name: share_forget
DELETE FROM token WHERE share <> '' AND (expires_ms <= ?1 OR revoked_ms <= ?1);
-- name: share_list
SELECT t.name, t.share, t.experiment_id, coalesce(e.name, '') AS experiment, t.created_ms, t.expires_ms, t.revoked_ms, t.used_ms
FROM token t LEFT JOIN experiment e ON e.id = t.experiment_id WHERE t.share <> '' ORDER BY t.created_ms DESC, t.name;
-- name: share_of_hash as share_list
SELECT t.name, t.share, t.experiment_id, coalesce(e.name, '') AS experiment, t.created_ms, t.expires_ms, t.revoked_ms, t.used_ms
FROM token t LEFT JOIN experiment e ON e.id = t.experiment_id WHERE t.share <> '' AND t.hash = ?1;
-- name: share_of_name as share_list
SELECT t.name, t.share, t.experiment_id, coalesce(e.name, '') AS experiment, t.created_ms, t.expires_ms, t.revoked_ms, t.used_ms
FROM token t LEFT JOIN experiment e ON e.id = t.experiment_id WHERE t.share <> '' AND t.name = ?1;
-- name: share_used
UPDATE token SET used_ms = ?2 WHERE hash = ?1 AND share <> '';
-- name: token_count_up
-- postgresql:
UPDATE token_count SET changes = changes + 1;

-- series, points

-- name: series_find
SELECT id FROM series WHERE run_id = ?1 AND key_id = ?2 AND rank = ?3 AND segment = ?4;
-- name: series_has_key
SELECT 1 FROM part p WHERE p.run_id = ?1 AND EXISTS (SELECT 1 FROM series s
	WHERE s.run_id = ?1 AND s.rank = p.rank AND s.segment = p.segment AND s.key_id = ?2) LIMIT 1;
-- name: part_add
INSERT INTO part (run_id, rank, segment) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
-- name: series_add
INSERT INTO series (run_id, key_id, rank, segment) VALUES (?1, ?2, ?3, ?4);
-- postgresql:
INSERT INTO series (run_id, key_id, rank, segment) VALUES (?1, ?2, ?3, ?4) RETURNING id;
-- LIMIT 1 keeps these lookups separate: as a join, one reads all series of the run for each key.
-- name: series_find_all
-- postgresql:
SELECT s.id, w.key_id, w.rank FROM unnest(CAST(?3 AS bigint[]), CAST(?4 AS bigint[])) AS w (key_id, rank)
CROSS JOIN LATERAL (SELECT id FROM series WHERE run_id = ?1 AND segment = ?2 AND rank = w.rank AND key_id = w.key_id LIMIT 1) s;
-- name: series_have_keys
-- postgresql:
SELECT w.key_id FROM unnest(CAST(?2 AS bigint[])) AS w (key_id) CROSS JOIN LATERAL (SELECT 1 FROM part p CROSS JOIN LATERAL
	(SELECT 1 FROM series WHERE run_id = ?1 AND rank = p.rank AND segment = p.segment AND key_id = w.key_id LIMIT 1) s
	WHERE p.run_id = ?1 LIMIT 1) s;
-- With the run locked and without series, or after a lookup: no other process can have added them.
-- name: series_add_all as series_find_all
-- postgresql:
WITH made AS (INSERT INTO series (run_id, segment, key_id, rank) SELECT ?1, ?2, w.key_id, w.rank
	FROM unnest(CAST(?3 AS bigint[]), CAST(?4 AS bigint[])) WITH ORDINALITY AS w (key_id, rank, n) ORDER BY w.n
	RETURNING id, key_id, rank) SELECT id, key_id, rank FROM made;
-- name: series_get
SELECT s.id, s.run_id, s.key_id, s.rank, s.ordered, s.chunks, k.name, s.count, s.nonfinite, s.first, s.last, s.min, s.max,
	s.first_step, s.last_step, s.min_step, s.max_step, s.first_time, s.last_time, s.nonfinite_step
FROM series s JOIN key k ON k.id = s.key_id WHERE s.id = ?1;
-- name: series_get_all as series_get
SELECT s.id, s.run_id, s.key_id, s.rank, s.ordered, s.chunks, k.name, s.count, s.nonfinite, s.first, s.last, s.min, s.max,
	s.first_step, s.last_step, s.min_step, s.max_step, s.first_time, s.last_time, s.nonfinite_step
FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN series s ON s.id = w.value CROSS JOIN key k ON k.id = s.key_id;
-- postgresql:
SELECT s.id, s.run_id, s.key_id, s.rank, s.ordered, s.chunks, k.name, s.count, s.nonfinite, s.first, s.last, s.min, s.max,
	s.first_step, s.last_step, s.min_step, s.max_step, s.first_time, s.last_time, s.nonfinite_step
FROM series s JOIN key k ON k.id = s.key_id WHERE s.id = ANY (CAST(?1 AS bigint[]));
-- name: series_put
UPDATE series SET ordered = ?2, chunks = ?3, count = ?4, nonfinite = ?5, first = ?6, last = ?7, min = ?8, max = ?9,
	first_step = ?10, last_step = ?11, min_step = ?12, max_step = ?13, first_time = ?14, last_time = ?15,
	nonfinite_step = ?16 WHERE id = ?1;
-- postgresql:
UPDATE series AS s SET ordered = n.ordered, chunks = n.chunks, count = n.count, nonfinite = n.nonfinite, first = n.first,
	last = n.last, min = n.min, max = n.max, first_step = n.first_step, last_step = n.last_step, min_step = n.min_step,
	max_step = n.max_step, first_time = n.first_time, last_time = n.last_time, nonfinite_step = n.nonfinite_step
FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) AS n (id, ordered, chunks, count, nonfinite,
	first, last, min, max, first_step, last_step, min_step, max_step, first_time, last_time, nonfinite_step)
WHERE s.id = n.id;
-- name: series_run_level
SELECT s.id, s.key_id, s.segment, k.name FROM series s JOIN key k ON k.id = s.key_id
WHERE s.run_id = ?1 AND s.rank = -1 ORDER BY s.id;
-- name: metric_get
SELECT count, nonfinite, first, last, min, max, first_step, last_step, min_step, max_step, first_time, last_time,
	nonfinite_step FROM metric WHERE key_id = ?1 AND run_id = ?2;
-- name: metrics_of_keys
-- postgresql:
SELECT m.key_id, m.count, m.nonfinite, m.first, m.last, m.min, m.max, m.first_step, m.last_step, m.min_step, m.max_step,
	m.first_time, m.last_time, m.nonfinite_step FROM unnest(CAST(?2 AS bigint[])) AS w (key_id)
CROSS JOIN LATERAL (SELECT * FROM metric WHERE run_id = ?1 AND key_id = w.key_id LIMIT 1) m;
-- For keys that the run has already, and for new ones.
-- name: metrics_put
UPDATE metric SET count = ?3, nonfinite = ?4, first = ?5, last = ?6, min = ?7, max = ?8, first_step = ?9, last_step = ?10,
	min_step = ?11, max_step = ?12, first_time = ?13, last_time = ?14, nonfinite_step = ?15 WHERE key_id = ?1 AND run_id = ?2;
-- postgresql:
UPDATE metric AS m SET count = n.count, nonfinite = n.nonfinite, first = n.first, last = n.last, min = n.min, max = n.max,
	first_step = n.first_step, last_step = n.last_step, min_step = n.min_step, max_step = n.max_step, first_time = n.first_time,
	last_time = n.last_time, nonfinite_step = n.nonfinite_step
FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) AS n (key_id, run_id, count, nonfinite, first, last,
	min, max, first_step, last_step, min_step, max_step, first_time, last_time, nonfinite_step)
WHERE m.key_id = n.key_id AND m.run_id = n.run_id;
-- name: metrics_add
INSERT INTO metric (key_id, run_id, count, nonfinite, first, last, min, max, first_step, last_step, min_step, max_step,
	first_time, last_time, nonfinite_step)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);
-- postgresql:
INSERT INTO metric (key_id, run_id, count, nonfinite, first, last, min, max, first_step, last_step, min_step, max_step,
	first_time, last_time, nonfinite_step)
SELECT * FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);
-- name: metric_delete
DELETE FROM metric WHERE key_id = ?1 AND run_id = ?2;
-- name: log_add
INSERT INTO log (run_id, points, data) VALUES (?1, ?2, ?3);
-- name: log_totals
SELECT count(*) AS rows, CAST(coalesce(sum(points), 0) AS BIGINT) AS points FROM log;
-- name: log_ends
-- postgresql:
SELECT coalesce(min(id), 0) AS oldest, coalesce(max(id), 0) AS newest FROM log;
-- Locks runs that are not being written; their writers wait for the end of this transaction, so they are few. Rows are
-- looked up run by run: a join reads the whole log in the requested order and searches it for the runs. A process alone folds
-- the oldest rows.
-- name: log_due
SELECT id, points, data FROM log WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL ORDER BY id;
-- postgresql:
WITH free AS MATERIALIZED (SELECT id FROM run WHERE id = ANY (ARRAY(SELECT run_id FROM (SELECT run_id FROM log WHERE id <= ?1
	ORDER BY id LIMIT 32) AS oldest UNION SELECT unnest(CAST(?2 AS bigint[])))) ORDER BY id FOR UPDATE SKIP LOCKED)
SELECT l.id, l.points, l.data FROM free f CROSS JOIN LATERAL (SELECT id, points, data FROM log WHERE run_id = f.id ORDER BY id
	LIMIT 1000) AS l LIMIT 1000;
-- One process folds at a time, until the end of this transaction.
-- name: fold_mine
SELECT 1;
-- postgresql:
SELECT CASE WHEN pg_try_advisory_xact_lock(7233173, 1) THEN 1 ELSE 0 END;
-- name: log_of_run
SELECT id, data FROM log WHERE run_id = ?1 ORDER BY id;
-- name: log_newest as log_of_run
-- postgresql:
SELECT id, data FROM (SELECT id, data FROM log WHERE run_id = ?1 ORDER BY id DESC LIMIT 64) AS newest ORDER BY id;
-- name: log_delete
DELETE FROM log WHERE id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']'));
-- postgresql:
DELETE FROM log WHERE id = ANY (CAST(?1 AS bigint[]));
-- name: chunk_newest
-- postgresql:
SELECT data FROM chunk WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1;
-- name: chunk_range
SELECT id, data FROM chunk WHERE id BETWEEN ?1 AND ?2 ORDER BY id;
-- name: chunk_ahead as chunk_range
SELECT id, data FROM chunk WHERE id BETWEEN ?1 AND ?2 ORDER BY id;
-- name: chunk_get_all as chunk_range
SELECT c.id, c.data FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN chunk c ON c.id = w.value;
-- postgresql:
SELECT id, data FROM chunk WHERE id = ANY (CAST(?1 AS bigint[]));
-- name: chunks_put
INSERT INTO chunk (id, points, min_step, max_step, min_time, max_time, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO UPDATE SET points = ?2, min_step = ?3, max_step = ?4, min_time = ?5, max_time = ?6, data = ?7;
-- postgresql:
INSERT INTO chunk (id, points, min_step, max_step, min_time, max_time, data) SELECT * FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7);
-- name: chunks_drop
DELETE FROM chunk WHERE id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']'));
-- postgresql:
DELETE FROM chunk WHERE id = ANY (CAST(?1 AS bigint[]));
-- name: chunk_sizes
SELECT c.id, c.points FROM json_each('[' || trim(?1, '{}') || ']') AS low CROSS JOIN json_each('[' || trim(?2, '{}') || ']') AS high
	ON high.key = low.key CROSS JOIN chunk c ON c.id BETWEEN low.value AND high.value;
-- postgresql:
SELECT c.id, c.points FROM unnest(CAST(?1 AS bigint[]), CAST(?2 AS bigint[])) AS w (low, high)
CROSS JOIN LATERAL (SELECT id, points FROM chunk WHERE id BETWEEN w.low AND w.high) c;
-- name: alert_put
INSERT INTO alert (run_id, key_id, kind, step, value, weight) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (run_id, key_id, kind) DO UPDATE SET step = ?4, value = ?5, weight = ?6 WHERE alert.weight < ?6;

-- points of ended runs as objects (store/archive)

-- The next run with an id above ?2 that has chunks and no record after ?1.
-- name: archive_next
SELECT r.id, r.uuid FROM run r WHERE r.id > ?2 AND r.status NOT IN ('running', 'scheduled') AND r.deleted_ms IS NULL
	AND r.end_ms <= ?1 AND r.last_ms <= ?1 AND NOT EXISTS (SELECT 1 FROM archive a WHERE a.run_id = r.id)
	AND NOT EXISTS (SELECT 1 FROM log l WHERE l.run_id = r.id)
	AND EXISTS (SELECT 1 FROM series s WHERE s.run_id = r.id AND s.chunks > 0) ORDER BY r.id LIMIT 1;
-- name: archive_totals
SELECT CAST(coalesce(sum(chunks), 0) AS BIGINT) AS chunks, CAST(coalesce(sum(count), 0) AS BIGINT) AS points,
	CAST((SELECT count(*) FROM log WHERE run_id = ?1) AS BIGINT) AS logged FROM series WHERE run_id = ?1;
-- name: archive_series
SELECT id FROM series WHERE run_id = ?1 AND chunks > 0 AND id > ?2 ORDER BY id LIMIT 1000;
-- name: archive_chunks
SELECT id, points, min_step, max_step, min_time, max_time, data FROM chunk WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 64;
-- name: archive_get
SELECT object, bytes, sha256 FROM archive WHERE run_id = ?1;
-- name: archive_put
INSERT INTO archive (run_id, object, bytes, sha256) VALUES (?1, ?2, ?3, ?4);
-- name: archive_drop
DELETE FROM archive WHERE run_id = ?1;
-- name: archive_chunks_drop
DELETE FROM chunk WHERE id IN (SELECT c.id FROM series s CROSS JOIN chunk c
	WHERE s.run_id = ?1 AND c.id BETWEEN s.id * 1048576 AND s.id * 1048576 + 1048575);

-- removal for good: the rows of one run, at most ?2 per statement

-- name: gone_get
SELECT run_id FROM gone WHERE uuid = ?1;
-- name: gone_removed
SELECT removed_ms FROM gone WHERE uuid = ?1;
-- With the number of its last change: the change counter is the largest one, and must not fall.
-- name: gone_add
INSERT INTO gone (run_id, uuid, experiment_id, removed_ms, rev) VALUES (?1, ?2, ?3, ?4, (SELECT rev FROM run WHERE id = ?1));
-- name: gone_rev_put
UPDATE gone SET rev = ?2 WHERE run_id = ?1;
-- name: gone_finish
UPDATE gone SET stage = 1 WHERE run_id = ?1;
-- name: deleted_next
SELECT uuid, id, experiment_id, deleted_ms FROM run WHERE deleted_ms <= ?1 AND (deleted_ms, id) > (?2, ?3)
ORDER BY deleted_ms, id LIMIT 1;
-- name: gone_next as deleted_next
SELECT g.uuid, g.run_id AS id, g.experiment_id, 0 AS deleted_ms FROM gone g WHERE g.stage = 0 AND g.run_id > ?1 ORDER BY g.run_id LIMIT 1;
-- name: points_of_run
SELECT CAST(coalesce((SELECT sum(count) FROM series WHERE run_id = ?1), 0) + coalesce((SELECT sum(points) FROM log WHERE run_id = ?1), 0) AS BIGINT);
-- name: paths_of_run
SELECT path FROM writer WHERE run_id = ?1 AND path IS NOT NULL ORDER BY path;
-- name: purge_run
DELETE FROM run WHERE id = ?1;
-- name: purge_log_totals
SELECT count(*) AS rows, CAST(coalesce(sum(points), 0) AS BIGINT) AS points FROM log WHERE run_id = ?1;
-- name: purge_log
DELETE FROM log WHERE run_id = ?1;
-- name: purge_note
DELETE FROM note WHERE run_id = ?1;
-- name: purge_note_text
DELETE FROM note_text WHERE run_id = ?1 AND edition IN (SELECT edition FROM note_text WHERE run_id = ?1 LIMIT ?2);
-- name: purge_series_next
SELECT id, count FROM series WHERE run_id = ?1 LIMIT 1;
-- name: purge_chunk
DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE id BETWEEN ?1 AND ?2 LIMIT ?3);
-- name: purge_archive
DELETE FROM archive WHERE run_id IN (SELECT run_id FROM archive WHERE run_id = ?1 LIMIT ?2);
-- name: purge_series
DELETE FROM series WHERE id = ?1;
-- name: purge_run_dataset
DELETE FROM run_dataset WHERE run_id = ?1 AND dataset_id IN (SELECT dataset_id FROM run_dataset WHERE run_id = ?1 LIMIT ?2);
-- name: purge_run_dataset_tag
DELETE FROM run_dataset_tag WHERE run_id = ?1
	AND (dataset_id, name) IN (SELECT dataset_id, name FROM run_dataset_tag WHERE run_id = ?1 LIMIT ?2);
-- name: purge_run_model
DELETE FROM run_model WHERE run_id = ?1
	AND (direction, model) IN (SELECT direction, model FROM run_model WHERE run_id = ?1 LIMIT ?2);
-- name: purge_artifact
DELETE FROM artifact WHERE path IN (SELECT a.path FROM artifact a, gone g WHERE g.run_id = ?1
	AND a.path >= g.experiment_id || '/' || g.uuid || '/' AND a.path < g.experiment_id || '/' || g.uuid || '0' LIMIT ?2);
-- name: models_to_purge
SELECT m.id, m.uuid, m.experiment_id FROM model m JOIN experiment e ON e.id = m.experiment_id
WHERE m.id > ?2 AND (m.deleted_ms <= ?1 OR e.deleted_ms <= ?1) ORDER BY m.id LIMIT 1;
-- name: model_to_purge
SELECT m.id, coalesce(m.deleted_ms, 1) = 0 AS final FROM model m JOIN experiment e ON e.id = m.experiment_id
WHERE m.uuid = ?1 AND (m.deleted_ms <= ?2 OR e.deleted_ms <= ?2);
-- name: purge_model_metric
DELETE FROM model_metric WHERE model_id = ?1 AND (name, time_ms, step, run) IN
	(SELECT name, time_ms, step, run FROM model_metric WHERE model_id = ?1 LIMIT ?2);
-- name: purge_model_param
DELETE FROM model_param WHERE model_id = ?1 AND name IN (SELECT name FROM model_param WHERE model_id = ?1 LIMIT ?2);
-- name: purge_model_tag
DELETE FROM model_tag WHERE model_id = ?1 AND name IN (SELECT name FROM model_tag WHERE model_id = ?1 LIMIT ?2);
-- name: purge_model_artifact
DELETE FROM artifact WHERE path IN (SELECT a.path FROM artifact a, model m WHERE m.id = ?1
	AND a.path >= m.experiment_id || '/models/' || m.uuid || '/' AND a.path < m.experiment_id || '/models/' || m.uuid || '0' LIMIT ?2);
-- name: purge_model
DELETE FROM model WHERE id = ?1;
-- name: experiments_to_purge as models_to_purge
SELECT id, '' AS uuid, id AS experiment_id FROM experiment WHERE deleted_ms <= ?1 AND id > ?2 ORDER BY id LIMIT 1;
-- name: experiment_to_purge
SELECT e.id FROM experiment e WHERE e.id = CAST(?1 AS BIGINT) AND e.id <> 0 AND e.deleted_ms <= ?2
	AND NOT EXISTS (SELECT 1 FROM run WHERE experiment_id = e.id) AND NOT EXISTS (SELECT 1 FROM model WHERE experiment_id = e.id);
-- rules of retention

-- name: retention_list
SELECT r.experiment_id, coalesce(e.name, '') AS name, r.artifact_ms, r.keep_best, r.trash_ms, r.quota_bytes
FROM retention r LEFT JOIN experiment e ON e.id = r.experiment_id ORDER BY r.experiment_id;
-- name: retention_put
INSERT INTO retention (experiment_id, artifact_ms, keep_best, trash_ms, quota_bytes) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (experiment_id) DO UPDATE SET artifact_ms = ?2, keep_best = ?3, trash_ms = ?4, quota_bytes = ?5;
-- name: retention_drop
DELETE FROM retention WHERE experiment_id = ?1;
-- name: retention_run_count
SELECT count(*) FROM run WHERE experiment_id = ?1 AND deleted_ms IS NULL;
-- The metrics of an experiment, with what a run says is best.
-- name: retention_goals
SELECT k.id, k.name, count(*) AS runs, coalesce((SELECT min(t.value) FROM key g JOIN tag t ON t.key_id = g.id JOIN run x ON x.id = t.run_id
	WHERE g.name = 'dptrack.best.' || k.name AND x.experiment_id = ?1), '') AS said
FROM run r JOIN metric m ON m.run_id = r.id JOIN key k ON k.id = m.key_id
WHERE r.experiment_id = ?1 AND r.deleted_ms IS NULL GROUP BY k.id, k.name ORDER BY k.name;
-- The best ?4 runs by metric ?2, whose best value is its least (?3 = 1) or largest one (2); others after them, the newest first.
-- name: retention_best
SELECT r.uuid FROM run r LEFT JOIN metric m ON m.run_id = r.id AND m.key_id = ?2 WHERE r.experiment_id = ?1 AND r.deleted_ms IS NULL
ORDER BY CASE ?3 WHEN 1 THEN m.min WHEN 2 THEN -m.max END IS NULL, CASE ?3 WHEN 1 THEN m.min WHEN 2 THEN -m.max END,
	r.start_ms DESC, r.id DESC LIMIT ?4;
-- name: retention_runs
SELECT r.uuid, r.experiment_id, r.deleted_ms, r.status IN ('running', 'scheduled') OR EXISTS (SELECT 1 FROM tag t JOIN key k ON k.id = t.key_id
	WHERE t.run_id = r.id AND k.name = ?1) AS kept FROM run r ORDER BY r.experiment_id, r.id;
-- name: retention_kept_run
SELECT 1 FROM run r WHERE r.uuid = ?1 AND (r.status IN ('running', 'scheduled') OR EXISTS (SELECT 1 FROM tag t JOIN key k ON k.id = t.key_id
	WHERE t.run_id = r.id AND k.name = ?2));
-- name: retention_models
SELECT m.uuid, m.experiment_id, m.source_run, coalesce(m.deleted_ms, e.deleted_ms) AS deleted_ms FROM model m JOIN experiment e ON e.id = m.experiment_id
ORDER BY m.experiment_id, m.id;
-- name: retention_sources
SELECT source, location, coalesce(run, '') AS run FROM model_version WHERE stage <> 'Deleted_Internal';
-- name: retention_registered_one
SELECT 1 FROM model_version WHERE stage <> 'Deleted_Internal' AND (run = ?1 OR source LIKE '%' || ?1 || '%' OR location LIKE '%' || ?1 || '%') LIMIT 1;
-- name: retention_versions
SELECT w.id, w.experiment_id, w.collection, w.version, w.created_ms, EXISTS (SELECT 1 FROM wandb_alias l WHERE l.experiment_id = w.experiment_id
	AND l.collection = w.collection AND l.version = w.version) OR EXISTS (SELECT 1 FROM wandb_file f JOIN wandb_artifact n ON n.id = f.artifact_id
	WHERE f.born = w.id AND f.born <> 0 AND f.born <> f.artifact_id AND n.state <> 2) AS needed, coalesce(u.run, '') AS used_by
FROM wandb_artifact w LEFT JOIN wandb_use u ON u.artifact_id = w.id;
-- name: wandb_aliased
SELECT 1 FROM wandb_alias l JOIN wandb_artifact w ON w.experiment_id = l.experiment_id AND w.collection = l.collection AND w.version = l.version
WHERE w.id = ?1 LIMIT 1;
-- name: purge_retention
DELETE FROM retention WHERE experiment_id IN (SELECT experiment_id FROM retention WHERE experiment_id = ?1 LIMIT ?2);
-- name: deleted_one as deleted_next
SELECT uuid, id, experiment_id, deleted_ms FROM run WHERE uuid = ?1;

-- name: purge_experiment_tag
DELETE FROM experiment_tag WHERE experiment_id = ?1 AND name IN (SELECT name FROM experiment_tag WHERE experiment_id = ?1 LIMIT ?2);
-- name: purge_dataset
DELETE FROM dataset WHERE id IN (SELECT id FROM dataset WHERE experiment_id = ?1 LIMIT ?2);
-- name: purge_kept_text
DELETE FROM kept_text WHERE (kept_id, edition) IN (SELECT t.kept_id, t.edition FROM kept_text t JOIN kept k ON k.id = t.kept_id
	WHERE k.experiment_id = ?1 LIMIT ?2);
-- name: purge_kept
DELETE FROM kept WHERE id IN (SELECT id FROM kept WHERE experiment_id = ?1 LIMIT ?2);
-- name: purge_alert_rule
DELETE FROM alert_rule WHERE id IN (SELECT id FROM alert_rule WHERE experiment_id = ?1 LIMIT ?2);
-- name: purge_experiment
DELETE FROM experiment WHERE id = ?1;
-- name: purge_writer
DELETE FROM writer WHERE id IN (SELECT id FROM writer WHERE run_id = ?1 LIMIT ?2);
-- name: purge_arrival
DELETE FROM arrival WHERE id IN (SELECT id FROM arrival WHERE run_id = ?1 LIMIT ?2);
-- name: purge_metric
DELETE FROM metric WHERE run_id = ?1 AND key_id IN (SELECT key_id FROM metric WHERE run_id = ?1 LIMIT ?2);
-- name: purge_param
DELETE FROM param WHERE run_id = ?1 AND key_id IN (SELECT key_id FROM param WHERE run_id = ?1 LIMIT ?2);
-- name: purge_segment_param
DELETE FROM segment_param WHERE run_id = ?1 AND (segment, key_id) IN (SELECT segment, key_id FROM segment_param WHERE run_id = ?1 LIMIT ?2);
-- name: purge_tag
DELETE FROM tag WHERE run_id = ?1 AND key_id IN (SELECT key_id FROM tag WHERE run_id = ?1 LIMIT ?2);
-- name: purge_environment
DELETE FROM environment WHERE run_id = ?1 AND key_id IN (SELECT key_id FROM environment WHERE run_id = ?1 LIMIT ?2);
-- name: purge_part
DELETE FROM part WHERE run_id = ?1 AND (rank, segment) IN (SELECT rank, segment FROM part WHERE run_id = ?1 LIMIT ?2);
-- name: purge_segment
DELETE FROM segment WHERE run_id = ?1 AND number IN (SELECT number FROM segment WHERE run_id = ?1 LIMIT ?2);
-- name: purge_console
DELETE FROM console WHERE id IN (SELECT id FROM console WHERE run_id = ?1 LIMIT ?2);
-- name: purge_code
DELETE FROM code WHERE id IN (SELECT id FROM code WHERE run_id = ?1 LIMIT ?2);
-- name: purge_file
DELETE FROM file WHERE id IN (SELECT id FROM file WHERE run_id = ?1 LIMIT ?2);
-- name: purge_told
DELETE FROM told WHERE id IN (SELECT id FROM told WHERE run_id = ?1 LIMIT ?2);
-- name: purge_media
DELETE FROM media WHERE id IN (SELECT id FROM media WHERE run_id = ?1 LIMIT ?2);
-- Versions of W&B's artifacts lose their files with the run that made them.
-- name: purge_wandb_made
UPDATE wandb_artifact SET state = 2 WHERE id IN (SELECT id FROM wandb_artifact WHERE run = (SELECT uuid FROM gone WHERE run_id = ?1) AND state <> 2 LIMIT ?2);
-- name: purge_wandb_use
DELETE FROM wandb_use WHERE run = (SELECT uuid FROM gone WHERE run_id = ?1)
AND artifact_id IN (SELECT artifact_id FROM wandb_use WHERE run = (SELECT uuid FROM gone WHERE run_id = ?1) LIMIT ?2);
-- name: purge_wandb_file
DELETE FROM wandb_file WHERE (artifact_id, name) IN (SELECT f.artifact_id, f.name FROM wandb_file f JOIN wandb_artifact a ON a.id = f.artifact_id
	WHERE a.experiment_id = ?1 LIMIT ?2);
-- name: purge_wandb_alias
DELETE FROM wandb_alias WHERE experiment_id = ?1 AND (collection, alias) IN (SELECT collection, alias FROM wandb_alias WHERE experiment_id = ?1 LIMIT ?2);
-- name: purge_wandb_artifact
DELETE FROM wandb_artifact WHERE id IN (SELECT id FROM wandb_artifact WHERE experiment_id = ?1 LIMIT ?2);
-- name: purge_run_text
DELETE FROM run_text WHERE run_id = ?1 AND name IN (SELECT name FROM run_text WHERE run_id = ?1 LIMIT ?2);
-- name: purge_alert
DELETE FROM alert WHERE run_id = ?1 AND (key_id, kind) IN (SELECT key_id, kind FROM alert WHERE run_id = ?1 LIMIT ?2);
-- name: purge_alert_fired
DELETE FROM alert_fired WHERE id IN (SELECT id FROM alert_fired WHERE run_id = ?1 LIMIT ?2);
-- name: purge_problem
DELETE FROM problem WHERE run_id = ?1 AND text IN (SELECT text FROM problem WHERE run_id = ?1 LIMIT ?2);
-- name: purge_idempotency
DELETE FROM idempotency WHERE run_id = ?1 AND name IN (SELECT name FROM idempotency WHERE run_id = ?1 LIMIT ?2);

-- reads

-- name: runs_all
SELECT id, uuid, name, status, start_ms, end_ms, deleted_ms IS NOT NULL AS deleted, experiment_id, "user" AS user, last_step FROM run ORDER BY id;
-- name: runs_since as runs_all
SELECT id, uuid, name, status, start_ms, end_ms, deleted_ms IS NOT NULL AS deleted, experiment_id, "user" AS user, last_step FROM run WHERE rev > ?1 ORDER BY id;
-- name: outlines_of
SELECT coalesce(max(rev), 0) AS rev, coalesce((SELECT value FROM meta WHERE name = 'rows_of'), '') AS rows_of FROM gone;
-- postgresql:
SELECT coalesce((SELECT max(rev) FROM gone), 0) AS rev, concat_ws(' ', s.system_identifier,
	substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), (SELECT oid FROM pg_database WHERE datname = current_database()),
	pg_relation_filenode('counter')) AS rows_of FROM pg_control_system() s;
-- name: gone_since
SELECT run_id FROM gone WHERE rev > ?1;
-- name: changed_since
SELECT (SELECT count(*) FROM run WHERE rev > ?1) + (SELECT count(*) FROM gone WHERE rev > ?1) AS runs;
-- postgresql:
SELECT CASE WHEN (SELECT rev FROM counter) > ?1 THEN (SELECT count(*) FROM run WHERE rev > ?1)
	+ (SELECT count(*) FROM gone WHERE rev > ?1) ELSE 0 END AS runs;
-- name: run_row as runs_all
SELECT id, uuid, name, status, start_ms, end_ms, deleted_ms IS NOT NULL AS deleted, experiment_id, "user" AS user, last_step FROM run WHERE uuid = ?1;
-- Rows of an array of runs (array_of); place: the position in it, from 1. SQLite visits the array in its outer loop.
-- PostgreSQL looks rows up run by run (LATERAL): otherwise tables that grew since the last ANALYZE are read completely.
-- name: run_detail
SELECT r.uuid, r.name, e.name AS experiment, e.id AS experiment_id, r.status, r.inferred, r.deleted_ms,
	r.start_ms, r.end_ms, r.last_step, r.world_size, r.rev,
	coalesce(n.text, (SELECT t.value FROM tag t WHERE t.run_id = r.id AND t.key_id =
		(SELECT id FROM key WHERE name = 'mlflow.note.content'))) AS notes, r."user" AS user, e.location,
	(SELECT v.value FROM environment v WHERE v.run_id = r.id AND v.key_id =
		(SELECT id FROM key WHERE name = 'status_reason')) AS status_reason, w.key + 1 AS place
FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN run r ON r.id = w.value
	JOIN experiment e ON e.id = r.experiment_id LEFT JOIN note n ON n.run_id = r.id;
-- postgresql:
SELECT r.uuid, r.name, e.name AS experiment, e.id AS experiment_id, r.status, r.inferred, r.deleted_ms,
	r.start_ms, r.end_ms, r.last_step, r.world_size, r.rev,
	coalesce(n.text, (SELECT t.value FROM tag t WHERE t.run_id = r.id AND t.key_id =
		(SELECT id FROM key WHERE name = 'mlflow.note.content'))) AS notes, r."user" AS user, e.location,
	(SELECT v.value FROM environment v WHERE v.run_id = r.id AND v.key_id =
		(SELECT id FROM key WHERE name = 'status_reason')) AS status_reason, w.place
FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place) CROSS JOIN LATERAL (SELECT * FROM run WHERE id = w.id OFFSET 0) AS r
	CROSS JOIN LATERAL (SELECT id, name, location FROM experiment WHERE id = r.experiment_id OFFSET 0) AS e
	LEFT JOIN LATERAL (SELECT text FROM note WHERE run_id = r.id OFFSET 0) AS n ON true;
-- name: run_by_prefix
SELECT id, uuid FROM run WHERE uuid >= ?1 AND uuid < ?2 AND (?3 IS NULL OR experiment_id IN (SELECT value FROM json_each('[' || trim(?3, '{}') || ']')))
ORDER BY uuid LIMIT 6;
-- postgresql:
SELECT id, uuid FROM run WHERE uuid >= ?1 AND uuid < ?2 AND (?3 IS NULL OR experiment_id = ANY (CAST(?3 AS bigint[]))) ORDER BY uuid LIMIT 6;
-- name: params_of_runs
SELECT k.name, t.value, w.key + 1 AS place FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN param t ON t.run_id = w.value
	CROSS JOIN key k ON k.id = t.key_id;
-- postgresql:
SELECT l.name, l.value, w.place FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place) CROSS JOIN LATERAL (
	SELECT k.name, t.value FROM param t JOIN key k ON k.id = t.key_id WHERE t.run_id = w.id OFFSET 0) AS l;
-- name: param_ids_of_runs
SELECT p.key_id, p.value, w.key + 1 AS place FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN param p ON p.run_id = w.value;
-- postgresql:
SELECT l.key_id, l.value, w.place FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place)
	CROSS JOIN LATERAL (SELECT key_id, value FROM param WHERE run_id = w.id OFFSET 0) AS l;
-- name: tags_of_runs as params_of_runs
SELECT k.name, t.value, w.key + 1 AS place FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN tag t ON t.run_id = w.value
	CROSS JOIN key k ON k.id = t.key_id;
-- postgresql:
SELECT l.name, l.value, w.place FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place) CROSS JOIN LATERAL (
	SELECT k.name, t.value FROM tag t JOIN key k ON k.id = t.key_id WHERE t.run_id = w.id OFFSET 0) AS l;
-- name: environment_of_run
SELECT k.name, v.value FROM environment v JOIN key k ON k.id = v.key_id WHERE v.run_id = ?1 AND k.name <> 'status_reason'
ORDER BY k.name;
-- name: segment_params_of_run as environment_of_run
SELECT k.name, p.value FROM segment_param p JOIN key k ON k.id = p.key_id WHERE p.run_id = ?1 AND p.segment = ?2
ORDER BY k.name;
-- name: run_text_put
INSERT INTO run_text (run_id, name, text) VALUES (?1, ?2, ?3) ON CONFLICT (run_id, name) DO UPDATE SET text = ?3;
-- name: texts_of_run as environment_of_run
SELECT name, text AS value FROM run_text WHERE run_id = ?1 ORDER BY name;
-- name: metrics_of_runs
SELECT k.name, m.count, m.nonfinite, m.first, m.last, m.min, m.max, m.first_step, m.last_step, m.min_step, m.max_step,
	m.first_time, m.last_time, m.nonfinite_step, w.key + 1 AS place
FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN metric m INDEXED BY metric_by_run ON m.run_id = w.value CROSS JOIN key k ON k.id = m.key_id;
-- postgresql:
SELECT l.name, l.count, l.nonfinite, l.first, l.last, l.min, l.max, l.first_step, l.last_step, l.min_step, l.max_step,
	l.first_time, l.last_time, l.nonfinite_step, w.place
FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place) CROSS JOIN LATERAL (
	SELECT k.name, m.* FROM metric m JOIN key k ON k.id = m.key_id WHERE m.run_id = w.id OFFSET 0) AS l;
-- name: some_metrics_of_runs as metrics_of_runs
SELECT k.name, m.count, m.nonfinite, m.first, m.last, m.min, m.max, m.first_step, m.last_step, m.min_step, m.max_step,
	m.first_time, m.last_time, m.nonfinite_step, w.key + 1 AS place
FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN json_each('[' || trim(?2, '{}') || ']') AS i
	CROSS JOIN metric m ON m.key_id = i.value AND m.run_id = w.value CROSS JOIN key k ON k.id = m.key_id;
-- postgresql:
SELECT l.name, l.count, l.nonfinite, l.first, l.last, l.min, l.max, l.first_step, l.last_step, l.min_step, l.max_step,
	l.first_time, l.last_time, l.nonfinite_step, w.place
FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place) CROSS JOIN LATERAL (
	SELECT k.name, m.* FROM metric m JOIN key k ON k.id = m.key_id
	WHERE m.run_id = w.id AND m.key_id = ANY (CAST(?2 AS bigint[])) OFFSET 0) AS l;
-- name: metric_keys_of_runs
SELECT w.key + 1 AS place, m.key_id FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN metric m INDEXED BY metric_by_run ON m.run_id = w.value;
-- postgresql:
SELECT w.place, l.key_id FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place)
	CROSS JOIN LATERAL (SELECT key_id FROM metric WHERE run_id = w.id OFFSET 0) AS l;
-- name: run_revs
SELECT w.key + 1 AS place, r.rev FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN run r ON r.id = w.value;
-- postgresql:
SELECT w.place, l.rev FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place)
	CROSS JOIN LATERAL (SELECT rev FROM run WHERE id = w.id) AS l;
-- name: key_names
SELECT w.key + 1 AS place, k.name FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN key k ON k.id = w.value;
-- postgresql:
SELECT w.place, l.name FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place)
	CROSS JOIN LATERAL (SELECT name FROM key WHERE id = w.id) AS l;
-- name: console_parts
SELECT rank, segment, max(first_line + lines) AS lines FROM console WHERE run_id = ?1 GROUP BY rank, segment;
-- name: console_before
SELECT first_line FROM console WHERE run_id = ?1 AND rank = ?2 AND segment = ?3 AND time_ms <= ?4
ORDER BY first_line DESC LIMIT 1;
-- name: console_from
SELECT first_line, time_ms, bytes FROM console WHERE run_id = ?1 AND rank = ?2 AND segment = ?3
AND first_line >= coalesce((SELECT max(first_line) FROM console WHERE run_id = ?1 AND rank = ?2 AND segment = ?3
AND first_line <= ?4), 0) ORDER BY first_line;
-- name: code_of_run
SELECT segment, name, text FROM code WHERE run_id = ?1 ORDER BY segment, name;
-- name: files_of_run
SELECT name, bytes, sha256 FROM file WHERE run_id = ?1 ORDER BY name;
-- name: told_of_run
SELECT rank, segment, step, time_ms, level, title, text FROM told WHERE run_id = ?1 ORDER BY id;
-- name: media_delete
DELETE FROM media WHERE run_id = ?1 AND key_id = ?2 AND kind = ?3 AND step = ?4 AND wall_time = ?5;
-- name: media_keys
SELECT k.name, m.kind, m.segment, m.step, s.hide_step, s.hide_epoch, count(*) AS number FROM media m
JOIN key k ON k.id = m.key_id LEFT JOIN segment s ON s.run_id = m.run_id AND s.number = m.segment
WHERE m.run_id = ?1 GROUP BY k.name, m.kind, m.segment, m.step ORDER BY k.name, m.kind;
-- postgresql:
SELECT k.name, m.kind, m.segment, m.step, min(s.hide_step) AS hide_step, min(s.hide_epoch) AS hide_epoch, count(*) AS number FROM media m
JOIN key k ON k.id = m.key_id LEFT JOIN segment s ON s.run_id = m.run_id AND s.number = m.segment
WHERE m.run_id = ?1 GROUP BY k.name, m.kind, m.segment, m.step ORDER BY k.name, m.kind;
-- name: media_of_run
SELECT m.id, k.name, m.kind, m.rank, m.segment, m.step, m.wall_time, s.hide_step, s.hide_epoch, c.digest,
	c.type, c.size, c.width, c.height FROM media m JOIN key k ON k.id = m.key_id
JOIN content c ON c.id = m.content_id LEFT JOIN segment s ON s.run_id = m.run_id AND s.number = m.segment
WHERE m.run_id = ?1 AND (?2 IS NULL OR k.name = ?2) AND m.step >= ?3 AND m.step <= ?4
AND (?5 IS NULL OR m.kind = ?5) ORDER BY m.step, k.name, m.rank, m.segment, m.id;
-- name: media_content
SELECT c.bytes FROM content c WHERE c.digest = ?2 AND EXISTS (SELECT 1 FROM media m WHERE m.content_id = c.id AND m.run_id = ?1);
-- name: media_of_part
SELECT m.id, k.name, m.step, m.wall_time, c.bytes FROM media m JOIN key k ON k.id = m.key_id
JOIN content c ON c.id = m.content_id WHERE m.run_id = ?1 AND m.rank = ?2 AND m.segment = ?3 AND m.id > ?4
ORDER BY m.id LIMIT ?5;
-- name: alerts_of_runs
SELECT k.name, a.kind, a.step, a.value, w.key + 1 AS place FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN alert a ON a.run_id = w.value
	CROSS JOIN key k ON k.id = a.key_id ORDER BY k.name;
-- postgresql:
SELECT l.name, l.kind, l.step, l.value, w.place FROM unnest(CAST(?1 AS bigint[])) WITH ORDINALITY AS w (id, place) CROSS JOIN LATERAL (
	SELECT k.name, a.kind, a.step, a.value FROM alert a JOIN key k ON k.id = a.key_id WHERE a.run_id = w.id OFFSET 0) AS l ORDER BY l.name;
-- Ranks that wrote a journal, and those whose points arrived otherwise: nothing is known of their process.
-- name: ranks_of_run
SELECT rank, max(segment) AS segment, host, pid, max(last_ms) AS last_ms FROM writer WHERE run_id = ?1 AND rank >= 0 GROUP BY rank
UNION ALL SELECT rank, max(segment), '', 0, NULL FROM part p WHERE run_id = ?1 AND rank >= 0
	AND NOT EXISTS (SELECT 1 FROM writer w WHERE w.run_id = ?1 AND w.rank = p.rank) GROUP BY rank ORDER BY 1;
-- postgresql:
SELECT rank, max(segment) AS segment, (array_agg(host ORDER BY last_ms DESC))[1] AS host,
	(array_agg(pid ORDER BY last_ms DESC))[1] AS pid, max(last_ms) AS last_ms
FROM writer WHERE run_id = ?1 AND rank >= 0 GROUP BY rank
UNION ALL SELECT rank, max(segment), '', 0, NULL FROM part p WHERE run_id = ?1 AND rank >= 0
	AND NOT EXISTS (SELECT 1 FROM writer w WHERE w.run_id = ?1 AND w.rank = p.rank) GROUP BY rank ORDER BY 1;
-- name: problems_of_run
SELECT time_ms, text, count FROM problem WHERE run_id = ?1 ORDER BY time_ms, text LIMIT 1000;
-- name: series_of_run
SELECT s.id, k.name, s.rank, s.segment, s.count, s.nonfinite, s.first, s.last, s.min, s.max, s.first_step, s.last_step,
	s.min_step, s.max_step, s.first_time, s.last_time, s.nonfinite_step, s.ordered, s.chunks
FROM series s JOIN key k ON k.id = s.key_id WHERE s.run_id = ?1 ORDER BY k.name, s.rank, s.segment;
-- Ranks ?3 to ?4.
-- name: series_of_run_key as series_of_run
SELECT s.id, k.name, s.rank, s.segment, s.count, s.nonfinite, s.first, s.last, s.min, s.max, s.first_step, s.last_step,
	s.min_step, s.max_step, s.first_time, s.last_time, s.nonfinite_step, s.ordered, s.chunks
FROM key k CROSS JOIN part p CROSS JOIN series s ON s.run_id = p.run_id AND s.rank = p.rank AND s.segment = p.segment AND s.key_id = k.id
WHERE k.name = ?2 AND p.run_id = ?1 AND p.rank BETWEEN ?3 AND ?4 ORDER BY p.rank, p.segment;
-- postgresql:
SELECT s.id, k.name, s.rank, s.segment, s.count, s.nonfinite, s.first, s.last, s.min, s.max, s.first_step, s.last_step,
	s.min_step, s.max_step, s.first_time, s.last_time, s.nonfinite_step, s.ordered, s.chunks
FROM key k JOIN part p ON true JOIN series s ON s.run_id = p.run_id AND s.rank = p.rank AND s.segment = p.segment AND s.key_id = k.id
WHERE k.name = ?2 AND p.run_id = ?1 AND p.rank BETWEEN ?3 AND ?4 ORDER BY p.rank, p.segment;
-- name: series_of_part
SELECT s.id, k.name, s.count FROM series s JOIN key k ON k.id = s.key_id
WHERE s.run_id = ?1 AND s.rank = ?2 AND s.segment = ?3 ORDER BY s.id;
-- name: parts_of_run
SELECT rank, segment FROM part WHERE run_id = ?1 UNION SELECT rank, segment FROM media WHERE run_id = ?1
ORDER BY rank, segment;
-- name: param_column
SELECT run_id, value FROM param WHERE key_id = ?1 ORDER BY run_id;
-- name: tag_column as param_column
SELECT run_id, value FROM tag WHERE key_id = ?1 ORDER BY run_id;
-- name: metric_column
SELECT run_id, last, first, min, max FROM metric WHERE key_id = ?1 ORDER BY run_id;
-- name: param_cell as param_column
SELECT run_id, value FROM param WHERE run_id = ?2 AND key_id = ?1;
-- name: tag_cell as param_column
SELECT run_id, value FROM tag WHERE run_id = ?2 AND key_id = ?1;
-- name: metric_cell as metric_column
SELECT run_id, last, first, min, max FROM metric WHERE key_id = ?1 AND run_id = ?2;
-- Notes of runs; ?1: the key mlflow.note.content, under which older stores have some.
-- name: note_column as param_column
SELECT r.id AS run_id, coalesce(n.text, t.value) AS value FROM run r LEFT JOIN note n ON n.run_id = r.id
	LEFT JOIN tag t ON t.run_id = r.id AND t.key_id = ?1 WHERE coalesce(n.text, t.value) <> '' ORDER BY r.id;
-- name: note_cell as param_column
SELECT r.id AS run_id, coalesce(n.text, t.value) AS value FROM run r LEFT JOIN note n ON n.run_id = r.id
	LEFT JOIN tag t ON t.run_id = r.id AND t.key_id = ?1 WHERE r.id = ?2 AND coalesce(n.text, t.value) <> '';
-- For the keys ?1 and the runs changed after ?2; the first columns are those of a column query.
-- name: param_cells
SELECT t.run_id, t.value, t.key_id FROM run w CROSS JOIN json_each('[' || trim(?1, '{}') || ']') AS k
	CROSS JOIN param t ON t.run_id = w.id AND t.key_id = k.value WHERE w.rev > ?2;
-- postgresql:
SELECT l.run_id, l.value, l.key_id FROM (SELECT id FROM run WHERE rev > ?2) AS w CROSS JOIN LATERAL (
	SELECT * FROM param WHERE run_id = w.id AND key_id = ANY (CAST(?1 AS bigint[])) OFFSET 0) AS l;
-- name: tag_cells as param_cells
SELECT t.run_id, t.value, t.key_id FROM run w CROSS JOIN json_each('[' || trim(?1, '{}') || ']') AS k
	CROSS JOIN tag t ON t.run_id = w.id AND t.key_id = k.value WHERE w.rev > ?2;
-- postgresql:
SELECT l.run_id, l.value, l.key_id FROM (SELECT id FROM run WHERE rev > ?2) AS w CROSS JOIN LATERAL (
	SELECT * FROM tag WHERE run_id = w.id AND key_id = ANY (CAST(?1 AS bigint[])) OFFSET 0) AS l;
-- name: note_cells as param_cells
SELECT w.id AS run_id, coalesce(n.text, t.value) AS value, k.value AS key_id FROM run w CROSS JOIN json_each('[' || trim(?1, '{}') || ']') AS k
	LEFT JOIN note n ON n.run_id = w.id LEFT JOIN tag t ON t.run_id = w.id AND t.key_id = k.value
WHERE w.rev > ?2 AND coalesce(n.text, t.value) <> '';
-- postgresql:
SELECT w.id AS run_id, coalesce(n.text, t.value) AS value, k.id AS key_id FROM (SELECT id FROM run WHERE rev > ?2) AS w
	CROSS JOIN unnest(CAST(?1 AS bigint[])) AS k (id) LEFT JOIN note n ON n.run_id = w.id
	LEFT JOIN tag t ON t.run_id = w.id AND t.key_id = k.id WHERE coalesce(n.text, t.value) <> '';
-- name: metric_cells
SELECT m.run_id, m.last, m.first, m.min, m.max, m.key_id FROM run w CROSS JOIN json_each('[' || trim(?1, '{}') || ']') AS k
	CROSS JOIN metric m ON m.run_id = w.id AND m.key_id = k.value WHERE w.rev > ?2;
-- postgresql:
SELECT l.run_id, l.last, l.first, l.min, l.max, l.key_id FROM (SELECT id FROM run WHERE rev > ?2) AS w CROSS JOIN LATERAL (
	SELECT * FROM metric WHERE run_id = w.id AND key_id = ANY (CAST(?1 AS bigint[])) OFFSET 0) AS l;
-- name: changes_since
SELECT uuid, rev FROM run WHERE rev > ?1 AND (?2 IS NULL OR experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))
UNION ALL SELECT uuid, rev FROM gone WHERE rev > ?1 AND (?2 IS NULL OR experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))
ORDER BY rev LIMIT 1001;
-- postgresql:
SELECT uuid, rev FROM run WHERE rev > ?1 AND (?2 IS NULL OR experiment_id = ANY (CAST(?2 AS bigint[])))
UNION ALL SELECT uuid, rev FROM gone WHERE rev > ?1 AND (?2 IS NULL OR experiment_id = ANY (CAST(?2 AS bigint[]))) ORDER BY rev LIMIT 1001;
-- name: rev_permitted
SELECT rev FROM run WHERE (?1 IS NULL OR experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']'))) ORDER BY rev DESC LIMIT 1;
-- postgresql:
SELECT rev FROM run WHERE (?1 IS NULL OR experiment_id = ANY (CAST(?1 AS bigint[]))) ORDER BY rev DESC LIMIT 1;
-- name: experiment_counts
SELECT experiment_id, count(*) AS runs, sum(status = 'running') AS running, sum(status = 'failed') AS failed,
	max(max(coalesce(start_ms, 0), coalesce(end_ms, 0))) AS changed_ms
FROM run INDEXED BY run_by_state WHERE deleted_ms IS NULL GROUP BY experiment_id;
-- postgresql:
SELECT experiment_id, count(*) AS runs, count(*) FILTER (WHERE status = 'running') AS running,
	count(*) FILTER (WHERE status = 'failed') AS failed,
	max(greatest(coalesce(start_ms, 0), coalesce(end_ms, 0))) AS changed_ms
FROM run WHERE deleted_ms IS NULL GROUP BY experiment_id;
-- name: experiment_counts_of as experiment_counts
SELECT experiment_id, count(*) AS runs, sum(status = 'running') AS running, sum(status = 'failed') AS failed,
	max(max(coalesce(start_ms, 0), coalesce(end_ms, 0))) AS changed_ms
FROM run INDEXED BY run_by_state WHERE deleted_ms IS NULL AND experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']'))
GROUP BY experiment_id;
-- postgresql:
SELECT experiment_id, count(*) AS runs, count(*) FILTER (WHERE status = 'running') AS running,
	count(*) FILTER (WHERE status = 'failed') AS failed,
	max(greatest(coalesce(start_ms, 0), coalesce(end_ms, 0))) AS changed_ms
FROM run WHERE deleted_ms IS NULL AND experiment_id = ANY (CAST(?1 AS bigint[])) GROUP BY experiment_id;
-- name: keys_of_params
SELECT name FROM key k WHERE EXISTS (SELECT 1 FROM param p JOIN run r ON r.id = p.run_id
	WHERE p.key_id = k.id AND (?1 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']')))) ORDER BY name;
-- postgresql:
SELECT name FROM key k WHERE EXISTS (SELECT 1 FROM param p JOIN run r ON r.id = p.run_id
	WHERE p.key_id = k.id AND (?1 IS NULL OR r.experiment_id = ANY (CAST(?1 AS bigint[])))) ORDER BY name;
-- name: keys_of_tags as keys_of_params
SELECT name FROM key k WHERE EXISTS (SELECT 1 FROM tag t JOIN run r ON r.id = t.run_id
	WHERE t.key_id = k.id AND (?1 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']')))) ORDER BY name;
-- postgresql:
SELECT name FROM key k WHERE EXISTS (SELECT 1 FROM tag t JOIN run r ON r.id = t.run_id
	WHERE t.key_id = k.id AND (?1 IS NULL OR r.experiment_id = ANY (CAST(?1 AS bigint[])))) ORDER BY name;
-- name: keys_of_metrics as keys_of_params
SELECT name FROM key k WHERE EXISTS (SELECT 1 FROM metric m JOIN run r ON r.id = m.run_id
	WHERE m.key_id = k.id AND (?1 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']')))) ORDER BY name;
-- postgresql:
SELECT name FROM key k WHERE EXISTS (SELECT 1 FROM metric m JOIN run r ON r.id = m.run_id
	WHERE m.key_id = k.id AND (?1 IS NULL OR r.experiment_id = ANY (CAST(?1 AS bigint[])))) ORDER BY name;
-- name: run_head
SELECT r.id, r.experiment_id, r.rev, r.name, r.start_ms, (SELECT value FROM param p WHERE p.run_id = r.id
	AND p.key_id = (SELECT id FROM key WHERE name = 'steps_per_epoch')) AS steps_per_epoch FROM run r WHERE r.uuid = ?1;
-- name: run_of_series
SELECT r.uuid FROM series s JOIN run r ON r.id = s.run_id WHERE s.id = ?1;
-- name: chunk_heads
SELECT id, points, min_step, max_step, min_time, max_time FROM chunk WHERE id BETWEEN ?1 AND ?2 ORDER BY id;
-- name: archive_has_series
SELECT 1 FROM series s JOIN archive a ON a.run_id = s.run_id WHERE s.id = ?1;
-- name: archive_of_series
SELECT a.object, a.bytes FROM series s JOIN archive a ON a.run_id = s.run_id WHERE s.id = ?1;
-- name: writer_paths
SELECT w.path, w.durable, 0 AS rev, w.run_id, w.id, r.uuid AS run, w.uuid AS writer, w.rank FROM writer w
CROSS JOIN run r ON r.id = w.run_id WHERE w.path IS NOT NULL AND w.id > ?1 ORDER BY w.id LIMIT ?2;
-- postgresql:
SELECT w.path, w.durable, 0 AS rev, w.run_id, w.id, r.uuid AS run, w.uuid AS writer, w.rank FROM writer w
JOIN run r ON r.id = w.run_id WHERE w.path IS NOT NULL AND w.id > ?1 ORDER BY w.id LIMIT ?2;
-- Writers whose event files are gone.
-- name: writer_paths_gone as writer_paths
SELECT '' AS path, w.durable, 0 AS rev, w.run_id, w.id, r.uuid AS run, w.uuid AS writer, w.rank
FROM key k CROSS JOIN tag t ON t.key_id = k.id CROSS JOIN run r ON r.id = t.run_id CROSS JOIN writer w ON w.run_id = r.id
WHERE k.name = 'dptrack.source' AND w.path IS NULL;
-- postgresql:
SELECT '' AS path, w.durable, 0 AS rev, w.run_id, w.id, r.uuid AS run, w.uuid AS writer, w.rank
FROM key k JOIN tag t ON t.key_id = k.id JOIN run r ON r.id = t.run_id JOIN writer w ON w.run_id = r.id
WHERE k.name = 'dptrack.source' AND w.path IS NULL;
-- name: writer_paths_newest as writer_paths
SELECT w.path, w.durable, r.rev, r.id AS run_id, w.id, r.uuid AS run, w.uuid AS writer, w.rank
FROM run r INDEXED BY run_by_rev CROSS JOIN writer w ON w.run_id = r.id
WHERE (r.rev, r.id, w.id) < (?1, ?2, ?3) AND w.path IS NOT NULL ORDER BY r.rev DESC, r.id DESC, w.id DESC LIMIT ?4;
-- postgresql:
SELECT w.path, w.durable, r.rev, r.id AS run_id, w.id, r.uuid AS run, w.uuid AS writer, w.rank FROM run r JOIN writer w ON w.run_id = r.id
WHERE (r.rev, r.id, w.id) < (?1, ?2, ?3) AND w.path IS NOT NULL ORDER BY r.rev DESC, r.id DESC, w.id DESC LIMIT ?4;

-- mlflow

-- name: experiment_state
SELECT deleted_ms IS NOT NULL AS deleted FROM experiment WHERE id = ?1;
-- name: experiment_name_state
SELECT deleted_ms IS NOT NULL AS deleted FROM experiment WHERE name = ?1 AND id != ?2;
-- name: experiment_deleted_put
UPDATE experiment SET deleted_ms = ?2, updated_ms = ?3 WHERE id = ?1;
-- name: experiment_name_put
UPDATE experiment SET name = ?2, updated_ms = CASE WHEN ?3 > updated_ms THEN ?3 ELSE updated_ms + 1 END WHERE id = ?1;
-- name: experiment_tag_put
INSERT INTO experiment_tag (experiment_id, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (experiment_id, name) DO UPDATE SET value = ?3;
-- name: experiment_tag_find
SELECT 1 FROM experiment_tag WHERE experiment_id = ?1 AND name = ?2;
-- name: experiment_tag_delete
DELETE FROM experiment_tag WHERE experiment_id = ?1 AND name = ?2;
-- name: experiment_rows
SELECT id, name, created_ms, CASE WHEN updated_ms > created_ms THEN updated_ms ELSE created_ms END AS updated_ms, deleted_ms IS NOT NULL AS deleted, location FROM experiment WHERE (?1 IS NULL OR id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']'))) ORDER BY id;
-- postgresql:
SELECT id, name, created_ms, CASE WHEN updated_ms > created_ms THEN updated_ms ELSE created_ms END AS updated_ms, deleted_ms IS NOT NULL AS deleted, location FROM experiment WHERE (?1 IS NULL OR id = ANY (CAST(?1 AS bigint[]))) ORDER BY id;
-- name: experiment_row as experiment_rows
SELECT id, name, created_ms, CASE WHEN updated_ms > created_ms THEN updated_ms ELSE created_ms END AS updated_ms, deleted_ms IS NOT NULL AS deleted, location FROM experiment WHERE id = ?1;
-- name: experiment_row_by_name as experiment_rows
SELECT id, name, created_ms, CASE WHEN updated_ms > created_ms THEN updated_ms ELSE created_ms END AS updated_ms, deleted_ms IS NOT NULL AS deleted, location FROM experiment WHERE name = ?1;
-- name: experiment_location
SELECT location FROM experiment WHERE id = ?1;
-- name: experiment_location_put
UPDATE experiment SET location = ?2 WHERE id = ?1;
-- name: experiment_tags as environment_of_run
SELECT name, value FROM experiment_tag WHERE experiment_id = ?1 ORDER BY name;
-- name: experiment_tag_value
SELECT value FROM experiment_tag WHERE experiment_id = ?1 AND name = ?2;
-- name: runs_to_sweep
SELECT id FROM run WHERE experiment_id = ?1 AND CASE WHEN deleted_ms IS NULL THEN 1 ELSE 0 END = ?2;
-- name: dataset_cells
SELECT d.name, d.digest, (SELECT t.value FROM run_dataset_tag t WHERE t.run_id = rd.run_id AND t.dataset_id = rd.dataset_id
	AND t.name = 'mlflow.data.context') AS context FROM run_dataset rd JOIN dataset d ON d.id = rd.dataset_id
WHERE rd.run_id = ?1 ORDER BY rd.number;
-- name: dataset_add
INSERT INTO dataset (experiment_id, name, digest, source_type, source, schema, profile)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING;
-- name: dataset_find
SELECT id FROM dataset WHERE experiment_id = ?1 AND name = ?2 AND digest = ?3;
-- name: run_dataset_find
SELECT 1 FROM run_dataset WHERE run_id = ?1 AND dataset_id = ?2;
-- name: run_dataset_add
INSERT INTO run_dataset (run_id, dataset_id, number)
VALUES (?1, ?2, (SELECT count(*) FROM run_dataset WHERE run_id = ?1));
-- name: run_dataset_tag_add
INSERT INTO run_dataset_tag (run_id, dataset_id, name, value) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, dataset_id, name) DO UPDATE SET value = ?4;
-- name: run_model_add
INSERT INTO run_model (run_id, direction, model, step) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run_id, direction, model) DO UPDATE SET step = ?4;
-- name: artifact_put
INSERT INTO artifact (path, bytes, time_ns, sha256, object) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (path) DO UPDATE SET bytes = ?2, time_ns = ?3, sha256 = ?4, object = ?5;
-- name: artifact_get
SELECT bytes, time_ns, sha256, object FROM artifact WHERE path = ?1;
-- name: artifact_below
SELECT path, bytes FROM artifact WHERE path > ?1 AND path < ?2 AND object IS NOT NULL ORDER BY path LIMIT 1000;
-- name: artifact_sum
SELECT count(*) AS files, coalesce(CAST(sum(bytes) AS BIGINT), 0) AS bytes FROM artifact
WHERE path > ?1 || '/' AND path < ?1 || '0' AND object IS NOT NULL;
-- name: artifact_in_way
SELECT 1 FROM artifact WHERE object IS NOT NULL AND (path > ?1 || '/' AND path < ?1 || '0') LIMIT 1;
-- name: artifact_is_file
SELECT 1 FROM artifact WHERE object IS NOT NULL AND path = ?1;
-- name: artifact_owner_gone
SELECT 1 FROM gone WHERE uuid = ?1 UNION ALL SELECT 1 FROM model WHERE uuid = ?1 AND deleted_ms = 0 LIMIT 1;
-- name: artifact_any_object
SELECT 1 FROM (SELECT object FROM artifact WHERE object IS NOT NULL UNION ALL SELECT object FROM archive) o LIMIT 1;
-- name: object_begin
INSERT INTO object (name, since_ms) VALUES (?1, ?2);
-- name: object_named
DELETE FROM object WHERE name = ?1 AND doomed = 0 RETURNING 1;
-- name: objects_garbage
SELECT count(*) FROM object WHERE since_ms <= ?1 OR doomed = 1;
-- name: objects_doom
UPDATE object SET doomed = 1
WHERE name IN (SELECT name FROM object WHERE since_ms <= ?1 AND doomed = 0 ORDER BY since_ms LIMIT 1000);
-- name: objects_doomed
SELECT name FROM object WHERE doomed = 1 ORDER BY name LIMIT 1000;
-- name: object_forget
DELETE FROM object WHERE name = ?1;
-- name: artifacts_place
SELECT value FROM meta WHERE name = 'artifacts';
-- name: files_place
SELECT value FROM meta WHERE name = 'files';
-- name: files_place_put
INSERT INTO meta (name, value) VALUES ('files', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1;
-- name: artifacts_place_put
INSERT INTO meta (name, value) VALUES ('artifacts', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1;
-- name: artifact_delete
DELETE FROM artifact WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0');
-- Files at ?1 or below it; those that are objects.
-- name: artifact_items
SELECT path, bytes, time_ns FROM artifact WHERE (path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')) AND object IS NOT NULL;
-- name: artifact_time
SELECT time_ns FROM artifact WHERE path = ?1;
-- name: leaving_put
INSERT INTO leaving (path, bytes, time_ns) VALUES (?1, ?2, ?3) ON CONFLICT (path) DO UPDATE SET bytes = ?2, time_ns = ?3;
-- name: leaving_next as artifact_items
SELECT path, bytes, time_ns FROM leaving WHERE path > ?2 AND (?1 = '' OR path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0'))
ORDER BY path LIMIT 100;
-- name: leaving_drop
DELETE FROM leaving WHERE path = ?1 AND bytes = ?2 AND time_ns = ?3;
-- name: artifact_picture_next
SELECT path FROM artifact WHERE path > ?1 AND path < ?2 AND path LIKE '%/artifacts/images/%.png' ORDER BY path LIMIT 1;
-- name: model_active
SELECT id, experiment_id FROM model WHERE uuid = ?1 AND deleted_ms IS NULL;
-- name: model_add
INSERT INTO model (uuid, experiment_id, name, type, source_run, status, created_ms, updated_ms)
VALUES (?1, ?2, ?3, ?4, ?5, 'LOGGED_MODEL_PENDING', ?6, ?6);
-- postgresql:
INSERT INTO model (uuid, experiment_id, name, type, source_run, status, created_ms, updated_ms)
VALUES (?1, ?2, ?3, ?4, ?5, 'LOGGED_MODEL_PENDING', ?6, ?6) RETURNING id;
-- name: model_param_put
INSERT INTO model_param (model_id, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (model_id, name) DO UPDATE SET value = ?3;
-- name: model_param_find
SELECT value FROM model_param WHERE model_id = ?1 AND name = ?2;
-- name: model_tag_put
INSERT INTO model_tag (model_id, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (model_id, name) DO UPDATE SET value = ?3;
-- name: model_tag_find
SELECT 1 FROM model_tag WHERE model_id = ?1 AND name = ?2;
-- name: model_tag_delete
DELETE FROM model_tag WHERE model_id = ?1 AND name = ?2;
-- name: model_status_put
UPDATE model SET status = ?2, updated_ms = ?3 WHERE id = ?1;
-- name: model_deleted_put
UPDATE model SET deleted_ms = ?2, updated_ms = ?2 WHERE id = ?1;
-- name: model_metric_put
INSERT INTO model_metric (model_id, name, time_ms, step, run, value, dataset_name, dataset_digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (model_id, name, time_ms, step, run) DO UPDATE SET value = ?6, dataset_name = ?7, dataset_digest = ?8;
-- name: model_row
SELECT id, uuid, experiment_id, name, type, source_run, status, created_ms, updated_ms FROM model
WHERE uuid = ?1 AND (?2 <> 0 OR deleted_ms IS NULL);
-- name: model_rows as model_row
SELECT id, uuid, experiment_id, name, type, source_run, status, created_ms, updated_ms FROM model
WHERE experiment_id = ?1 AND deleted_ms IS NULL;
-- name: models_of_run
SELECT m.uuid, m.experiment_id FROM run r JOIN model m ON m.experiment_id = r.experiment_id AND m.source_run = r.uuid WHERE r.uuid = ?1;
-- name: model_params as environment_of_run
SELECT name, value FROM model_param WHERE model_id = ?1 ORDER BY name;
-- name: model_tags as environment_of_run
SELECT name, value FROM model_tag WHERE model_id = ?1 ORDER BY name;
-- name: model_metrics
SELECT name, time_ms, step, run, value, dataset_name, dataset_digest FROM model_metric WHERE model_id = ?1
ORDER BY name, time_ms, step;
-- Links of an array of uuids; place: the position in it, from 1.
-- name: runs_datasets
SELECT d.id, d.name, d.digest, d.source_type, d.source, d.schema, d.profile, w.key + 1 AS place
FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN run r ON r.uuid = w.value CROSS JOIN run_dataset rd ON rd.run_id = r.id
	CROSS JOIN dataset d ON d.id = rd.dataset_id ORDER BY place, rd.number;
-- postgresql:
SELECT d.id, d.name, d.digest, d.source_type, d.source, d.schema, d.profile, w.place
FROM unnest(CAST(?1 AS text[])) WITH ORDINALITY AS w (uuid, place)
	CROSS JOIN LATERAL (SELECT id FROM run WHERE uuid = w.uuid OFFSET 0) AS r
	CROSS JOIN LATERAL (SELECT dataset_id, number FROM run_dataset WHERE run_id = r.id OFFSET 0) AS rd
	CROSS JOIN LATERAL (SELECT * FROM dataset WHERE id = rd.dataset_id OFFSET 0) AS d ORDER BY w.place, rd.number;
-- name: runs_dataset_tags
SELECT t.dataset_id, t.name, t.value, w.key + 1 AS place FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN run r ON r.uuid = w.value
	CROSS JOIN run_dataset_tag t ON t.run_id = r.id ORDER BY place, t.name;
-- postgresql:
SELECT t.dataset_id, t.name, t.value, w.place FROM unnest(CAST(?1 AS text[])) WITH ORDINALITY AS w (uuid, place)
	CROSS JOIN LATERAL (SELECT id FROM run WHERE uuid = w.uuid OFFSET 0) AS r
	CROSS JOIN LATERAL (SELECT dataset_id, name, value FROM run_dataset_tag WHERE run_id = r.id OFFSET 0) AS t
ORDER BY w.place, t.name;
-- name: runs_models
SELECT m.model, m.step, m.direction, w.key + 1 AS place FROM json_each('[' || trim(?1, '{}') || ']') AS w CROSS JOIN run r ON r.uuid = w.value
	CROSS JOIN run_model m ON m.run_id = r.id ORDER BY place, m.direction, m.step, m.model;
-- postgresql:
SELECT m.model, m.step, m.direction, w.place FROM unnest(CAST(?1 AS text[])) WITH ORDINALITY AS w (uuid, place)
	CROSS JOIN LATERAL (SELECT id FROM run WHERE uuid = w.uuid OFFSET 0) AS r
	CROSS JOIN LATERAL (SELECT model, step, direction FROM run_model WHERE run_id = r.id OFFSET 0) AS m
ORDER BY w.place, m.direction, m.step, m.model;
-- name: dataset_summaries
SELECT DISTINCT d.experiment_id, d.name, d.digest, (SELECT t.value FROM run_dataset_tag t WHERE t.run_id = rd.run_id
	AND t.dataset_id = d.id AND t.name = 'mlflow.data.context') AS context
FROM dataset d JOIN run_dataset rd ON rd.dataset_id = d.id WHERE d.experiment_id = ?1 ORDER BY d.name, d.digest LIMIT 1000;

-- the registry

-- name: registered_id
SELECT id FROM registered_model WHERE name = ?1;
-- name: registered_add
INSERT INTO registered_model (name, description, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?3);
-- postgresql:
INSERT INTO registered_model (name, description, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?3) RETURNING id;
-- name: registered_name_put
UPDATE registered_model SET name = ?2, updated_ms = ?3 WHERE id = ?1;
-- name: registered_description_put
UPDATE registered_model SET description = ?2, updated_ms = ?3 WHERE id = ?1;
-- name: registered_touch
UPDATE registered_model SET updated_ms = ?2 WHERE id = ?1;
-- name: registered_delete
DELETE FROM registered_model WHERE id = ?1;
-- name: registered_tag_put
INSERT INTO registered_tag (registered_id, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (registered_id, name) DO UPDATE SET value = ?3;
-- name: registered_tag_delete
DELETE FROM registered_tag WHERE registered_id = ?1 AND name = ?2;
-- name: registered_tags_delete
DELETE FROM registered_tag WHERE registered_id = ?1;
-- name: registered_alias_put
INSERT INTO registered_alias (registered_id, alias, version) VALUES (?1, ?2, ?3)
ON CONFLICT (registered_id, alias) DO UPDATE SET version = ?3;
-- name: registered_alias_delete
DELETE FROM registered_alias WHERE registered_id = ?1 AND alias = ?2;
-- name: registered_aliases_delete
DELETE FROM registered_alias WHERE registered_id = ?1;
-- name: version_model
SELECT registered_id FROM version WHERE name = ?1 AND version = ?2;
-- name: version_experiment
SELECT r.experiment_id FROM version v JOIN run r ON r.uuid = v.run WHERE v.name = ?1 AND v.version = ?2;
-- name: version_next
SELECT 1 + coalesce(max(version), 0) FROM model_version WHERE registered_id = ?1;
-- name: version_add
INSERT INTO model_version (registered_id, version, description, stage, source, location, run, run_link, status, created_ms, updated_ms)
VALUES (?1, ?2, ?3, 'None', ?4, ?5, ?6, ?7, 'READY', ?8, ?8);
-- name: versions_touch
UPDATE model_version SET updated_ms = ?2 WHERE registered_id = ?1;
-- name: version_description_put
UPDATE model_version SET description = ?3, updated_ms = ?4 WHERE registered_id = ?1 AND version = ?2;
-- name: version_stage_put
UPDATE model_version SET stage = ?3, updated_ms = ?4 WHERE registered_id = ?1 AND version = ?2;
-- name: versions_archive
UPDATE model_version SET stage = 'Archived', updated_ms = ?4 WHERE registered_id = ?1 AND version <> ?2 AND stage = ?3;
-- name: version_delete
UPDATE model_version SET stage = 'Deleted_Internal', updated_ms = ?3, description = NULL, "user" = NULL, source = '', location = '',
	run = NULL, run_link = NULL, status_text = NULL WHERE registered_id = ?1 AND version = ?2;
-- name: versions_delete
DELETE FROM model_version WHERE registered_id = ?1;
-- name: version_aliases_delete
DELETE FROM registered_alias WHERE registered_id = ?1 AND version = ?2;
-- name: version_tag_put
INSERT INTO model_version_tag (registered_id, version, name, value) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (registered_id, version, name) DO UPDATE SET value = ?4;
-- name: version_tag_delete
DELETE FROM model_version_tag WHERE registered_id = ?1 AND version = ?2 AND name = ?3;
-- name: version_tags_delete
DELETE FROM model_version_tag WHERE registered_id = ?1;
-- seen: some version is of a run in a permitted experiment.
-- name: registered_rows
SELECT id, name, description, created_ms, updated_ms, EXISTS (SELECT 1 FROM registered_tag t
	WHERE t.registered_id = r.id AND t.name = 'mlflow.prompt.is_prompt' AND t.value = 'true') AS prompt,
	(?1 IS NULL OR EXISTS (SELECT 1 FROM version v JOIN run w ON w.uuid = v.run WHERE v.registered_id = r.id AND w.experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']')))) AS seen
FROM registered_model r ORDER BY name;
-- postgresql:
SELECT id, name, description, created_ms, updated_ms, EXISTS (SELECT 1 FROM registered_tag t
	WHERE t.registered_id = r.id AND t.name = 'mlflow.prompt.is_prompt' AND t.value = 'true') AS prompt,
	(?1 IS NULL OR EXISTS (SELECT 1 FROM version v JOIN run w ON w.uuid = v.run WHERE v.registered_id = r.id AND w.experiment_id = ANY (CAST(?1 AS bigint[])))) AS seen
FROM registered_model r ORDER BY name;
-- name: registered_row as registered_rows
SELECT id, name, description, created_ms, updated_ms, EXISTS (SELECT 1 FROM registered_tag t
	WHERE t.registered_id = r.id AND t.name = 'mlflow.prompt.is_prompt' AND t.value = 'true') AS prompt,
	(?2 IS NULL OR EXISTS (SELECT 1 FROM version v JOIN run w ON w.uuid = v.run WHERE v.registered_id = r.id AND w.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))) AS seen
FROM registered_model r WHERE name = ?1;
-- postgresql:
SELECT id, name, description, created_ms, updated_ms, EXISTS (SELECT 1 FROM registered_tag t
	WHERE t.registered_id = r.id AND t.name = 'mlflow.prompt.is_prompt' AND t.value = 'true') AS prompt,
	(?2 IS NULL OR EXISTS (SELECT 1 FROM version v JOIN run w ON w.uuid = v.run WHERE v.registered_id = r.id AND w.experiment_id = ANY (CAST(?2 AS bigint[])))) AS seen
FROM registered_model r WHERE name = ?1;
-- name: registered_tags as environment_of_run
SELECT name, value FROM registered_tag WHERE registered_id = ?1 ORDER BY name;
-- name: registered_aliases
SELECT a.alias, a.version, (SELECT r.experiment_id FROM version v JOIN run r ON r.uuid = v.run
	WHERE v.registered_id = ?1 AND v.version = a.version) AS experiment_id
FROM registered_alias a WHERE a.registered_id = ?1 ORDER BY a.alias;
-- name: version_rows
SELECT registered_id, version, name, description, "user" AS user, stage, source, location, run, run_link, status, status_text, created_ms,
	updated_ms, prompt, (SELECT r.experiment_id FROM run r WHERE r.uuid = v.run) AS experiment_id FROM version v ORDER BY name, version;
-- name: version_row as version_rows
SELECT registered_id, version, name, description, "user" AS user, stage, source, location, run, run_link, status, status_text, created_ms,
	updated_ms, prompt, (SELECT r.experiment_id FROM run r WHERE r.uuid = v.run) AS experiment_id FROM version v WHERE name = ?1 AND version = ?2;
-- Among those that may be seen: of permitted runs (?2: their experiments), or, with ?3 = 1, of no run that is there.
-- name: version_latest as version_rows
SELECT registered_id, version, name, description, "user" AS user, stage, source, location, run, run_link, status, status_text, created_ms,
	updated_ms, prompt, (SELECT r.experiment_id FROM run r WHERE r.uuid = v.run) AS experiment_id FROM version v WHERE registered_id = ?1
	AND version = (SELECT max(o.version) FROM version o WHERE o.registered_id = ?1 AND o.stage = v.stage
		AND (?2 IS NULL OR EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run AND r.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))
		OR (CAST(?3 AS BIGINT) = 1 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run))))
ORDER BY (SELECT min(o.version) FROM version o WHERE o.registered_id = ?1 AND o.stage = v.stage
		AND (?2 IS NULL OR EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run AND r.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']')))
		OR (CAST(?3 AS BIGINT) = 1 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run))));
-- postgresql:
SELECT registered_id, version, name, description, "user" AS user, stage, source, location, run, run_link, status, status_text, created_ms,
	updated_ms, prompt, (SELECT r.experiment_id FROM run r WHERE r.uuid = v.run) AS experiment_id FROM version v WHERE registered_id = ?1
	AND version = (SELECT max(o.version) FROM version o WHERE o.registered_id = ?1 AND o.stage = v.stage
		AND (?2 IS NULL OR EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run AND r.experiment_id = ANY (CAST(?2 AS bigint[])))
		OR (CAST(?3 AS BIGINT) = 1 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run))))
ORDER BY (SELECT min(o.version) FROM version o WHERE o.registered_id = ?1 AND o.stage = v.stage
		AND (?2 IS NULL OR EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run AND r.experiment_id = ANY (CAST(?2 AS bigint[])))
		OR (CAST(?3 AS BIGINT) = 1 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.uuid = o.run))));
-- name: version_tags as environment_of_run
SELECT name, value FROM model_version_tag WHERE registered_id = ?1 AND version = ?2 ORDER BY name;

-- artifacts of W&B's API

-- name: wandb_by_id
SELECT id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said FROM wandb_artifact WHERE id = ?1;
-- name: wandb_experiment
SELECT experiment_id FROM wandb_artifact WHERE id = ?1;
-- name: wandb_by_client as wandb_by_id
SELECT id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said FROM wandb_artifact WHERE client = ?1 ORDER BY id;
-- name: wandb_by_version as wandb_by_id
SELECT id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said FROM wandb_artifact
WHERE experiment_id = ?1 AND collection = ?2 AND version = ?3;
-- name: wandb_by_alias as wandb_by_id
SELECT a.id, a.experiment_id, a.collection, a.version, a.type, a.digest, a.client, a.run, a.state, a.created_ms, a.said FROM wandb_artifact a
JOIN wandb_alias l ON l.experiment_id = a.experiment_id AND l.collection = a.collection AND l.version = a.version
WHERE a.experiment_id = ?1 AND a.collection = ?2 AND l.alias = ?3;
-- name: wandb_of_collection as wandb_by_id
SELECT id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said FROM wandb_artifact
WHERE experiment_id = ?1 AND collection = ?2 AND state = 1 ORDER BY version DESC;
-- name: wandb_of_experiment as wandb_by_id
SELECT id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said FROM wandb_artifact
WHERE experiment_id = ?1 AND state = 1 ORDER BY collection, version DESC;
-- name: wandb_made_by as wandb_by_id
SELECT id, experiment_id, collection, version, type, digest, client, run, state, created_ms, said FROM wandb_artifact
WHERE (run = ?1 OR id IN (SELECT artifact_id FROM wandb_use WHERE run = ?1 AND how >= 2)) AND state = 1 ORDER BY id;
-- name: wandb_used_by as wandb_by_id
SELECT a.id, a.experiment_id, a.collection, a.version, a.type, a.digest, a.client, a.run, a.state, a.created_ms, a.said FROM wandb_artifact a
JOIN wandb_use u ON u.artifact_id = a.id WHERE u.run = ?1 AND u.how <> 2 AND a.state = 1 ORDER BY a.id;
-- name: wandb_users as environment_of_run
SELECT run AS name, '' AS value FROM wandb_use WHERE artifact_id = ?1 AND how <> 2 ORDER BY run;
-- name: wandb_aliases as environment_of_run
SELECT alias AS name, CAST(version AS text) AS value FROM wandb_alias WHERE experiment_id = ?1 AND collection = ?2 ORDER BY alias;
-- name: wandb_files
SELECT name, md5, bytes, born FROM wandb_file WHERE artifact_id = ?1 ORDER BY name;
-- name: wandb_last_version
SELECT coalesce(max(version), -1) FROM wandb_artifact WHERE experiment_id = ?1 AND collection = ?2;
-- name: wandb_same
SELECT id FROM wandb_artifact WHERE experiment_id = ?1 AND collection = ?2 AND digest = ?3 AND state = 1 ORDER BY version DESC LIMIT 1;
-- name: wandb_add
INSERT INTO wandb_artifact (experiment_id, collection, version, type, digest, client, run, state, created_ms, said)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9);
-- postgresql:
INSERT INTO wandb_artifact (experiment_id, collection, version, type, digest, client, run, state, created_ms, said)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9) RETURNING id;
-- name: wandb_pending
SELECT id FROM wandb_artifact WHERE experiment_id = ?1 AND collection = ?2 AND client = ?3 AND state = 0 ORDER BY id LIMIT 1;
-- name: wandb_digest_put
UPDATE wandb_artifact SET digest = ?2 WHERE id = ?1;
-- name: wandb_births
SELECT 1 FROM wandb_file f JOIN wandb_artifact n ON n.id = f.artifact_id
WHERE f.born = ?1 AND f.born <> 0 AND f.born <> f.artifact_id AND n.state <> 2 LIMIT 1;
-- name: wandb_state_put
UPDATE wandb_artifact SET state = ?2 WHERE id = ?1;
-- name: wandb_said_put
UPDATE wandb_artifact SET said = ?2 WHERE id = ?1;
-- name: wandb_run_put
UPDATE wandb_artifact SET run = ?2 WHERE id = ?1 AND run = '';
-- name: wandb_file_put
INSERT INTO wandb_file (artifact_id, name, md5, bytes, born) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (artifact_id, name) DO UPDATE SET md5 = ?3, bytes = ?4, born = ?5;
-- name: wandb_alias_put
INSERT INTO wandb_alias (experiment_id, collection, alias, version)
SELECT experiment_id, collection, ?2, version FROM wandb_artifact WHERE id = ?1
ON CONFLICT (experiment_id, collection, alias) DO UPDATE SET version = excluded.version;
-- name: wandb_alias_drop
DELETE FROM wandb_alias WHERE alias = ?2 AND EXISTS (SELECT 1 FROM wandb_artifact a WHERE a.id = ?1
	AND a.experiment_id = wandb_alias.experiment_id AND a.collection = wandb_alias.collection AND a.version = wandb_alias.version);
-- name: wandb_aliases_drop
DELETE FROM wandb_alias WHERE EXISTS (SELECT 1 FROM wandb_artifact a WHERE a.id = ?1
	AND a.experiment_id = wandb_alias.experiment_id AND a.collection = wandb_alias.collection AND a.version = wandb_alias.version);
-- name: wandb_logged_again
INSERT INTO wandb_use (run, artifact_id, how) SELECT CAST(?1 AS text), id, 2 FROM wandb_artifact WHERE id = ?2 AND run <> ?1
ON CONFLICT (run, artifact_id) DO UPDATE SET how = wandb_use.how | 2;
-- name: wandb_use_add
INSERT INTO wandb_use (run, artifact_id) VALUES (?1, ?2) ON CONFLICT (run, artifact_id) DO UPDATE SET how = wandb_use.how | 1;

-- saved views and reports

-- name: kept_add
INSERT INTO kept (shelf, experiment_id, name, edition, created_ms, updated_ms) VALUES (?1, ?2, ?3, 1, ?4, ?4);
-- postgresql:
INSERT INTO kept (shelf, experiment_id, name, edition, created_ms, updated_ms) VALUES (?1, ?2, ?3, 1, ?4, ?4) RETURNING id;
-- name: kept_count
SELECT count(*) FROM kept WHERE shelf = ?1 AND experiment_id = ?2;
-- name: kept_find
SELECT id, experiment_id, edition, name FROM kept WHERE id = ?2 AND shelf = ?1;
-- name: kept_named
SELECT id FROM kept WHERE shelf = ?1 AND experiment_id = ?2 AND name = ?3;
-- name: kept_name_put
UPDATE kept SET name = ?2, updated_ms = ?3 WHERE id = ?1;
-- name: kept_edition_put
UPDATE kept SET edition = ?2, updated_ms = ?3 WHERE id = ?1;
-- name: kept_text_add
INSERT INTO kept_text (kept_id, edition, text, written_ms, editing) VALUES (?1, ?2, ?3, ?4, ?5);
-- name: kept_text_replace
DELETE FROM kept_text WHERE kept_id = ?1 AND edition = ?2 AND editing = ?3 AND editing <> '';
-- name: kept_text_trim
DELETE FROM kept_text WHERE kept_id = ?1 AND edition <= (SELECT edition FROM kept_text WHERE kept_id = ?1
	ORDER BY edition DESC LIMIT 1 OFFSET ?2);
-- name: kept_texts_delete
DELETE FROM kept_text WHERE kept_id = ?1;
-- name: kept_text_delete
DELETE FROM kept_text WHERE kept_id = ?1 AND edition = ?2;
-- name: kept_prefer
UPDATE kept SET preferred = CASE WHEN id = ?3 THEN 1 ELSE 0 END WHERE shelf = ?1 AND experiment_id = ?2;
-- name: kept_unprefer
UPDATE kept SET preferred = 0 WHERE id = ?1;
-- name: kept_delete
DELETE FROM kept WHERE id = ?1;
-- name: kept_rows
SELECT k.id, k.experiment_id, e.name AS experiment, k.name, k.preferred, k.edition, k.created_ms, k.updated_ms,
	CASE WHEN k.shelf = 'view' THEN t.text ELSE '' END AS text
FROM kept k JOIN experiment e ON e.id = k.experiment_id JOIN kept_text t ON t.kept_id = k.id AND t.edition = k.edition
WHERE k.shelf = ?1 AND e.deleted_ms IS NULL
	AND (?2 IS NULL OR k.experiment_id IN (SELECT value FROM json_each('[' || trim(?2, '{}') || ']'))) ORDER BY e.name, k.name;
-- postgresql:
SELECT k.id, k.experiment_id, e.name AS experiment, k.name, k.preferred, k.edition, k.created_ms, k.updated_ms,
	CASE WHEN k.shelf = 'view' THEN t.text ELSE '' END AS text
FROM kept k JOIN experiment e ON e.id = k.experiment_id JOIN kept_text t ON t.kept_id = k.id AND t.edition = k.edition
WHERE k.shelf = ?1 AND e.deleted_ms IS NULL
	AND (?2 IS NULL OR k.experiment_id = ANY (CAST(?2 AS bigint[]))) ORDER BY e.name, k.name;
-- name: kept_row as kept_rows
SELECT k.id, k.experiment_id, e.name AS experiment, k.name, k.preferred, t.edition, k.created_ms, k.updated_ms, t.text AS text
FROM kept k JOIN experiment e ON e.id = k.experiment_id JOIN kept_text t ON t.kept_id = k.id
	AND t.edition = CASE WHEN CAST(?3 AS BIGINT) = 0 THEN k.edition ELSE ?3 END
WHERE k.id = ?2 AND k.shelf = ?1;
-- name: kept_preferred as kept_rows
SELECT k.id, k.experiment_id, e.name AS experiment, k.name, k.preferred, t.edition, k.created_ms, k.updated_ms, t.text AS text
FROM kept k JOIN experiment e ON e.id = k.experiment_id JOIN kept_text t ON t.kept_id = k.id AND t.edition = k.edition
WHERE e.name = ?2 AND k.shelf = ?1 AND k.preferred = 1;
-- name: kept_editions
SELECT edition, written_ms FROM kept_text WHERE kept_id = ?1 ORDER BY edition;

-- moving a whole store: queries that tables.sql (schema/gen/tables.awk) lacks

-- A target is incomplete while it has this row instead of the store's id.
-- name: moving_get
SELECT value FROM meta WHERE name = 'moving';
-- name: moving_put
INSERT INTO meta (name, value) VALUES ('moving', ?1);
-- name: store_id_put
INSERT INTO meta (name, value) VALUES ('store_id', ?1);
-- name: meta_forget
DELETE FROM meta WHERE name = ?1;
-- name: experiments_forget
DELETE FROM experiment WHERE id = 0;
-- The largest ids ever given, including those of removed rows.
-- name: move_next_ids
-- postgresql:
SELECT setval('run_id', 1 + greatest((SELECT coalesce(max(id), 0) FROM run), (SELECT coalesce(max(run_id), 0) FROM gone)), false) AS run,
	setval('experiment_id', 1 + greatest((SELECT coalesce(max(id), 0) FROM experiment),
	(SELECT coalesce(max(experiment_id), 0) FROM gone)), false) AS experiment;
-- name: move_rev
-- postgresql:
UPDATE counter SET rev = greatest((SELECT coalesce(max(rev), 0) FROM run), (SELECT coalesce(max(rev), 0) FROM gone));
-- One process fills a database at a time, until the end of this transaction.
-- name: move_mine
-- postgresql:
SELECT CASE WHEN pg_try_advisory_xact_lock(7233173, 2) THEN 1 ELSE 0 END;
-- Other connections to this database.
-- name: move_others
-- postgresql:
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'dptrack' AND pid <> pg_backend_pid();
-- name: archive_all
SELECT run_id, object, bytes, sha256 FROM archive ORDER BY run_id;
-- name: artifact_all
SELECT path, bytes, time_ns, sha256, object FROM artifact ORDER BY path;
-- name: statistics
ANALYZE;

-- alert rules, and the alerts that they fired

-- name: alert_rule_add
INSERT INTO alert_rule (experiment_id, kind, metric, above, bound, since_rev, created_ms)
SELECT ?1, ?2, ?3, ?4, ?5, coalesce(max(rev), 0), ?6 FROM run;
-- postgresql:
INSERT INTO alert_rule (experiment_id, kind, metric, above, bound, since_rev, created_ms)
SELECT CAST(?1 AS bigint), ?2, ?3, CAST(?4 AS bigint), CAST(?5 AS double precision), coalesce(max(rev), 0), CAST(?6 AS bigint)
FROM run RETURNING id;
-- name: alert_rule_count
SELECT count(*) FROM alert_rule;
-- name: alert_rule_find
SELECT experiment_id FROM alert_rule WHERE id = ?1;
-- name: alert_rule_delete
DELETE FROM alert_rule WHERE id = ?1;
-- name: alert_rules
SELECT r.id, coalesce(e.name, '') AS experiment, r.experiment_id, r.kind, r.metric, r.above, r.bound, r.since_rev, r.created_ms
FROM alert_rule r LEFT JOIN experiment e ON e.id = r.experiment_id
WHERE (r.experiment_id = -1 OR e.deleted_ms IS NULL)
	AND (?1 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?1, '{}') || ']'))) ORDER BY r.id;
-- postgresql:
SELECT r.id, coalesce(e.name, '') AS experiment, r.experiment_id, r.kind, r.metric, r.above, r.bound, r.since_rev, r.created_ms
FROM alert_rule r LEFT JOIN experiment e ON e.id = r.experiment_id
WHERE (r.experiment_id = -1 OR e.deleted_ms IS NULL) AND (?1 IS NULL OR r.experiment_id = ANY (CAST(?1 AS bigint[])))
ORDER BY r.id;
-- name: alert_rev
SELECT coalesce(max(rev), 0) FROM run;
-- name: alert_by_status
SELECT r.id AS run_id, r.status AS word, r.last_step AS step, NULL AS value FROM run r
WHERE r.rev > ?1 AND (CAST(?2 AS BIGINT) = -1 OR r.experiment_id = ?2) AND r.deleted_ms IS NULL AND r.inferred = 0
	AND (r.status = ?4 OR r.status = ?5) AND NOT EXISTS (SELECT 1 FROM alert_fired f WHERE f.rule_id = ?3 AND f.run_id = r.id)
ORDER BY r.id LIMIT 500;
-- name: alert_by_metric as alert_by_status
SELECT m.run_id, k.name AS word, CASE WHEN CAST(?5 AS BIGINT) = 1 THEN m.max_step ELSE m.min_step END AS step,
	CASE WHEN CAST(?5 AS BIGINT) = 1 THEN m.max ELSE m.min END AS value
FROM run r CROSS JOIN key k CROSS JOIN metric m
WHERE r.rev > ?1 AND (CAST(?2 AS BIGINT) = -1 OR r.experiment_id = ?2) AND r.deleted_ms IS NULL AND k.name = ?4
	AND m.key_id = k.id AND m.run_id = r.id AND CASE WHEN CAST(?5 AS BIGINT) = 1 THEN m.max > ?6 AND m.max <= 1.7976931348623157e308
		ELSE m.min < ?6 AND m.min >= -1.7976931348623157e308 END
	AND NOT EXISTS (SELECT 1 FROM alert_fired f WHERE f.rule_id = ?3 AND f.run_id = r.id)
ORDER BY r.id LIMIT 500;
-- name: alert_by_nan as alert_by_status
SELECT m.run_id, k.name AS word, m.nonfinite_step AS step, NULL AS value FROM run r CROSS JOIN metric m CROSS JOIN key k
WHERE r.rev > ?1 AND (CAST(?2 AS BIGINT) = -1 OR r.experiment_id = ?2) AND r.deleted_ms IS NULL AND m.run_id = r.id AND m.nonfinite > 0
	AND k.id = m.key_id AND (?4 = '' OR k.name = ?4)
	AND NOT EXISTS (SELECT 1 FROM alert_fired f WHERE f.rule_id = ?3 AND f.run_id = r.id)
ORDER BY r.id, m.nonfinite_step, k.name LIMIT 500;
-- name: alert_by_silence as alert_by_status
SELECT r.id AS run_id, r.status AS word, r.last_step AS step, NULL AS value FROM run r
WHERE (r.status = 'running' OR r.inferred = 1) AND r.last_ms > ?1 AND r.last_ms <= ?4 AND r.deleted_ms IS NULL
	AND (CAST(?2 AS BIGINT) = -1 OR r.experiment_id = ?2)
	AND NOT EXISTS (SELECT 1 FROM alert_fired f WHERE f.rule_id = ?3 AND f.run_id = r.id)
ORDER BY r.id LIMIT 500;
-- name: alert_fire
INSERT INTO alert_fired (rule_id, run_id, kind, metric, step, value, text, time_ms, due_ms)
SELECT id, ?2, kind, ?3, ?4, ?5, ?6, ?7, ?8 FROM alert_rule WHERE id = ?1 AND EXISTS (SELECT 1 FROM run WHERE id = ?2)
ON CONFLICT (rule_id, run_id) DO NOTHING;
-- postgresql:
INSERT INTO alert_fired (rule_id, run_id, kind, metric, step, value, text, time_ms, due_ms)
SELECT id, CAST(?2 AS bigint), kind, ?3, CAST(?4 AS bigint), CAST(?5 AS double precision), ?6, CAST(?7 AS bigint), CAST(?8 AS bigint)
FROM alert_rule WHERE id = ?1 AND EXISTS (SELECT 1 FROM run WHERE id = ?2) ON CONFLICT (rule_id, run_id) DO NOTHING;
-- name: alert_unpost
UPDATE alert_fired SET due_ms = NULL WHERE rule_id = ?1;
-- name: alert_claim
UPDATE alert_fired SET due_ms = ?3, tries = tries + 1 WHERE id = ?1 AND due_ms = ?2;
-- name: alert_settle
UPDATE alert_fired SET due_ms = ?2, posted_ms = ?3 WHERE id = ?1 AND due_ms IS NOT NULL;
-- name: alert_list
SELECT f.id, f.rule_id, r.uuid AS run, r.name AS run_name, e.name AS experiment, f.kind, f.metric, f.step, f.value, f.text,
	f.time_ms, f.due_ms, f.tries, f.posted_ms
FROM alert_fired f JOIN run r ON r.id = f.run_id JOIN experiment e ON e.id = r.experiment_id
WHERE r.deleted_ms IS NULL AND (?1 = '' OR e.name = ?1) AND f.id < ?2
	AND (?4 IS NULL OR r.experiment_id IN (SELECT value FROM json_each('[' || trim(?4, '{}') || ']'))) ORDER BY f.id DESC LIMIT ?3;
-- postgresql:
SELECT f.id, f.rule_id, r.uuid AS run, r.name AS run_name, e.name AS experiment, f.kind, f.metric, f.step, f.value, f.text,
	f.time_ms, f.due_ms, f.tries, f.posted_ms
FROM alert_fired f JOIN run r ON r.id = f.run_id JOIN experiment e ON e.id = r.experiment_id
WHERE r.deleted_ms IS NULL AND (?1 = '' OR e.name = ?1) AND f.id < ?2 AND (?4 IS NULL OR r.experiment_id = ANY (CAST(?4 AS bigint[])))
ORDER BY f.id DESC LIMIT ?3;
-- name: alert_due as alert_list
SELECT f.id, f.rule_id, r.uuid AS run, r.name AS run_name, e.name AS experiment, f.kind, f.metric, f.step, f.value, f.text,
	f.time_ms, f.due_ms, f.tries, f.posted_ms
FROM alert_fired f JOIN run r ON r.id = f.run_id JOIN experiment e ON e.id = r.experiment_id
WHERE f.due_ms <= ?1 ORDER BY f.due_ms, f.id LIMIT 16;

-- checks

-- name: check_tables
SELECT name FROM sqlite_master WHERE type = 'table' AND name > ?1 AND name NOT LIKE 'sqlite_%' ORDER BY name LIMIT 1;
-- postgresql:
SELECT CAST(tablename AS text) AS name FROM pg_tables WHERE schemaname = current_schema() AND CAST(tablename AS text) > ?1 ORDER BY 1 LIMIT 1;
-- name: check_table
SELECT quick_check AS text FROM pragma_quick_check(?1);
-- postgresql:
SELECT 'ok' AS text FROM meta WHERE name = 'version' AND ?1 <> '';
-- name: check_table_whole as check_table
SELECT integrity_check AS text FROM pragma_integrity_check(?1);
-- postgresql:
SELECT 'ok' AS text FROM meta WHERE name = 'version' AND ?1 <> '';
-- name: check_last_series
SELECT max(id) FROM series;
-- name: check_next_series
SELECT id FROM series WHERE id > ?1 ORDER BY id LIMIT 1;
-- name: check_unfinished
SELECT count(*) FROM gone WHERE stage = 0;
-- name: check_orphans
SELECT 'log' AS name, count(*) AS rows FROM log WHERE run_id NOT IN (SELECT id FROM run)
UNION ALL SELECT 'segment', count(*) FROM segment WHERE run_id NOT IN (SELECT id FROM run UNION ALL SELECT run_id FROM gone WHERE stage = 0);
-- name: check_orphans_whole as check_orphans
WITH owner AS (SELECT id FROM run UNION ALL SELECT run_id FROM gone WHERE stage = 0)
SELECT 'log' AS name, count(*) AS rows FROM log WHERE run_id NOT IN (SELECT id FROM run)
UNION ALL SELECT 'segment', count(*) FROM segment WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'series', count(*) FROM series WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'part', count(*) FROM part WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'metric', count(*) FROM metric WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'param', count(*) FROM param WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'tag', count(*) FROM tag WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'run_text', count(*) FROM run_text WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'note_text', count(*) FROM note_text WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'writer', count(*) FROM writer WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'arrival', count(*) FROM arrival WHERE run_id NOT IN (SELECT id FROM owner)
UNION ALL SELECT 'chunk', count(*) FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM series s WHERE s.id = c.id >> 20);
