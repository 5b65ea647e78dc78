/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c: evaluates the whole evaluation set, each rank its part; sums are added over the ranks once, at the
 * end. */
#include "trainer/run/evaluate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/state/tensor_files.h"

/* Summed over the ranks: the results, and how many ranks were asked to stop. */
enum { SUM_STOPPED = XENT_RESULTS, SUMS };

/* Returns the number of logits of one sample. */
static int64_t evaluate_outputs(const struct engine *e)
{
	const struct model_config *c = &e->workload.config;

	return workload_reads_words(&e->workload) ? c->seq_len * c->vocab : e->workload.data->classes;
}

int evaluate_share_stats(struct engine *e, struct err *err)
{
	int rc;

	if (e->rank.context->world == 1 || e->rank.cfg->sync_bn || e->stats_shared)
		return 0;
	rc = tensors_share_stats(&e->tensors, err);
	e->stats_shared = !rc;
	return rc;
}

/* Copies the logits of one batch as doubles to their rows. */
static int keep_outputs(struct engine *e, const struct program *p, const struct loader_batch *b, double *outputs,
			struct err *err)
{
	struct range part = sampler_part(&e->train_schedule.eval, b->step, rank_share(&e->rank));
	int64_t each = evaluate_outputs(e), count = b->count * each;
	double *to = outputs + part.begin * each;
	float *single;
	int rc;

	if (p->logits && !p->logits->producer) /* another stage has them */
		return 0;
	if (!p->logits || !dtype_is_float(p->logits->dtype))
		return err_set(err, ERR_UNSUPPORTED, "the model's outputs cannot be saved");
	if (p->logits->dtype == DTYPE_F64)
		return prepared_get(&e->prepared, p->logits, to, (size_t)count * sizeof(double), err);
	single = mem_alloc((size_t)count * sizeof(float) + 1);
	rc = prepared_get(&e->prepared, p->logits, single, (size_t)count * dtype_bytes(p->logits->dtype), err);
	for (int64_t i = 0; !rc && i < count; i++)
		to[i] = float_get(single, p->logits->dtype, i);
	free(single);
	return rc;
}

static int evaluate_batch(struct engine *e, const struct loader_batch *b, double sums[SUMS], double *outputs,
			  struct err *err)
{
	const struct program *p = prepared_program(&e->prepared, PROGRAM_EVAL, b->count);
	struct step_page page = { .step = e->step,
				  .epoch = b->epoch,
				  .micro = b->step, /* one-time gathers happen in the first batch */
				  .seed = (uint64_t)e->rank.cfg->seed,
				  .inv_count = 1,
				  .loss_scale = 1 };
	struct exec_done done;
	int rc;

	if (!p)
		return err_set(err, ERR_LIMIT, "no program was prepared to evaluate %lld samples", (long long)b->count);
	rc = exec_run(e->exec, p, &(struct exec_call){ .page = &page, .inputs = b->inputs, .targets = b->targets },
		      &done, err);
	for (int i = 0; !rc && i < XENT_RESULTS; i++)
		sums[i] += done.results.own[i];
	if (!rc && outputs)
		rc = keep_outputs(e, p, b, outputs, err);
	return rc;
}

/* Ranks with collectives in every batch leave the loop together. */
static int vote_to_stop(const struct engine *e, double *stopped, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);

	*stopped = rank_context_stop(e->rank.context) != 0;
	return prepared_meets(&e->prepared, PROGRAM_EVAL) ? c->ops->allreduce(c, stopped, 1, DTYPE_F64, err) : 0;
}

/* Evaluation has its own number of threads: its steps are shorter, so it needs more than training. */
static void adjust_evaluation_workers(struct engine *e, struct loader *loader, double wait_s, double *mark_s)
{
	struct workers *s = &e->loading[SPLIT_VAL];
	double now = clock_mono_s();

	if (e->rank.cfg->workers < 0 && workers_batch(s, wait_s, now - *mark_s))
		loader_set_active(loader, s->n);
	*mark_s = now;
}

/* Rewinds the evaluation set. Runs that train opened its loader before the first step. */
static int open_evaluation_set(struct engine *e, struct err *err)
{
	int rc = e->evaluation ? 0 : engine_load(&e->evaluation, e, SPLIT_VAL, err);

	if (rc)
		return rc;
	loader_rewind(e->evaluation);
	if (e->rank.cfg->workers < 0)
		loader_set_active(e->evaluation, e->loading[SPLIT_VAL].n);
	return 0;
}

/* Evaluates every batch until the end or a request to stop. */
static int evaluate_set(struct engine *e, double sums[SUMS], double *outputs, struct err *err)
{
	struct loader_batch b;
	double mark_s = clock_mono_s();
	int rc = 0;

	while (!rc && !sums[SUM_STOPPED] && (rc = loader_next(e->evaluation, &b, err)) == 1) {
		rc = evaluate_batch(e, &b, sums, outputs, err);
		loader_release(e->evaluation, &b);
		adjust_evaluation_workers(e, e->evaluation, b.wait_s, &mark_s);
		if (!rc)
			rc = vote_to_stop(e, &sums[SUM_STOPPED], err);
	}
	return rc;
}

