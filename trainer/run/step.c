/* SPDX-License-Identifier: Apache-2.0 */
/* step.c: optimiser steps of one rank and their times. The programs of steps begin and end in the same order; the last
 * one of a step has its results. */
#include "trainer/run/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/run/observers.h"
#include "trainer/run/nonfinite.h"

enum series_id step_phase_series(enum step_phase t)
{
	static const enum series_id ids[TIME_COUNT] = {
		[TIME_STEP] = SERIES_phase_step,
		[TIME_DATA_WAIT] = SERIES_phase_data_wait,
		[TIME_H2D] = SERIES_phase_h2d,
		[TIME_FORWARD] = SERIES_phase_forward,
		[TIME_BACKWARD] = SERIES_phase_backward,
		[TIME_COMM_EXPOSED] = SERIES_phase_comm_exposed,
		[TIME_OPTIMIZER] = SERIES_phase_optimizer,
		[TIME_BUBBLE] = SERIES_phase_bubble,
		[TIME_COPY_EXPOSED] = SERIES_phase_copy_exposed,
		[TIME_OTHER] = SERIES_phase_other,
		[TIME_COMM_TOTAL] = SERIES_phase_comm_total,
	};

	return ids[t];
}

bool step_phase_known(const struct engine *e, enum step_phase t)
{
	const struct program_opts *o = &e->prepared.opts;

	if (t == TIME_BUBBLE)
		return o->sharing.stages > 1;
	return t != TIME_COPY_EXPOSED || o->offload.activations || o->offload.params || o->offload.optimizer;
}

#define RUNS (EXEC_AHEAD_MAX + 1)

struct program_run { /* a run of a program in progress */
	const struct program *program;
	int64_t step, micro, n_micro;
	int64_t position, samples; /* position in the epoch's order, and samples, of this rank */
};

struct step_queue {
	struct program_run run[RUNS];
	int first, n;
	struct step_result result[2]; /* results of the step that ends next, and of the one after */
	int64_t over, reported;	      /* steps whose programs have all ended; steps returned to the caller */
	double loss_scale;	      /* scale of the step whose last program ends next */
};

struct step_queue *step_queue_new(void)
{
	return mem_zalloc(sizeof(struct step_queue));
}

void step_queue_free(struct step_queue *s)
{
	free(s);
}

/* Reads the loss scale of the next step; the optimiser's state has it from its start. */
static int read_scale(struct engine *e, double *ret, struct err *err)
{
	const struct tensor *t = prepared_own(&e->prepared, STEP_GUARD_STATE_NAME);
	double state[STEP_GUARD_STATE_VALUES];
	int rc;

	*ret = 1;
	if (!e->prepared.opts.optimizer.scaling || !t)
		return 0;
	rc = prepared_get(&e->prepared, t, state, sizeof(state), err);
	if (!rc && !(state[STEP_GUARD_STATE_SCALE] > 0)) {
		state[STEP_GUARD_STATE_SCALE] = e->prepared.opts.optimizer.fixed_scale > 0 ?
						e->prepared.opts.optimizer.fixed_scale : STEP_GUARD_SCALE_START;
		rc = prepared_put(&e->prepared, t, state, sizeof(state), err);
	}
	*ret = state[STEP_GUARD_STATE_SCALE];
	return rc;
}

int step_queue_restart(struct engine *e, struct err *err)
{
	struct step_queue *s = e->queue;
	struct exec_done ignored;
	int rc = 0;

	for (; !rc && s->n; s->n--)
		rc = exec_end(e->exec, &ignored, err);
	s->over = s->reported = e->step;
	return rc ? rc : read_scale(e, &s->loss_scale, err);
}

static struct step_result *step_result_of(const struct engine *e, int64_t step)
{
	return &e->queue->result[step % 2];
}

static struct step_page make_step_page(const struct engine *e, const struct loader_batch *b,
				       const struct step_result *r)
{
	struct range own = sampler_micro(&e->train_schedule.train, b->step, rank_share(&e->rank), b->micro);

	return (struct step_page){ .step = e->step + 1,
				   .epoch = b->epoch + 1,
				   .epoch_step = b->step,
				   .label_weight = b->label_weight,
				   .first_sample = own.begin - sampler_global(&e->train_schedule.train, b->step).begin,
				   .micro = sampler_leaf(&e->train_schedule.train, b->step, rank_share(&e->rank),
							 b->micro),
				   .leaves = sampler_leaves(&e->train_schedule.train, b->step, rank_share(&e->rank)),
				   .seed = (uint64_t)e->rank.cfg->seed,
				   .lr = r->lr,
				   .inv_count = 1.0 / (double)b->global_weight,
				   .loss_scale = r->loss_scale,
				   .watch = watch_due(e->watch, r->step) };
}

