/* tracking.c: copies an operation of MLflow's calls and hands it to the writer's thread. */
#include "web/store/mlflow/mlflow.h"

#include <stdlib.h>
#include <string.h>

#include "web/store/base/parts.h"
#include "web/store/mlflow/mlflow_inside.h"
#include "web/store/write/committer.h"

#define JOB_BYTES ((size_t)20 << 10)

static const char *dup(struct arena *a, const char *text, bool *failed)
{
	const char *copy = text ? arena_strdup(a, text) : NULL;

	*failed = *failed || (text && !copy);
	return copy;
}

static const struct ingest_kv *dup_pairs(struct arena *a, const struct ingest_kv *kv, size_t n, bool *failed)
{
	struct ingest_kv *copy = arena_array(a, n + 1, sizeof *copy);
	size_t i;

	*failed = *failed || !copy;
	for (i = 0; copy && i < n; i++)
		copy[i] = (struct ingest_kv){ dup(a, kv[i].key, failed), dup(a, kv[i].value, failed) };
	return copy;
}

/* Those without a model are in the intake already. */
static const struct tracking_point *dup_points(struct arena *a, const struct tracking_op *op, size_t *ret_count, bool *failed)
{
	struct tracking_point *copy;
	size_t i, n = 0;

	for (i = 0; i < op->point_count; i++)
		n += op->points[i].model != NULL;
	copy = arena_array(a, n + 1, sizeof *copy);
	*failed = *failed || !copy;
	for (i = 0, n = 0; copy && i < op->point_count; i++) {
		const struct tracking_point *p = &op->points[i];

		if (!p->model)
			continue;
		copy[n] = *p;
		copy[n].key = dup(a, p->key, failed);
		copy[n].model = dup(a, p->model, failed);
		copy[n].dataset_name = dup(a, p->dataset_name, failed);
		copy[n++].dataset_digest = dup(a, p->dataset_digest, failed);
	}
	*ret_count = n;
	return copy;
}

static const struct tracking_dataset *dup_datasets(struct arena *a, const struct tracking_op *op, bool *failed)
{
	struct tracking_dataset *copy = arena_array(a, op->dataset_count + 1, sizeof *copy);
	size_t i;

	*failed = *failed || !copy;
	for (i = 0; copy && i < op->dataset_count; i++) {
		const struct tracking_dataset *d = &op->datasets[i];

		copy[i] = (struct tracking_dataset){
			.name = dup(a, d->name, failed), .digest = dup(a, d->digest, failed),
			.source_type = dup(a, d->source_type, failed), .source = dup(a, d->source, failed),
			.schema = dup(a, d->schema, failed), .profile = dup(a, d->profile, failed),
			.tags = dup_pairs(a, d->tags, d->tag_count, failed), .tag_count = d->tag_count,
		};
	}
	return copy;
}

static const struct tracking_model *dup_models(struct arena *a, const struct tracking_op *op, bool *failed)
{
	struct tracking_model *copy = arena_array(a, op->model_count + 1, sizeof *copy);
	size_t i;

	*failed = *failed || !copy;
	for (i = 0; copy && i < op->model_count; i++)
		copy[i] = (struct tracking_model){ dup(a, op->models[i].id, failed), op->models[i].step };
	return copy;
}

static const struct tracking_op *copy_op(const struct tracking_op *from, struct arena *a)
{
	struct tracking_op *to = arena_alloc(a, sizeof *to);
	bool failed = false;

	if (!to)
		return NULL;
	*to = *from;
	to->run = dup(a, from->run, &failed);
	to->model = dup(a, from->model, &failed);
	to->name = dup(a, from->name, &failed);
	to->user = dup(a, from->user, &failed);
	to->status = dup(a, from->status, &failed);
	to->type = dup(a, from->type, &failed);
	to->source_run = dup(a, from->source_run, &failed);
	to->sha256 = dup(a, from->sha256, &failed);
	to->location = dup(a, from->location, &failed);
	to->params = dup_pairs(a, from->params, from->param_count, &failed);
	to->tags = dup_pairs(a, from->tags, from->tag_count, &failed);
	to->points = dup_points(a, from, &to->point_count, &failed);
	to->datasets = dup_datasets(a, from, &failed);
	to->models = dup_models(a, from, &failed);
	return failed ? NULL : to;
}