static int evaluate_part(struct engine *e, double sums[SUMS], double *outputs, struct err *err)
{
	bool planned = false;
	int rc;

	for (int i = 0; i < e->prepared.n_programs; i++)
		planned |= e->prepared.program[i]->kind == PROGRAM_EVAL;
	if (!planned)
		return err_set(err, ERR_UNSUPPORTED, "this run has no evaluation set");
	rc = open_evaluation_set(e, err);
	if (!rc)
		rc = evaluate_set(e, sums, outputs, err);
	if (rc || sums[SUM_STOPPED]) { /* not at its end */
		loader_close(e->evaluation);
		e->evaluation = NULL;
	}
	return rc;
}

int evaluate_run(struct engine *e, double *outputs, struct evaluation *ret, struct err *err)
{
	double sums[SUMS] = { 0 }, start = clock_mono_s();
	struct comm *c = rank_comm(&e->rank);
	int rc = evaluate_share_stats(e, err);

	if (!rc)
		rc = evaluate_part(e, sums, outputs, err);
	if (!rc)
		rc = c->ops->allreduce(c, sums, SUMS, DTYPE_F64, err);
	if (!rc && outputs)
		rc = c->ops->allreduce(c, outputs, e->train_schedule.eval.n_samples * evaluate_outputs(e), DTYPE_F64,
				       err);
	if (!rc && !sums[XENT_COUNT] && !sums[SUM_STOPPED])
		rc = err_set(err, ERR_USAGE, "%.300s: no evaluation image can be read", e->workload.data->path);
	if (rc)
		return rc;
	*ret = (struct evaluation){
		.loss = isnan(sums[XENT_LOSS_SUM]) ? (double)NAN : sums[XENT_LOSS_SUM] / sums[XENT_COUNT],
		.top1 = 100 * sums[XENT_TOP1] / sums[XENT_COUNT],
		.top5 = e->workload.data->classes > 5 ? 100 * sums[XENT_TOP5] / sums[XENT_COUNT] : (double)NAN,
		.count = (int64_t)sums[XENT_COUNT],
		.stopped = sums[SUM_STOPPED] > 0,
	};
	e->mark_s = clock_mono_s();
	ret->seconds = e->mark_s - start;
	return 0;
}

int evaluate_save_outputs(struct engine *e, const char *path, struct err *err)
{
	int64_t n = e->train_schedule.eval.n_samples;
	double *outputs = mem_array((size_t)(n * evaluate_outputs(e)) + 1, sizeof(*outputs));
	struct evaluation ignored;
	int rc;

	rc = evaluate_run(e, outputs, &ignored, err);
	if (!rc && engine_is_root(e))
		rc = files_save_outputs(&e->workload, outputs, n, path, err);
	free(outputs);
	return rc;
}

/* ---- points of series ---- */

static void add_series_point(struct eval_metrics *p, enum series_id id, double value)
{
	assert(p->n < EVAL_METRICS_MAX);
	p->point[p->n].id = id;
	p->point[p->n++].value = value;
}

struct eval_metrics eval_metrics_of_evaluation(const struct evaluation *v, bool words, int64_t step)
{
	struct eval_metrics p = { .at = step };

	add_series_point(&p, SERIES_val_loss, v->loss);
	if (words)
		add_series_point(&p, SERIES_val_perplexity, exp(v->loss));
	else
		add_series_point(&p, SERIES_val_top1, v->top1);
	add_series_point(&p, SERIES_val_seconds, v->seconds);
	return p;
}

struct eval_metrics eval_metrics_of_epoch(const struct epoch_summary *s, bool words)
{
	struct eval_metrics p = { .at = s->epoch };

	add_series_point(&p, SERIES_epoch_train_loss, s->train_loss);
	add_series_point(&p, SERIES_epoch_seconds, s->seconds);
	add_series_point(&p, SERIES_epoch_samples_per_s, s->samples_per_s);
	if (!s->evaluated)
		return p;
	add_series_point(&p, SERIES_epoch_val_loss, s->val.loss);
	add_series_point(&p, SERIES_epoch_eval_seconds, s->val.seconds);
	if (words)
		return p;
	add_series_point(&p, SERIES_epoch_top1, s->val.top1);
	if (!isnan(s->val.top5))
		add_series_point(&p, SERIES_epoch_top5, s->val.top5);
	return p;
}

/* A NaN among the logits makes the loss NaN; what else is counted from such logits is no result. */
static bool has_nonfinite_loss(const struct eval_metrics *p)
{
	for (int i = 0; i < p->n; i++)
		if (series_get(p->point[i].id)->best == SERIES_BEST_LESS && !isfinite(p->point[i].value))
			return true;
	return false;
}

bool eval_metrics_find(const struct eval_metrics *p, const char *key, double *ret)
{
	if (has_nonfinite_loss(p))
		return false;
	for (int i = 0; i < p->n; i++) {
		if (strcmp(series_get(p->point[i].id)->key, key) != 0)
			continue;
		*ret = p->point[i].value;
		return true;
	}
	return false;
}