/* Returns the seconds since start_s, which belong to a phase, and adds their span. */
static double end_phase(struct engine *e, const char *phase, double start_s)
{
	double now = clock_mono_s();

	if (trace_on(e->trace))
		trace_add(e->trace, &(struct trace_span){ TRACE_STEP_ROW, 0, phase, phase, -1, start_s, now });
	return now - start_s;
}

static void add_exec_times(struct step_result *r, const struct exec_times *t)
{
	r->seconds[TIME_H2D] += t->by[EXEC_H2D];
	r->seconds[TIME_FORWARD] += t->by[EXEC_FORWARD];
	r->seconds[TIME_BACKWARD] += t->by[EXEC_BACKWARD];
	r->seconds[TIME_COMM_EXPOSED] += t->by[EXEC_COMM_EXPOSED];
	r->seconds[TIME_OPTIMIZER] += t->by[EXEC_OPTIMIZER];
	r->seconds[TIME_BUBBLE] += t->by[EXEC_BUBBLE];
	r->seconds[TIME_COPY_EXPOSED] += t->by[EXEC_COPY_EXPOSED];
	r->seconds[TIME_COMM_TOTAL] += t->comm_total;
}

/* Ends the times of a step. A wait for data while the device was still at work did not lengthen the step. */
static void close_step_times(struct engine *e, struct step_result *r)
{
	double now = clock_mono_s(), sum = 0, left;

	for (int t = TIME_H2D; t < TIME_OTHER; t++)
		sum += r->seconds[t];
	r->seconds[TIME_STEP] = now - e->mark_s;
	left = fmax(0, r->seconds[TIME_STEP] - sum);
	r->seconds[TIME_DATA_WAIT] = fmin(r->seconds[TIME_DATA_WAIT], left);
	r->seconds[TIME_OTHER] = left - r->seconds[TIME_DATA_WAIT];
	e->mark_s = now;
}

static const struct program *find_batch_program(const struct engine *e, const struct loader_batch *b)
{
	return prepared_program(&e->prepared, b->micro + 1 < b->n_micro ? PROGRAM_MICRO : PROGRAM_STEP, b->count);
}

/* ---- ends ---- */

static int watch_part(struct engine *e, const struct program_run *run, const struct step_result *r, struct err *err)
{
	const struct range all = sampler_global(&e->train_schedule.train, r->in_epoch - 1);
	const struct watch_step s = { run->program, r->step, all.end - all.begin, NAN, r->loss_scale };

	return watch_micro(e->watch, &s, run->samples, err);
}

static void keep_losses(struct engine *e, const struct program_run *run, const double *losses)
{
	loss_spike_micro(e->spike, &(struct loss_spike_micro){ run->program, losses, run->step, run->position,
							       run->samples, run->micro == 0 });
}

static void adjust_training_workers(struct engine *e, struct step_result *r)
{
	struct workers *s = &e->loading[SPLIT_TRAIN];

	if (e->rank.cfg->workers < 0 && workers_batch(s, r->seconds[TIME_DATA_WAIT], r->seconds[TIME_STEP])) {
		loader_set_active(e->loader, s->n);
		r->workers_found = s->done;
	}
	r->workers = e->rank.cfg->workers < 0 ? s->n : (int)e->rank.cfg->workers;
}

static void keep_results(struct engine *e, struct step_result *r, const struct program *p,
			 const struct exec_results *of)
{
	r->loss_sum = of->sum[XENT_LOSS_SUM];
	r->own_sum = of->own[XENT_LOSS_SUM];
	r->loss = isnan(r->loss_sum) ? (double)NAN : r->loss_sum / (double)r->count; /* printed without a sign */
	r->grad_norm = p->grad_norm ? of->grad_norm : NAN;
	r->skipped = (int64_t)of->state[STEP_GUARD_STATE_SKIPPED];
	r->in_a_row = (int64_t)of->state[STEP_GUARD_STATE_ROW];
	r->stop = p->votes ? of->votes > 0 : r->stop;
	r->blank = p->votes && of->votes >= STEP_GUARD_BLANK;
	if (e->prepared.opts.optimizer.scaling && p->optimizer)
		e->queue->loss_scale = of->state[STEP_GUARD_STATE_SCALE];
}

/* Ends the oldest run; with the last run of a step, completes its result. */
static int end_oldest_run(struct engine *e, struct err *err)
{
	struct step_queue *s = e->queue;
	const struct program_run *run = &s->run[s->first];
	struct step_result *r = step_result_of(e, run->step);
	struct exec_done done;
	int rc = exec_end(e->exec, &done, err);

	if (rc)
		return rc;
	s->first = (s->first + 1) % RUNS;
	s->n--;
	add_exec_times(r, &done.times);
	r->loss_scale = s->loss_scale;
	keep_losses(e, run, done.losses);
	if (watch_due(e->watch, r->step))
		rc = watch_part(e, run, r, err);
	if (run->micro + 1 < run->n_micro)
		return rc;
	keep_results(e, r, run->program, &done.results);
	close_step_times(e, r);
	adjust_training_workers(e, r);
	s->over++;
	return rc;
}

