/* tracking.h: the changes that MLflow's calls make, by MLflow's rules: experiments and runs must be active, a batch is
 * stored whole or not at all, and a point that is there already (run, key, time, step and value) is dropped. What is
 * refused is refused in MLflow's words. Queued and committed as the operations of ingest.h are. */
#ifndef DPT_STORE_TRACKING_H
#define DPT_STORE_TRACKING_H

#include "web/store/write/ingest.h"

enum tracking_kind {
	TRACKING_EXPERIMENT_NEW,     /* name, tags, location (NULL or "": here); ERR_EXISTS when the name is taken, by a deleted one too */
	TRACKING_EXPERIMENT_RENAME,  /* experiment, name */
	TRACKING_EXPERIMENT_DELETE,  /* experiment; its runs with it */
	TRACKING_EXPERIMENT_RESTORE, /* experiment; its runs with it */
	TRACKING_EXPERIMENT_TAG,     /* experiment, tags */
	TRACKING_EXPERIMENT_UNTAG,   /* experiment, name */
	TRACKING_RUN_NEW,            /* experiment, name, user, start_ms as it is, tags */
	TRACKING_RUN_WRITE,          /* run; params, points, tags, then name, status and end_ms where given */
	TRACKING_RUN_UNTAG,          /* run, name */
	TRACKING_RUN_INPUTS,         /* run, datasets, models */
	TRACKING_RUN_OUTPUTS,        /* run, models */
	TRACKING_MODEL_NEW,          /* model (its id), experiment, name, type, source_run, params, tags */
	TRACKING_MODEL_STATUS,       /* model, status */
	TRACKING_MODEL_DELETE,       /* model */
	TRACKING_MODEL_TAGS,         /* model, tags */
	TRACKING_MODEL_UNTAG,        /* model, name */
	TRACKING_MODEL_PARAMS,       /* model, params */
	TRACKING_ARTIFACT_PUT,       /* name (the path), bytes, time_ns, sha256 */
	TRACKING_ARTIFACT_DELETE,    /* name: the path and what lies below it */
};

struct tracking_point {
	const char *key;
	int64_t time_ms, step;
	double value;
	const char *model; /* id, or NULL; the rest is the model's */
	const char *dataset_name, *dataset_digest; /* NULL: none */
};

struct tracking_dataset {
	const char *name, *digest, *source_type, *source;
	const char *schema, *profile; /* NULL: none */
	const struct ingest_kv *tags;
	size_t tag_count;
};

struct tracking_model {
	const char *id;
	int64_t step;
};

struct tracking_op {
	enum tracking_kind kind;
	const char *run, *model;
	int64_t experiment;
	const char *name, *user, *status, *type, *source_run, *sha256, *location;
	int64_t start_ms, end_ms; /* end_ms: INGEST_NO_TIME: unchanged */
	int64_t bytes, time_ns;
	bool single; /* RUN_WRITE: one param by itself, which words a contradiction otherwise */
	const struct ingest_kv *params, *tags;
	size_t param_count, tag_count;
	const struct tracking_point *points;
	size_t point_count;
	const struct tracking_dataset *datasets;
	size_t dataset_count;
	const struct tracking_model *models;
	size_t model_count;
};

/* Copies op and queues it; done->fn is called once, as ingest_submit says, unless a negative code is returned at once.
 * The result's id is the experiment's or run's. Codes: ERR_USAGE, ERR_NOENT, ERR_EXISTS (a name), ERR_UNSUPPORTED (the
 * state forbids it), and those of a disk. */
int tracking_submit(struct store *s, const struct tracking_op *op, const struct ingest_done *done, struct err *err);

#endif
