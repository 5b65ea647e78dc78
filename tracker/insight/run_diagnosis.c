/* SPDX-License-Identifier: Apache-2.0 */
/* run_diagnosis.c: converts the params, steps and system statistics of a run to the input of the bottleneck tree. */
#include "tracker/insight/run_diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"

/* ---- system statistics: points, sorted when a run is diagnosed ---- */

struct system_stats {
	struct system_stats_point *points;
	size_t n, room, next; /* next: the point to overwrite when the array is full */
	int ranks;
};

/* Samples of one series and rank, ordered by time. */
struct vitals_row {
	const struct system_stats_point *points;
	size_t n;
};

static const char *const keys[SYSTEM_STATS_SERIES] = {
	[SYSTEM_STATS_CPU_PERCENT] = "system/cpu_percent",
	[SYSTEM_STATS_PROCESS] = "system/cpu_process_percent",
	[SYSTEM_STATS_WAIT] = "system/cpu_wait_percent",
	[SYSTEM_STATS_STEAL] = "system/cpu_steal_percent",
	[SYSTEM_STATS_THROTTLED] = "system/cpu_throttled_percent",
	[SYSTEM_STATS_LOOP] = "system/loop_us",
	[SYSTEM_STATS_MEMORY_WAIT] = "system/memory_wait_percent",
	[SYSTEM_STATS_FAULTS] = "system/major_faults",
};

int system_stats_series(const char *key)
{
	for (int i = 0; i < SYSTEM_STATS_SERIES; i++)
		if (!strcmp(keys[i], key))
			return i;
	return -1;
}

const char *system_stats_key(int series)
{
	return keys[series];
}

int system_stats_new(struct system_stats **ret, int ranks, struct err *err)
{
	struct system_stats *v = calloc(1, sizeof(*v));

	if (!v)
		return err_nomem(err, "samples of the machine");
	v->ranks = ranks;
	*ret = v;
	return 0;
}

void system_stats_free(struct system_stats *v)
{
	if (v)
		free(v->points);
	free(v);
}

int system_stats_add(struct system_stats *v, const struct system_stats_point *p, struct err *err)
{
	if (p->series < 0 || p->rank < 0 || p->rank >= v->ranks || !isfinite(p->value) || !isfinite(p->wall_time))
		return 0;
	if (v->n == SYSTEM_STATS_MAX) {
		v->points[v->next++ % SYSTEM_STATS_MAX] = *p;
		return 0;
	}
	return array_push(&v->points, &v->n, &v->room, *p) ? 0 : err_nomem(err, "samples of the machine");
}

static int compare_points(const void *a, const void *b)
{
	const struct system_stats_point *x = a, *y = b;

	if (x->series != y->series)
		return x->series - y->series;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	return (x->wall_time > y->wall_time) - (x->wall_time < y->wall_time);
}

static struct vitals_row find_vitals_row(const struct system_stats *v, int series, int rank)
{
	struct vitals_row r = { NULL, 0 };

	for (size_t i = 0; i < v->n; i++) {
		if (v->points[i].series != series || v->points[i].rank != rank)
			continue;
		r.points = r.n ? r.points : &v->points[i];
		r.n++;
	}
	return r;
}

/* Returns the first counted sample. A sample covers the time since the previous one, which has to be after the warm-up.
 * With too few samples all count. */
static size_t find_counted_begin(const struct vitals_row *r, int64_t from)
{
	size_t at = 0;

	while (at < r->n && r->points[at].step < from)
		at++;
	return at + 1 < r->n ? at + 1 : 0;
}

static double compute_row_mean(const struct vitals_row *r, int64_t from)
{
	double sum = 0;
	size_t begin = find_counted_begin(r, from);

	for (size_t i = begin; i < r->n; i++)
		sum += r->points[i].value;
	return r->n > begin ? sum / (double)(r->n - begin) : NAN;
}

/* The largest of the ranks' means, as a share. */
static double find_worst_mean(const struct system_stats *v, enum system_stats_series series, int64_t from)
{
	double most = NAN;

	for (int rank = 0; rank < v->ranks; rank++) {
		struct vitals_row r = find_vitals_row(v, series, rank);

		most = fmax(most, compute_row_mean(&r, from) / 100); /* fmax of NaN and a number is the number */
	}
	return most;
}

