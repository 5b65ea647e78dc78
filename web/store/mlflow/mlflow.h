/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow.h: the changes of MLflow's API, by MLflow's rules: experiments and runs must be active, a batch is stored
 * completely or not at all, and a point that is already stored (same run, key, time, step and value) is dropped.
 * Refusals are in MLflow's words. Changes go through ingest_submit. */
#ifndef DPT_STORE_MLFLOW_H
#define DPT_STORE_MLFLOW_H

#include "web/store/write/ingest.h"

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/mlflow/changes.def"
#undef CHANGE

struct mlflow_point {
	const char *key;
	int64_t time_ms, step;
	double value;
	const char *model;			   /* id, or NULL; the next two only matter with it */
	const char *dataset_name, *dataset_digest; /* NULL: none */
};

struct mlflow_model {
	const char *id;
	int64_t step;
};

struct mlflow_op {
	const struct change_ops *kind;
	const char *run, *model;
	int64_t experiment;
	const char *name, *user, *status, *type, *source_run, *location;
	int64_t start_ms, end_ms; /* end_ms INGEST_NO_TIME: unchanged */
	bool single;		  /* mlflow_run_write: a single param, which has another text for a contradiction */
	const struct ingest_kv *params, *tags;
	size_t param_count, tag_count;
	const struct mlflow_point *points;
	size_t point_count;
	const struct ingest_dataset *datasets;
	size_t dataset_count;
	const struct mlflow_model *models;
	size_t model_count;
};

/* op for ingest_submit; borrows it. Codes: ERR_USAGE, ERR_NOENT, ERR_EXISTS (a name), ERR_UNSUPPORTED (wrong state),
 * and those of the disk. */
struct ingest_op mlflow_op(const struct mlflow_op *op);

#endif
