-- The queries of `dptrack import` for MLflow's SQLite store, by name. Older stores lack some tables; their queries run only
-- where the tables exist.

-- name: ml_table
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1;
-- name: ml_experiments
SELECT experiment_id, name, lifecycle_stage FROM experiments ORDER BY experiment_id;
-- name: ml_runs
SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, r.lifecycle_stage, r.artifact_uri, r.experiment_id, e.name AS experiment
FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id ORDER BY r.rowid;
-- name: ml_tags
SELECT key, value FROM tags WHERE run_uuid = ?1 ORDER BY key;
-- name: ml_params as ml_tags
SELECT key, value FROM params WHERE run_uuid = ?1 ORDER BY rowid;
-- name: ml_experiment_tags as ml_tags
SELECT key, value FROM experiment_tags WHERE experiment_id = ?1 ORDER BY key;
-- In order of arrival: a store that has grown has more rows at the end.
-- name: ml_metrics
SELECT key, value, timestamp, step, is_nan FROM metrics WHERE run_uuid = ?1 ORDER BY rowid;
-- name: ml_inputs
SELECT i.input_uuid, d.name, d.digest, d.dataset_source_type AS source_type, d.dataset_source AS source, d.dataset_schema AS schema,
	d.dataset_profile AS profile
FROM inputs i JOIN datasets d ON d.dataset_uuid = i.source_id
WHERE i.destination_id = ?1 AND i.destination_type = 'RUN' AND i.source_type = 'DATASET' ORDER BY i.rowid;
-- name: ml_input_tags as ml_tags
SELECT name AS key, value FROM input_tags WHERE input_uuid = ?1 ORDER BY name;
-- name: ml_traces
SELECT count(*) AS lost FROM trace_info;
-- name: ml_logged
SELECT m.model_id, e.name AS experiment, m.name, m.artifact_location AS uri, m.status, m.lifecycle_stage AS stage, m.model_type AS type,
	m.source_run_id AS run
FROM logged_models m JOIN experiments e ON e.experiment_id = m.experiment_id ORDER BY m.creation_timestamp_ms, m.model_id;
-- name: ml_logged_tags as ml_tags
SELECT tag_key AS key, tag_value AS value FROM logged_model_tags WHERE model_id = ?1 ORDER BY tag_key;
-- name: ml_logged_params as ml_tags
SELECT param_key AS key, param_value AS value FROM logged_model_params WHERE model_id = ?1 ORDER BY param_key;
-- name: ml_logged_metrics
SELECT run_id AS run, metric_name AS key, metric_value AS value, metric_timestamp_ms AS timestamp, metric_step AS step, dataset_name,
	dataset_digest
FROM logged_model_metrics WHERE model_id = ?1 ORDER BY rowid;
-- name: ml_outputs
SELECT source_id AS run, destination_id AS model, step FROM inputs
WHERE source_type = 'RUN_OUTPUT' AND destination_type = 'MODEL_OUTPUT' ORDER BY rowid;
-- name: ml_registered
SELECT name, description FROM registered_models ORDER BY name;
-- name: ml_registered_tags as ml_tags
SELECT key, value FROM registered_model_tags WHERE name = ?1 ORDER BY key;
-- name: ml_aliases
SELECT alias, version FROM registered_model_aliases WHERE name = ?1 ORDER BY alias;
-- name: ml_versions
SELECT version, description, current_stage AS stage, source, run_id FROM model_versions WHERE name = ?1 ORDER BY version;
-- name: ml_version_tags as ml_tags
SELECT key, value FROM model_version_tags WHERE name = ?1 AND version = ?2 ORDER BY key;
