/* run_diagnosis.c: converts the params, steps and system statistics of a run to the input of the bottleneck tree. */
#include "tracker/insight/run_diagnosis.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct diagnosis_facts diagnosis_unknown(void)
{
	return (struct diagnosis_facts){ .workers = NAN, .threads = NAN, .batch_size = NAN, .parameters = NAN,
				     .bucket_cap_mb = NAN, .global_batch_size = NAN, .steps_per_epoch = NAN,
				     .eval_steps = NAN, .save_steps = NAN,
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
	};
	char *end;
	double v = strtod(value, &end);

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
	t->comm_total = steps_mean(in->steps, STEPS_COMM_TOTAL, from);
	t->load = steps_mean(in->steps, STEPS_LOAD, from);
	t->load_cpu = steps_mean(in->steps, STEPS_LOAD_CPU, from);
	t->ready = steps_mean(in->steps, STEPS_READY, from);
	if (f->evaluates)
		t->evaluation = in->pace->phase[STEP_TIME_between] * in->pace->samples / (double)in->pace->steps;
	t->checkpoint = steps_mean(in->steps, STEPS_COPY, from);
	if (!isnan(waits))
		t->checkpoint += waits;
	t->bare = steps_most(in->steps, STEPS_BARE);
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