/* Groups the points by series, as every batch of points is. */
static int take_points(struct intake *in, const struct tracking_op *op, struct err *err)
{
	struct ingest_point *points = arena_array(in->arena, op->point_count + 1, sizeof *points);
	struct ingest_op all = { .kind = INGEST_POINTS, .points = points, .point_count = op->point_count };
	size_t i;

	if (!points)
		return err_set(err, ERR_NOMEM, "out of memory");
	for (i = 0; i < op->point_count; i++)
		points[i] = (struct ingest_point){ op->points[i].key, op->points[i].step, (double)op->points[i].time_ms / 1e3,
						   op->points[i].value, STATE_RUN_LEVEL };
	return intake_points(in, &all, err);
}

static int apply_any(struct state *st, struct apply_job *job, struct err *err)
{
	static tracking_fn *const by_kind[] = {
		[TRACKING_EXPERIMENT_NEW] = tracking_experiment_new,
		[TRACKING_EXPERIMENT_RENAME] = tracking_experiment_change,
		[TRACKING_EXPERIMENT_DELETE] = tracking_experiment_change,
		[TRACKING_EXPERIMENT_RESTORE] = tracking_experiment_change,
		[TRACKING_EXPERIMENT_TAG] = tracking_experiment_change,
		[TRACKING_EXPERIMENT_UNTAG] = tracking_experiment_change,
		[TRACKING_RUN_NEW] = tracking_run_new,
		[TRACKING_RUN_WRITE] = tracking_run_write,
		[TRACKING_RUN_UNTAG] = tracking_run_untag,
		[TRACKING_RUN_INPUTS] = tracking_inputs,
		[TRACKING_RUN_OUTPUTS] = tracking_outputs,
		[TRACKING_MODEL_NEW] = tracking_model_new,
		[TRACKING_MODEL_STATUS] = tracking_model_change,
		[TRACKING_MODEL_DELETE] = tracking_model_change,
		[TRACKING_MODEL_TAGS] = tracking_model_change,
		[TRACKING_MODEL_UNTAG] = tracking_model_change,
		[TRACKING_MODEL_PARAMS] = tracking_model_change,
		[TRACKING_ARTIFACT_PUT] = tracking_artifact,
		[TRACKING_ARTIFACT_DELETE] = tracking_artifact,
	};
	const struct tracking_op *op = job->arg;

	return by_kind[op->kind](st, job, op, err);
}

static size_t text_bytes(const struct tracking_op *op)
{
	size_t bytes = op->point_count * sizeof(struct sum_point), i;

	for (i = 0; i < op->tag_count; i++)
		bytes += strlen(op->tags[i].value);
	for (i = 0; i < op->dataset_count; i++)
		bytes += strlen(op->datasets[i].source) + (op->datasets[i].profile ? strlen(op->datasets[i].profile) : 0);
	return bytes;
}

static void job_free(struct queue_job *job)
{
	intake_done(&job->a.in);
	free(job);
}

int tracking_submit(struct store *s, const struct tracking_op *op, const struct ingest_done *done, struct err *err)
{
	struct queue_job *job = calloc(1, sizeof *job);
	const struct tracking_op *copy;
	int rc = job ? intake_init(&job->a.in, err) : err_set(err, ERR_NOMEM, "out of memory");

	if (rc) {
		free(job);
		return rc;
	}
	job->a.fn = apply_any;
	copy = copy_op(op, job->a.in.arena);
	job->a.arg = copy;
	if (copy)
		job->a.op.run = copy->run; /* the order of what changes one run is kept */
	else
		rc = err_set(err, ERR_NOMEM, "out of memory");
	if (!rc && op->point_count)
		rc = take_points(&job->a.in, op, err);
	job->bytes = JOB_BYTES + text_bytes(op);
	job->done = *done;
	if (!rc)
		rc = queue_put(committer_queue(s->writer), job, err);
	if (rc)
		job_free(job);
	return rc;
}