/* Growth per step of a sum that started at 0 with the run. */
static double compute_growth(const struct vitals_row *r, int64_t from)
{
	static const struct system_stats_point zero = { .step = 0 };
	size_t begin = find_counted_begin(r, from);
	const struct system_stats_point *a = begin ? &r->points[begin - 1] : &zero, *b;

	if (!r->n)
		return NAN;
	b = &r->points[r->n - 1];
	return b->step > a->step ? (b->value - a->value) / (double)(b->step - a->step) : NAN;
}

/* The share of all cores that was neither idle nor used by the ranks of the first machine. */
static double compute_taken_share(const struct system_stats *v, int64_t from, int local_world)
{
	struct vitals_row busy = find_vitals_row(v, SYSTEM_STATS_CPU_PERCENT, 0);
	double own = 0, share;

	for (int rank = 0; rank < local_world && rank < v->ranks; rank++) {
		struct vitals_row r = find_vitals_row(v, SYSTEM_STATS_PROCESS, rank);

		own += compute_row_mean(&r, from);
	}
	share = (compute_row_mean(&busy, from) - own) / 100;
	return share < 0 ? 0 : share;
}

#define HELD_SAMPLES 5 /* samples */

/* The best sustained clock: the least median of HELD_SAMPLES samples in a row. A boost of one sample, such as while
 * other cores are still idle, does not count. */
static double find_best_held(const struct vitals_row *r)
{
	const size_t width = r->n < HELD_SAMPLES ? r->n : HELD_SAMPLES;
	double least = NAN, held[HELD_SAMPLES];

	for (size_t i = 0; width && i + width <= r->n; i++) {
		for (size_t k = 0; k < width; k++)
			held[k] = r->points[i + k].value;
		least = fmin(least, median_of(held, width));
	}
	return least;
}

/* Slowdown against the best clock. Averages the lost share of each sample, as samples are equally spaced in time, not
 * in work. */
static double compute_slowdown(const struct system_stats *v, int64_t from)
{
	double most = NAN;

	for (int rank = 0; rank < v->ranks; rank++) {
		struct vitals_row r = find_vitals_row(v, SYSTEM_STATS_LOOP, rank);
		const double least = find_best_held(&r);
		size_t begin = find_counted_begin(&r, from);
		double kept = 0;

		for (size_t i = begin; i < r.n; i++)
			kept += least / r.points[i].value / (double)(r.n - begin);
		most = r.n ? fmax(most, 1 / kept) : most;
	}
	return most;
}

void system_stats_fill(struct system_stats *v, int64_t from, int local_world, struct bottleneck_run *run)
{
	struct vitals_row faults;

	if (!v->n)
		return;
	qsort(v->points, v->n, sizeof(*v->points), compare_points);
	faults = find_vitals_row(v, SYSTEM_STATS_FAULTS, 0);
	run->run_wait = find_worst_mean(v, SYSTEM_STATS_WAIT, from);
	run->steal = find_worst_mean(v, SYSTEM_STATS_STEAL, from);
	run->throttled = find_worst_mean(v, SYSTEM_STATS_THROTTLED, from);
	run->memory_wait = find_worst_mean(v, SYSTEM_STATS_MEMORY_WAIT, from);
	run->major_faults = compute_growth(&faults, from);
	run->taken = compute_taken_share(v, from, local_world);
	run->clock = compute_slowdown(v, from);
}

struct diagnosis_facts diagnosis_unknown(void)
{
	return (struct diagnosis_facts){ .workers = NAN, .threads = NAN, .batch_size = NAN, .parameters = NAN,
				     .bucket_cap_mb = NAN, .global_batch_size = NAN, .steps_per_epoch = NAN,
				     .eval_steps = NAN, .save_steps = NAN, .grad_accum_steps = NAN,
				     .cores = NAN, .nodes = NAN, .local_world = NAN, .world = 1 };
}

void diagnosis_param(struct diagnosis_facts *f, const char *key, const char *value)
{
	static const struct {
		const char *key;
		size_t offset;
	} known[] = {
		{ "workers", offsetof(struct diagnosis_facts, workers) },
		{ "threads", offsetof(struct diagnosis_facts, threads) },
		{ "batch_size", offsetof(struct diagnosis_facts, batch_size) },
		{ "parameters", offsetof(struct diagnosis_facts, parameters) },
		{ "bucket_cap_mb", offsetof(struct diagnosis_facts, bucket_cap_mb) },
		{ "global_batch_size", offsetof(struct diagnosis_facts, global_batch_size) },
		{ "steps_per_epoch", offsetof(struct diagnosis_facts, steps_per_epoch) },
		{ "eval_steps", offsetof(struct diagnosis_facts, eval_steps) },
		{ "save_steps", offsetof(struct diagnosis_facts, save_steps) },
		{ "grad_accum_steps", offsetof(struct diagnosis_facts, grad_accum_steps) },
	};
	char *end;
	double v = strtod(value, &end);

	f->workers_auto |= !strcmp(key, "workers") && !strcmp(value, "auto");
	f->recomputes_all |= !strcmp(key, "activation_checkpointing") && !strcmp(value, "full");
	if (end == value || !isfinite(v) || v < 0) /* --workers auto */
		return;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].key, key))
			*(double *)((char *)f + known[i].offset) = v;
}

