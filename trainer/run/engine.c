/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c: builds an engine from a configuration. */
#include "trainer/run/engine.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/program/memory.h"
#include "trainer/run/observers.h"
#include "trainer/state/initial.h"

#define LARGE_WAIT_S 3

bool engine_is_root(const struct engine *e)
{
	return rank_is_root(&e->rank);
}

static struct engine *allocate_engine(const struct job *job, const struct rank_context *context)
{
	struct engine *e = mem_zalloc(sizeof(*e));

	e->job = job;
	e->rank = rank_of(job->cfg, context);
	return e;
}

/* Returns e in *ret, or closes it after a failure. */
static int finish_opening(struct engine **ret, struct engine *e, int rc)
{
	if (rc)
		engine_close(e);
	else
		*ret = e;
	return rc;
}

static int open_workload(struct engine *e, struct err *err)
{
	int rc = shared_cache_open(&e->shared_cache, &e->rank, err);
	char text[512];

	if (!rc)
		rc = workload_open(&e->workload, e->job->cfg, e->job->batch, shared_cache_peers(e->shared_cache), err);
	if (rc)
		return rc;
	while (!engine_is_root(e) && dataset_notice(e->workload.data, text, sizeof(text)))
		; /* rank 0 prints the account of the set as a whole */
	return initial_given(&e->workload, e->rank.cfg, err);
}

/* Returns true if a micro-batch of an epoch's first or last step has one sample on all ranks together. */
static bool leaves_one_sample(const struct sampler *s)
{
	const int64_t steps[] = { 0, s->endless ? 0 : sampler_steps(s) - 1 };

	for (int i = 0; i < 2; i++)
		for (int64_t micro = 0; micro < sampler_micros(s, steps[i]); micro++) {
			int64_t samples = 0;

			for (int rank = 0; rank < s->world; rank++) {
				const struct range r = sampler_micro(s, steps[i], rank, micro);

				samples += r.end - r.begin;
			}
			if (samples == 1)
				return true;
		}
	return false;
}

/* Measured steps need not learn. */
static int check_norms(const struct engine *e, struct err *err)
{
	const struct sampler *s = &e->train_schedule.train;
	const int ranks = e->rank.cfg->sync_bn && !leaves_one_sample(s) ? s->world : 1;
	int rc = 0;

	for (int i = 0; !rc && i < e->prepared.n_programs && e->job->cfg->command != COMMAND_BENCH; i++)
		if (e->prepared.program[i]->graph->training)
			rc = program_check_norms(e->prepared.program[i], ranks, &e->prepared.opts, err);
	if (rc && e->job->cfg->batch_size > 1) /* it leaves one sample */
		err_prefix(err, "the last batch of an epoch, with --batch-size %lld",
			   (long long)e->job->cfg->batch_size);
	return rc;
}

/* Lets a user on a terminal stop a command before it takes most of the memory. A rank's stderr is a pipe to the
 * launcher. */
static void announce_large_plan(const struct engine *e)
{
	const double until_s = clock_mono_s() + LARGE_WAIT_S;
	char text[300];

	if (!isatty(STDOUT_FILENO) || !memory_is_large(&e->prepared.plan, &e->rank, text, sizeof(text)))
		return;
	log_warn("%s; it begins in %d s, ctrl-C stops it", text, LARGE_WAIT_S);
	while (clock_mono_s() < until_s && !rank_context_stop(e->rank.context))
		clock_sleep_s(0.05);
}

/* Sets what fine-tuning decides when the backend is known. */
static int complete_tuning(const struct engine *e, struct err *err)
{
	int rc = rank_choose_precision(e->job->cfg, &e->rank, err);

	return rc ? rc : memory_fit_batch(e->job->cfg, &e->rank, &e->workload, err);
}

/* Makes the plan and checks that it can run. */
static int plan_engine(struct engine *e, struct err *err)
{
	const struct run_config *cfg = e->rank.cfg;
	int rc = complete_tuning(e, err);

	if (!rc)
		rc = resume_kernels(&e->rank, err);
	if (!rc && e->rank.context->local_rank == 0)
		rc = memory_check_first(&e->rank, &e->workload, err);
	if (!rc)
		rc = planning_together(&e->train_schedule, &e->prepared, &e->rank, &e->workload, err);
	if (!rc)
		rc = check_norms(e, err);
	if (!rc)
		rc = rank_check_collectives(&e->prepared, &e->rank, err);
	if (!rc && e->rank.context->local_rank == 0)
		rc = memory_check(&e->prepared.plan, &e->rank, &e->workload, err);
	if (!rc && e->rank.context->local_rank == 0)
		announce_large_plan(e);
	e->resident_before = memory_begin() - (int64_t)e->workload.data->drawn_bytes;
	if (!rc)
		rc = initial_check_freeze(e->prepared.model, cfg, e->workload.model, err);
	return rc ? rc : train_schedule_check_best(&e->train_schedule, cfg, e->workload.data, err);
}

static int allocate_engine_memory(struct engine *e, struct err *err)
{
	int rc = prepare_memory(&e->prepared, err);

	e->tensors = tensors_of(&e->prepared, &e->rank);
	return rc;
}