/* Returns true if no other step may be in progress with this one: its memory is read, or it is timed. */
static bool is_alone(const struct engine *e, int64_t step)
{
	return trace_covers(e->trace, step) || watch_due(e->watch, step);
}

/* Ends runs until at most that many are in progress. */
static int end_runs(struct engine *e, int most, struct err *err)
{
	int rc = 0;

	while (!rc && e->queue->n > most)
		rc = end_oldest_run(e, err);
	return rc;
}

int step_end(struct engine *e, bool all, struct step_result *ret, struct err *err)
{
	struct step_queue *s = e->queue;
	const bool waits = all || is_alone(e, e->step) || is_alone(e, e->step + 1);
	int rc = 0;

	if (s->over == s->reported)
		rc = end_runs(e, waits ? 0 : exec_ahead(e->exec), err);
	if (rc || s->over == s->reported)
		return rc;
	*ret = *step_result_of(e, ++s->reported);
	return 1;
}

/* ---- begins ---- */

/* Returns when the loader's slot may be reused. */
static int begin_program_run(struct engine *e, const struct program *p, const struct loader_batch *b,
			     struct step_result *r, struct err *err)
{
	const struct step_page page = make_step_page(e, b, r);
	struct exec_call call = { .page = &page,
				  .inputs = b->inputs,
				  .targets = b->targets,
				  .vote = r->blank ? STEP_GUARD_BLANK : r->stop ? 1 : 0,
				  .trace = e->trace };
	int rc;

	if (e->suspects)
		call.look = nonfinite_look(e->suspects, p);
	if (e->cached)
		cached_step_keep(e->cached, b, p, &call);
	rc = exec_begin(e->exec, p, &call, err);
	return rc ? rc : exec_fed(e->exec, err);
}

/* Begins one batch of the loader. */
static int begin_micro(struct engine *e, const struct loader_batch *b, struct step_result *r, struct err *err)
{
	const struct range own = sampler_micro(&e->train_schedule.train, b->step, rank_share(&e->rank), b->micro);
	const struct program *p = find_batch_program(e, b);
	struct step_queue *s = e->queue;
	int rc = p ? begin_program_run(e, p, b, r, err)
		   : err_set(err, ERR_LIMIT, "no program was prepared for %lld samples", (long long)b->count);

	loader_release(e->loader, b);
	if (rc)
		return rc;
	s->run[(s->first + s->n++) % RUNS] =
		(struct program_run){ p, r->step, b->micro, b->n_micro, own.begin, b->count };
	if (b->micro + 1 == b->n_micro) /* step_end ends the last run */
		return 0;
	return end_runs(e, is_alone(e, r->step) ? 0 : exec_ahead(e->exec), err);
}

static struct step_result make_step_result(struct engine *e, const struct loader_batch *b)
{
	struct step_result r = { .step = e->step + 1,
				 .epoch = b->epoch + 1,
				 .in_epoch = b->step + 1,
				 .count = b->global_weight,
				 .ready = b->ready,
				 .epoch_ends = b->step + 1 == e->train_schedule.steps_per_epoch,
				 .stop = rank_context_stop(e->rank.context) != 0 || clock_mono_s() >= e->until_s,
				 .loss_scale = e->queue->loss_scale,
				 .grad_norm = NAN,
				 .sent = -rank_sent(&e->rank),
				 .sent_nodes = -rank_sent_nodes(&e->rank) };

	r.lr = lr_schedule_at(&e->train_schedule.lr, r.step);
	return r;
}

int step_begin(struct engine *e, struct err *err)
{
	struct step_result *r = step_result_of(e, e->step + 1);
	struct loader_batch b;
	int rc;

	rank_at_step(&e->rank, e->step + 1);
	trace_begin(e->trace, e->step + 1, e->mark_s);
	do {
		double start = clock_mono_s(), waited;

		rc = loader_next(e->loader, &b, err);
		if (rc <= 0)
			return rc;
		waited = end_phase(e, "data_wait", start);
		if (b.blank && e->rank.context->world == 1) {
			loader_release(e->loader, &b);
			return 0;
		}
		if (b.micro == 0)
			*r = make_step_result(e, &b);
		r->blank |= b.blank; /* the other ranks have begun the step, so this rank runs it too */
		r->seconds[TIME_DATA_WAIT] += waited;
		rc = begin_micro(e, &b, r, err);
		if (rc)
			return rc;
	} while (b.micro + 1 < b.n_micro);
	e->step++;
	e->stats_shared = false;
	r->sent += rank_sent(&e->rank);
	r->sent_nodes += rank_sent_nodes(&e->rank);
	loader_spent(e->loader, &r->load_s, &r->load_cpu_s);
	return 1;
}