/* "…, 8 cores", "705 nodes" */
void diagnosis_environment(struct diagnosis_facts *f, const char *key, const char *text)
{
	const char *comma = strrchr(text, ',');

	if (!strcmp(key, "cpu") && comma && strstr(comma, " core"))
		f->cores = strtod(comma + 1, NULL);
	else if (!strcmp(key, "program") && strstr(text, " node"))
		f->nodes = strtod(text, NULL);
}

void diagnosis_series(struct diagnosis_facts *f, const char *key)
{
	f->evaluates = f->evaluates || !strcmp(key, "val/seconds") || !strcmp(key, "epoch/eval_seconds");
}

/* Times between points alone do not identify a leaf. */
static bool has_phase_times(const struct diagnosis_input *in)
{
	for (size_t i = 0; i < in->pace->warmup + in->pace->steps; i++)
		for (int k = 0; k < STEP_TIME_other; k++)
			if (in->rows[i].phase[k] > 0)
				return true;
	return false;
}

/* Copies the configuration and the means of the counted steps (from step `from` on) into *t. */
static void fill_tree_run(struct bottleneck_run *t, const struct diagnosis_input *in, int64_t from)
{
	const struct diagnosis_facts *f = in->facts;
	double waits = steps_mean(in->steps, STEPS_WAIT, from);

	t->steps = in->rows + in->pace->warmup;
	t->n = in->pace->steps;
	t->workers = f->workers;
	t->threads = f->threads;
	t->local_world = f->local_world;
	t->cores = f->cores;
	t->nodes = f->nodes;
	t->batch_size = f->batch_size;
	t->parameters = f->parameters;
	t->bucket_cap_mb = f->bucket_cap_mb;
	t->eval_steps = f->eval_steps;
	t->save_steps = f->save_steps;
	t->grad_accum_steps = f->grad_accum_steps;
	t->workers_auto = f->workers_auto;
	t->recomputes_all = f->recomputes_all;
	t->comm_total = steps_mean(in->steps, STEPS_COMM_TOTAL, from);
	t->load = steps_mean(in->steps, STEPS_LOAD, from);
	t->load_cpu = steps_mean(in->steps, STEPS_LOAD_CPU, from);
	t->ready = steps_mean(in->steps, STEPS_READY, from);
	if (f->evaluates)
		t->evaluation = in->pace->phase[STEP_TIME_between] * in->pace->samples / (double)in->pace->steps;
	t->checkpoint = steps_mean(in->steps, STEPS_COPY, from);
	if (!isnan(waits))
		t->checkpoint += waits;
	t->cached = steps_most(in->steps, STEPS_CACHED);
	t->saving_cpu = steps_mean(in->steps, STEPS_SAVE_CPU, from);
	if (in->vitals)
		system_stats_fill(in->vitals, from, f->local_world > 0 ? (int)f->local_world : 1, t);
}

int diagnosis_run(const struct diagnosis_input *in, struct bottleneck_report *ret, struct err *err)
{
	struct bottleneck_run t = bottleneck_unknown();
	struct bottleneck_rank *ranks;
	int64_t from;
	int rc;

	if (!in->pace->steps || !has_phase_times(in))
		return err_set(err, ERR_USAGE, "the run has no phase/… series to diagnose");
	ranks = calloc((size_t)in->facts->world + 1, sizeof(*ranks));
	if (!ranks)
		return err_set(err, ERR_NOMEM, "out of memory: %d ranks", in->facts->world);
	from = in->rows[in->pace->warmup].step;
	fill_tree_run(&t, in, from);
	t.ranks = ranks;
	for (int rank = 0; rank < in->facts->world; rank++) {
		struct bottleneck_rank *one = &ranks[t.n_ranks];

		one->rank = rank;
		t.n_ranks += steps_rank(in->steps, rank, from, &one->seconds, one->phase);
	}
	rc = bottleneck_judge(&t, ret, err);
	free(ranks);
	return rc;
}
