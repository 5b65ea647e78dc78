/* step.c: one optimiser step of one rank, and where its time went. */
#include "trainer/run/step.h"

#include <math.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "trainer/ops/guard/guard.h"
#include "trainer/ops/xent/xent.h"
#include "trainer/run/nonfinite.h"
#include "trainer/run/spike.h"
#include "trainer/run/watch.h"

enum series_id step_time_series(enum step_time t)
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

bool step_time_known(const struct engine *e, enum step_time t)
{
	const struct program_opts *o = &e->prepared.opts;

	if (t == TIME_BUBBLE)
		return o->sharing.stages > 1;
	return t != TIME_COPY_EXPOSED || o->offload.activations || o->offload.params || o->offload.optimizer;
}

int step_clear_loss(const struct engine *e, const struct program *p, struct err *err)
{
	const double none[XENT_RESULTS] = { 0 };

	return p->result->kind == TENSOR_INPUT ? prepared_put(&e->prepared, p->result, none, sizeof(none), err) : 0;
}

/* Samples from the one of that number on, into a slot of the program. */
static int put_samples(struct engine *e, const struct program *p, const struct loader_batch *b, int slot,
		       struct err *err)
{
	const struct prepared *all = &e->prepared;
	const size_t inputs = tensor_bytes(p->inputs), targets = tensor_bytes(p->targets);
	int rc = all->opts.backend->copy(all->opts.module, prepared_slot(all, p->inputs, slot),
					 (const char *)b->inputs + (size_t)slot * inputs, inputs, err);

	return rc ? rc : all->opts.backend->copy(all->opts.module, prepared_slot(all, p->targets, slot),
						 (const char *)b->targets + (size_t)slot * targets, targets, err);
}

/* What the program reads: vote, and the batch unless it is fed. */
static int put_inputs(struct engine *e, const struct program *p, const struct loader_batch *b, bool stop,
		      struct err *err)
{
	const double vote = stop ? 1 : 0;
	int rc = 0;

	for (int slot = 0; !rc && !p->schedule.fed && slot < p->schedule.slots; slot++)
		rc = put_samples(e, p, b, slot, err);
	if (!rc && p->vote)
		rc = prepared_put(&e->prepared, p->vote, &vote, sizeof(vote), err);
	return rc ? rc : step_clear_loss(e, p, err);
}

static int get_results(struct engine *e, const struct program *p, struct step_result *r, struct err *err)
{
	double sums[XENT_RESULTS], votes = r->stop ? 1 : 0, state[GUARD_STATE_VALUES] = { 0 };
	int rc = prepared_get(&e->prepared, p->result_sum, sums, sizeof(sums), err);

	if (!rc && p->grad_norm)
		rc = prepared_get(&e->prepared, p->grad_norm, &r->grad_norm, sizeof(double), err);
	if (!rc && p->optimizer)
		rc = prepared_get(&e->prepared, p->optimizer, state, sizeof(state), err);
	if (!rc && p->votes)
		rc = prepared_get(&e->prepared, p->votes, &votes, sizeof(votes), err);
	if (rc)
		return rc;
	r->loss_sum = sums[XENT_LOSS_SUM];
	r->loss = sums[XENT_LOSS_SUM] / (double)r->count;
	r->skipped = (int64_t)state[GUARD_STATE_SKIPPED];
	r->in_a_row = (int64_t)state[GUARD_STATE_ROW];
	r->stop = votes > 0;
	return 0;
}

/* What the losses' gradients are multiplied by in the next step. */
static int next_scale(struct engine *e, const struct program *p, double *ret, struct err *err)
{
	double state[GUARD_STATE_VALUES];
	int rc;

	*ret = 1;
	if (!e->prepared.opts.optimizer.scaling || !p || !p->optimizer)
		return 0;
	rc = prepared_get(&e->prepared, p->optimizer, state, sizeof(state), err);
	if (!rc)
		*ret = state[GUARD_STATE_SCALE] > 0 ? state[GUARD_STATE_SCALE] : GUARD_SCALE_START;
	return rc;
}