int step_run(struct engine *e, struct step_result *ret, struct err *err)
{
	int rc = step_begin(e, err);

	return rc <= 0 ? rc : step_end(e, true, ret, err);
}

const struct program *step_program(const struct engine *e, int64_t in_epoch)
{
	int64_t step = in_epoch - 1, last = sampler_micros(&e->train_schedule.train, step) - 1;
	struct range r = sampler_micro(&e->train_schedule.train, step, rank_share(&e->rank), last);

	return prepared_program(&e->prepared, PROGRAM_STEP, r.end - r.begin);
}

/* ---- steps on a cached batch ---- */

enum { STEPS_LEAST = 4, STEPS_MOST = 100 };

struct fed_batch { /* arguments of a micro-batch's run */
	const struct program *program;
	struct step_page page;
};

struct cached_step {
	void *inputs, *targets; /* of the first micro-batch; the others run on the same samples, or the first of them */
	size_t inputs_bytes, targets_bytes;
	struct fed_batch first, last;
	int64_t micros; /* micro-batches of a step; 0: no step was kept */
};

struct cached_step *cached_step_new(void)
{
	return mem_zalloc(sizeof(struct cached_step));
}

void cached_step_free(struct cached_step *b)
{
	if (!b)
		return;
	free(b->inputs);
	free(b->targets);
	free(b);
}

static size_t batch_bytes(const struct program *p, const struct tensor *t)
{
	return tensor_bytes(t) * (size_t)p->schedule.slots;
}

static void copy_batch(struct cached_step *b, const struct program *p, const struct exec_call *call)
{
	b->inputs_bytes = batch_bytes(p, p->inputs);
	b->targets_bytes = batch_bytes(p, p->targets);
	b->inputs = mem_alloc(b->inputs_bytes + 1);
	b->targets = mem_alloc(b->targets_bytes + 1);
	memcpy(b->inputs, call->inputs, b->inputs_bytes);
	memcpy(b->targets, call->targets, b->targets_bytes);
}

void cached_step_keep(struct cached_step *b, const struct loader_batch *of, const struct program *p,
		      const struct exec_call *call)
{
	const struct fed_batch fed = { p, *call->page };

	if (b->micros || of->blank || call->page->step != 1)
		return;
	if (of->micro == 0) {
		b->first = fed;
		copy_batch(b, p, call);
	}
	b->last = fed;
	/* Samples of a larger last micro-batch were not copied. */
	if (of->micro + 1 == of->n_micro && batch_bytes(p, p->inputs) <= b->inputs_bytes &&
	    batch_bytes(p, p->targets) <= b->targets_bytes)
		b->micros = of->n_micro;
}

static int run_cached_step(const struct engine *e, struct err *err)
{
	const struct cached_step *b = e->cached;
	struct exec_done ignored;
	int rc = 0;

	for (int64_t i = 0; !rc && i < b->micros; i++) {
		const struct fed_batch *fed = i + 1 < b->micros ? &b->first : &b->last;

		rc = exec_run(e->exec, fed->program,
			      &(struct exec_call){ .page = &fed->page, .inputs = b->inputs, .targets = b->targets },
			      &ignored, err);
	}
	return rc;
}

/* Finds the least number of all ranks; 0 where a rank has kept no batch. */
static int agree_steps(const struct engine *e, int64_t *n, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	int64_t *all = mem_array((size_t)c->world, sizeof(*all));
	int rc;

	all[c->rank] = *n;
	rc = c->ops->all_gather(c, all, sizeof(*all), err);
	for (int r = 0; r < c->world; r++)
		*n = all[r] < *n ? all[r] : *n;
	free(all);
	return rc;
}

int cached_step_run(const struct engine *e, double *ret, struct err *err)
{
	int64_t n = e->cached->micros ? 1 : 0;
	double start;
	int rc = agree_steps(e, &n, err);

	*ret = NAN;
	if (rc || !n)
		return rc;
	start = clock_mono_s();
	rc = run_cached_step(e, err); /* warms up the caches */
	n = (int64_t)fmin(STEPS_MOST, fmax(STEPS_LEAST, CACHED_STEP_S / (clock_mono_s() - start)));
	if (!rc)
		rc = agree_steps(e, &n, err);
	start = clock_mono_s();
	for (int64_t i = 0; !rc && i < n; i++)
		rc = run_cached_step(e, err);
	if (!rc)
		*ret = (clock_mono_s() - start) / (double)n;
	return rc;
}
