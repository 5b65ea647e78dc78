/* mlflow.c: copies operations of MLflow's API for the writer's thread. Knows no kind of change. */
#include "web/store/mlflow/mlflow.h"

#include <string.h>

#include "web/store/base/no_memory.h"
#include "web/store/mlflow/mlflow_inside.h"

/* Copies the points with a model; the others are in the intake. */
static const struct mlflow_point *copy_model_points(struct arena *a, const struct mlflow_op *op, size_t *ret_count,
					     bool *failed)
{
	struct mlflow_point *copy;
	size_t i, n = 0;

	for (i = 0; i < op->point_count; i++)
		n += op->points[i].model != NULL;
	copy = arena_array(a, n + 1, sizeof *copy);
	*failed = *failed || !copy;
	for (i = 0, n = 0; copy && i < op->point_count; i++) {
		const struct mlflow_point *p = &op->points[i];

		if (!p->model)
			continue;
		copy[n] = *p;
		copy[n].key = change_dup(a, p->key, failed);
		copy[n].model = change_dup(a, p->model, failed);
		copy[n].dataset_name = change_dup(a, p->dataset_name, failed);
		copy[n++].dataset_digest = change_dup(a, p->dataset_digest, failed);
	}
	*ret_count = n;
	return copy;
}

static const struct ingest_dataset *copy_datasets(struct arena *a, const struct mlflow_op *op, bool *failed)
{
	struct ingest_dataset *copy = arena_array(a, op->dataset_count + 1, sizeof *copy);
	size_t i;

	*failed = *failed || !copy;
	for (i = 0; copy && i < op->dataset_count; i++) {
		const struct ingest_dataset *d = &op->datasets[i];

		copy[i] = (struct ingest_dataset){
			.name = change_dup(a, d->name, failed),
			.digest = change_dup(a, d->digest, failed),
			.source_type = change_dup(a, d->source_type, failed),
			.source = change_dup(a, d->source, failed),
			.schema = change_dup(a, d->schema, failed),
			.profile = change_dup(a, d->profile, failed),
			.tags = change_dup_pairs(a, d->tags, d->tag_count, failed),
			.tag_count = d->tag_count,
		};
	}
	return copy;
}

static const struct mlflow_model *copy_models(struct arena *a, const struct mlflow_op *op, bool *failed)
{
	struct mlflow_model *copy = arena_array(a, op->model_count + 1, sizeof *copy);
	size_t i;

	*failed = *failed || !copy;
	for (i = 0; copy && i < op->model_count; i++)
		copy[i] = (struct mlflow_model){ change_dup(a, op->models[i].id, failed), op->models[i].step };
	return copy;
}

/* Copies an operation to the arena; NULL when out of memory. */
static const struct mlflow_op *copy_mlflow_op(const struct mlflow_op *from, struct arena *a)
{
	struct mlflow_op *to = arena_alloc(a, sizeof *to);
	bool failed = false;

	if (!to)
		return NULL;
	*to = *from;
	to->run = change_dup(a, from->run, &failed);
	to->model = change_dup(a, from->model, &failed);
	to->name = change_dup(a, from->name, &failed);
	to->user = change_dup(a, from->user, &failed);
	to->status = change_dup(a, from->status, &failed);
	to->type = change_dup(a, from->type, &failed);
	to->source_run = change_dup(a, from->source_run, &failed);
	to->location = change_dup(a, from->location, &failed);
	to->params = change_dup_pairs(a, from->params, from->param_count, &failed);
	to->tags = change_dup_pairs(a, from->tags, from->tag_count, &failed);
	to->points = copy_model_points(a, from, &to->point_count, &failed);
	to->datasets = copy_datasets(a, from, &failed);
	to->models = copy_models(a, from, &failed);
	return failed ? NULL : to;
}

/* Groups the points by series. */
static int take_mlflow_points(struct intake *in, const struct mlflow_op *op, struct err *err)
{
	struct ingest_point *points = arena_array(in->arena, op->point_count + 1, sizeof *points);
	struct ingest_op all = { .points = points, .point_count = op->point_count };
	size_t i;

	if (!points)
		return no_memory(err);
	for (i = 0; i < op->point_count; i++)
		points[i] = (struct ingest_point){ op->points[i].key, op->points[i].step,
						   (double)op->points[i].time_ms / 1e3, op->points[i].value,
						   STATE_RUN_LEVEL };
	return intake_points(in, &all, err);
}

static size_t count_text_bytes(const struct mlflow_op *op)
{
	size_t bytes = 0, i;

	for (i = 0; i < op->tag_count; i++)
		bytes += strlen(op->tags[i].value);
	for (i = 0; i < op->dataset_count; i++)
		bytes += strlen(op->datasets[i].source) +
			 (op->datasets[i].profile ? strlen(op->datasets[i].profile) : 0);
	return bytes;
}

int mlflow_copy(struct change *c, const struct ingest_op *op, struct err *err)
{
	const struct mlflow_op *from = op->more, *copy = copy_mlflow_op(from, c->in.arena);

	if (!copy)
		return no_memory(err);
	c->op = (struct ingest_op){ .kind = op->kind, .run = copy->run, .more = copy };
	c->text_bytes = count_text_bytes(from);
	return from->point_count ? take_mlflow_points(&c->in, from, err) : 0;
}

struct ingest_op mlflow_op(const struct mlflow_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .run = op->run, .more = op };
}