static struct step_page page_for(const struct engine *e, const struct loader_batch *b, const struct step_result *r)
{
	struct range own = sampler_micro(&e->course.train, b->step, rank_share(&e->rank), b->micro);

	return (struct step_page){ .step = e->step + 1,
				   .epoch = b->epoch + 1,
				   .first_sample = own.begin - sampler_global(&e->course.train, b->step).begin,
				   .micro = sampler_leaf(&e->course.train, b->step,
							 rank_share(&e->rank), b->micro),
				   .leaves = sampler_leaves(&e->course.train, b->step,
							    rank_share(&e->rank)),
				   .seed = (uint64_t)e->rank.cfg->seed,
				   .lr = r->lr,
				   .inv_count = 1.0 / (double)b->global_weight,
				   .loss_scale = r->loss_scale,
				   .watch = watch_due(e->watch, r->step) };
}

/* Seconds of this thread since start_s, which belong to a phase. */
static double spent(struct engine *e, const char *phase, double start_s)
{
	double now = clock_mono_s();

	if (trace_on(e->trace))
		trace_add(e->trace, &(struct trace_span){ TRACE_STEP_ROW, 0, phase, phase, -1, start_s, now });
	return now - start_s;
}

static void account(struct step_result *r, const struct exec_times *t)
{
	r->seconds[TIME_FORWARD] += t->by[EXEC_FORWARD];
	r->seconds[TIME_BACKWARD] += t->by[EXEC_BACKWARD];
	r->seconds[TIME_COMM_EXPOSED] += t->by[EXEC_COMM_EXPOSED];
	r->seconds[TIME_OPTIMIZER] += t->by[EXEC_OPTIMIZER];
	r->seconds[TIME_BUBBLE] += t->by[EXEC_BUBBLE];
	r->seconds[TIME_COPY_EXPOSED] += t->by[EXEC_COPY_EXPOSED];
	r->seconds[TIME_COMM_TOTAL] += t->comm_total;
}

static void close_account(struct engine *e, struct step_result *r)
{
	double now = clock_mono_s(), sum = 0;

	for (int t = TIME_DATA_WAIT; t < TIME_OTHER; t++)
		sum += r->seconds[t];
	r->seconds[TIME_STEP] = now - e->mark_s;
	r->seconds[TIME_OTHER] = fmax(0, r->seconds[TIME_STEP] - sum);
	e->mark_s = now;
}

static const struct program *program_for(const struct engine *e, const struct loader_batch *b)
{
	return prepared_program(&e->prepared, b->micro + 1 < b->n_micro ? PROGRAM_MICRO : PROGRAM_STEP, b->count);
}

struct feeding { /* of one program's micro-batches from one batch of the loader */
	struct engine *e;
	const struct program *p;
	const struct loader_batch *b;
};

static int feed(void *user, int micro, struct err *err)
{
	const struct feeding *f = user;

	return put_samples(f->e, f->p, f->b, micro, err);
}

/* The loader's slot is given back as soon as its contents are copied. */
static int execute(struct engine *e, const struct program *p, const struct loader_batch *b, struct step_result *r,
		   struct err *err)
{
	const struct step_page page = page_for(e, b, r);
	struct feeding f = { e, p, b };
	const struct exec_feed feeder = { feed, &f };
	struct exec_look look = { NULL, NULL };
	struct exec_times times;
	double start = clock_mono_s();
	int rc = put_inputs(e, p, b, r->stop, err);

	if (!p->schedule.fed)
		loader_release(e->loader, b);
	r->seconds[TIME_H2D] += spent(e, "h2d", start);
	start = clock_mono_s();
	if (!rc && b->micro == 0 && hooks_slow_step(&e->hooks) > 0)
		r->seconds[TIME_FORWARD] += spent(e, "forward", start);
	if (e->suspects)
		look = nonfinite_look(e->suspects, p);
	if (!rc)
		rc = exec_run(e->exec, p, &(struct exec_call){ &page, &feeder, e->trace, look }, &times, err);
	if (p->schedule.fed)
		loader_release(e->loader, b);
	if (!rc)
		account(r, &times);
	return rc;
}