static int open_watching(struct engine *e, struct err *err)
{
	int rc = watch_new(&e->watch, e->job->cfg->watch_steps, &e->prepared, rank_comm(&e->rank), err);

	e->spike = loss_spike_new();
	return rc;
}

static void open_trace(struct engine *e)
{
	int64_t first, last;

	if (config_trace_steps(e->rank.cfg, &first, &last))
		e->trace = trace_new(first, last);
}

int engine_open(struct engine **ret, const struct job *job, const struct rank_context *context, struct err *err)
{
	struct engine *e = allocate_engine(job, context);
	int rc;

	for (int s = 0; s < SPLIT_COUNT && job->cfg->workers < 0; s++)
		workers_init(&e->loading[s], loading_workers(job->cfg));
	rc = rank_meet(&e->rank, err); /* first, so that the other ranks notice from now on when this one ends */
	if (!rc)
		rc = open_workload(e, err);
	if (!rc)
		rc = rank_open_backend(&e->rank, err);
	if (!rc)
		rc = plan_engine(e, err);
	if (!rc && engine_is_root(e))
		workload_warn(e->workload.data);
	if (!rc)
		rc = allocate_engine_memory(e, err);
	if (!rc && !job->cfg->resume) /* resume_open knows whether a checkpoint has them */
		rc = draw_values(&e->tensors, job->cfg, e->workload.model, err);
	if (!rc)
		rc = exec_new(&e->exec, &e->prepared, err);
	open_trace(e);
	if (!rc && e->prepared.opts.optimizer.watch && !job->cfg->test_only)
		rc = open_watching(e, err);
	if (!rc && job->cfg->init_from)
		rc = initial_load(&e->tensors, job->cfg, &e->workload, err);
	return finish_opening(ret, e, rc);
}

int engine_open_evaluation(struct engine **ret, const struct engine_evaluation *o, struct err *err)
{
	const struct weights_load_opts from = { .path = o->job->cfg->init_from };
	struct engine *e = allocate_engine(o->job, o->context);
	int rc;

	e->workload = o->workload;
	rc = rank_meet(&e->rank, err);
	if (!rc)
		rc = rank_open_backend(&e->rank, err);
	if (!rc)
		rc = planning_evaluation(&e->prepared, &e->rank, &e->workload, &o->sizes, err);
	if (!rc)
		rc = allocate_engine_memory(e, err);
	if (!rc)
		rc = exec_new(&e->exec, &e->prepared, err);
	if (!rc)
		rc = initial_load_weights(&e->tensors, o->job->cfg, &from, e->workload.base_hash, err);
	return finish_opening(ret, e, rc);
}

int engine_open_plan(struct engine **ret, const struct job *job, const struct rank_context *context, struct err *err)
{
	struct engine *e = allocate_engine(job, context);
	int rc;

	rc = open_workload(e, err);
	e->rank.by_rule = true; /* a plan measures nothing */
	e->rank.described = job->described;
	if (!rc)
		rc = rank_open_backend(&e->rank, err);
	if (!rc)
		rc = complete_tuning(e, err);
	if (!rc)
		rc = planning_make(&e->train_schedule, &e->prepared, &e->rank, &e->workload, err);
	return finish_opening(ret, e, rc);
}

static void loader_worked(void *user, int thread, double from_s, double to_s)
{
	trace_add(user, &(struct trace_span){ "loader", thread, "load", "", -1, from_s, to_s });
}

int engine_load(struct loader **ret, struct engine *e, enum split split, struct err *err)
{
	return loading_open(ret,
			    &(struct loading_opts){ .rank = &e->rank,
						    .workload = &e->workload,
						    .train_schedule = &e->train_schedule,
						    .split = split,
						    .resting = split == SPLIT_VAL,
						    .step = e->step,
						    .active = e->loading[split].n,
						    .memory = prepared_loader(&e->prepared, split),
						    .worked = e->trace ? loader_worked : NULL,
						    .worked_user = e->trace },
			    err);
}

int engine_begin(struct engine *e, struct err *err)
{
	int rc = engine_load(&e->loader, e, SPLIT_TRAIN, err);

	if (!rc && e->train_schedule.evaluates && !e->evaluation)
		rc = engine_load(&e->evaluation, e, SPLIT_VAL, err);
	if (!e->queue)
		e->queue = step_queue_new();
	if (!rc)
		rc = step_queue_restart(e, err);
	rank_limit(&e->rank, e->rank.cfg->ddp_timeout);
	e->mark_s = clock_mono_s();
	e->until_s =
		e->cached ? e->mark_s + fmax(e->rank.cfg->seconds - CACHED_STEP_S, e->rank.cfg->seconds / 2) : INFINITY;
	return rc;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	loader_close(e->loader);
	loader_close(e->evaluation);
	exec_free(e->exec);
	trace_free(e->trace);
	watch_free(e->watch);
	loss_spike_free(e->spike);
	cached_step_free(e->cached);
	step_queue_free(e->queue);
	prepare_done(&e->prepared);
	workload_close(&e->workload);
	shared_cache_close(e->shared_cache);
	rank_close(&e->rank);
	free(e);
}