static int watch_part(struct engine *e, const struct program *p, const struct loader_batch *b,
		      const struct step_result *r, struct err *err)
{
	const struct range all = sampler_global(&e->course.train, b->step);
	const struct watch_step s = { p, r->step, all.end - all.begin, NAN, r->loss_scale };

	return watch_micro(e->watch, &s, b->count, err);
}

static int keep_losses(struct engine *e, const struct program *p, const struct loader_batch *b, struct err *err)
{
	const struct range own = sampler_micro(&e->course.train, b->step, rank_share(&e->rank), b->micro);
	const struct spike_micro m = { p, own.begin, b->count, b->micro == 0 };

	return spike_micro(e->spike, &e->prepared, &m, err);
}

/* One batch of the loader. */
static int compute(struct engine *e, const struct loader_batch *b, struct step_result *r, struct err *err)
{
	const struct program *p = program_for(e, b);
	int rc;

	if (!p) {
		loader_release(e->loader, b);
		return err_set(err, ERR_LIMIT, "no program was prepared for %lld samples", (long long)b->count);
	}
	rc = next_scale(e, step_program(e, r->in_epoch), &r->loss_scale, err);
	if (rc) {
		loader_release(e->loader, b);
		return rc;
	}
	rc = execute(e, p, b, r, err);
	if (!rc)
		rc = keep_losses(e, p, b, err);
	if (!rc && watch_due(e->watch, r->step))
		rc = watch_part(e, p, b, r, err);
	return !rc && p->kind == PROGRAM_STEP ? get_results(e, p, r, err) : rc;
}

static void begin_step(struct engine *e, const struct loader_batch *b, struct step_result *r)
{
	r->step = e->step + 1;
	r->epoch = b->epoch + 1;
	r->in_epoch = b->step + 1;
	r->count = b->global_weight;
	r->ready = b->ready;
	r->lr = lr_schedule_at(&e->course.lr, r->step);
	r->epoch_ends = b->step + 1 == e->course.steps_per_epoch;
	r->stop = seat_stop(e->rank.seat) != 0 || clock_mono_s() >= e->until_s;
}

static void adjust_loading(struct engine *e, struct step_result *r)
{
	struct workers *s = &e->loading[SPLIT_TRAIN];

	if (e->rank.cfg->workers < 0 && workers_batch(s, r->seconds[TIME_DATA_WAIT], r->seconds[TIME_STEP])) {
		loader_set_active(e->loader, s->n);
		r->workers_found = s->done;
	}
	r->workers = e->rank.cfg->workers < 0 ? s->n : (int)e->rank.cfg->workers;
}

int step_run(struct engine *e, struct step_result *ret, struct err *err)
{
	struct step_result r = { .grad_norm = NAN, .sent = -rank_sent(&e->rank),
				 .sent_nodes = -rank_sent_nodes(&e->rank) };
	struct loader_batch b;
	int rc;

	rank_at_step(&e->rank, e->step + 1);
	trace_begin(e->trace, e->step + 1, e->mark_s);
	do {
		double start = clock_mono_s();

		rc = loader_next(e->loader, &b, err);
		if (rc <= 0)
			return rc;
		r.seconds[TIME_DATA_WAIT] += spent(e, "data_wait", start);
		if (b.micro == 0)
			begin_step(e, &b, &r);
		rc = compute(e, &b, &r, err);
		if (rc)
			return rc;
	} while (b.micro + 1 < b.n_micro);
	e->step++;
	e->stats_shared = false;
	r.sent += rank_sent(&e->rank);
	r.sent_nodes += rank_sent_nodes(&e->rank);
	loader_spent(e->loader, &r.load_s, &r.load_cpu_s);
	close_account(e, &r);
	adjust_loading(e, &r);
	*ret = r;
	return 1;
}

const struct program *step_program(const struct engine *e, int64_t in_epoch)
{
	int64_t step = in_epoch - 1, last = sampler_micros(&e->course.train, step) - 1;
	struct range r = sampler_micro(&e->course.train, step, rank_share(&e->rank), last);

	return prepared_program(&e->prepared, PROGRAM_STEP, r.end - r.begin);
}
