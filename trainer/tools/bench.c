/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c: `dptrain bench`: times --steps whole training steps on synthetic data. */
#include "trainer/tools/subcommands.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/mem/mem.h"
#include "trainer/launch/machine.h"
#include "trainer/program/memory.h"
#include "trainer/run/nonfinite.h"
#include "trainer/tools/child.h"
#include "trainer/tools/step_profile.h"

#define OPS_SHOWN 10
#define PROFILED_STEPS 3 /* steps profiled on a device */

struct step_bench {
	struct engine *e;
	struct step_result *steps;
	int64_t n;
	int64_t peak_bytes, planned_bytes; /* memory of the rank that uses most */
	int64_t used_bytes;		   /* likewise, as memory_planned counts */
	int64_t early_bytes, device_bytes; /* likewise, of its device: after the second step, at the end; 0: hosts */
	double flops;			   /* per step, all ranks: matrix products and convolutions */
	double peak_flops;		   /* FLOP/s, all ranks: of a large matrix product alone */
	struct profile profile;		   /* result of --profile */
	bool stopped;			   /* stopped by a signal */
	struct bench_ops ops;		   /* ops of this rank */
	int64_t op_steps;		   /* steps in which ops were timed */
	double op_step_seconds;		   /* mean of them */
	double ready_s;			   /* from the start of bench to its first step */
	double sent, sent_nodes;	   /* bytes per step of the rank that sends most: total, to other machines */
};

struct rank_figures { /* results of one rank */
	double sent, sent_nodes;
	int64_t peak_bytes, planned_bytes, used_bytes, device_bytes;
	double flops, peak_flops;
};

static double median_phase_seconds(const struct step_bench *b, enum step_phase t)
{
	double *v = mem_alloc((size_t)(b->n ? b->n : 1) * sizeof(*v)), m = NAN;

	if (b->n) {
		for (int64_t i = 0; i < b->n; i++)
			v[i] = b->steps[i].seconds[t];
		m = median_of(v, (size_t)b->n);
	}
	free(v);
	return m;
}

static double median_sample_rate(const struct step_bench *b)
{
	return b->n ? (double)b->steps[0].count / median_phase_seconds(b, TIME_STEP) : NAN;
}

static bool runs_on_device(const struct step_bench *b)
{
	return b->e->rank.backend->streams != NULL;
}

/* The first step on a host includes page faults; it counts for the ops only if it is the only step. */
static void profile_host(struct step_bench *b)
{
	if (!runs_on_device(b) && b->n <= 1)
		exec_profile(b->e->exec);
}

static int keep_step(struct step_bench *b, const struct step_result *r, struct err *err)
{
	b->steps[b->n++] = *r;
	b->stopped = r->stop;
	if (b->n == 2)
		b->early_bytes = memory_on_device(&b->e->rank);
	return nonfinite_search_check(b->e, r, err);
}

/* Keeps finished steps; all: waits until no step is in flight. */
static int collect_ended_steps(struct step_bench *b, bool all, struct err *err)
{
	struct step_result r;
	int rc;

	while ((rc = step_end(b->e, all, &r, err)) == 1) {
		rc = keep_step(b, &r, err);
		if (rc)
			return rc;
	}
	return rc;
}

/* Runs the steps as training does: a device computes one while the next is being submitted. */
static int run_bench_steps(struct step_bench *b, struct err *err)
{
	const int64_t wanted = b->e->rank.cfg->steps;
	int begun = 1, rc = engine_begin(b->e, err);

	b->steps = mem_array((size_t)wanted, sizeof(*b->steps));
	for (int64_t n = 0; !rc && begun && !b->stopped && n < wanted; n++) {
		profile_host(b);
		begun = step_begin(b->e, err);
		rc = begun < 0 ? begun : collect_ended_steps(b, n + 1 == wanted, err);
	}
	return rc ? rc : collect_ended_steps(b, true, err);
}

/* Times nodes of a device in additional steps, which run node by node. */
static int profile_device(struct step_bench *b, struct err *err)
{
	struct step_result r;
	int rc = 0;

	exec_profile(b->e->exec);
	for (b->op_steps = 0; !rc && b->op_steps < PROFILED_STEPS; b->op_steps++) {
		rc = step_run(b->e, &r, err);
		if (rc <= 0)
			break;
		rc = 0;
		b->op_step_seconds += r.seconds[TIME_STEP] / PROFILED_STEPS;
	}
	return rc;
}

/* Averages all steps of a host but the first, if there are more. */
static void average_host_steps(struct step_bench *b)
{
	const int64_t first = b->n > 1 ? 1 : 0;

	b->op_steps = b->n > 1 ? b->n - 1 : 1;
	for (int64_t i = first; i < b->n; i++)
		b->op_step_seconds += b->steps[i].seconds[TIME_STEP] / (double)(b->n - first);
}

static int collect_op_times(struct step_bench *b, struct err *err)
{
	int rc = 0;

	if (!runs_on_device(b))
		average_host_steps(b);
	else if (!b->stopped && b->n)
		rc = profile_device(b, err);
	bench_ops_collect(&b->ops, b->e, b->op_steps ? b->op_steps : 1);
	return rc;
}

static int profile_nodes(struct step_bench *b, struct err *err)
{
	return b->e->rank.cfg->profile == CONFIG_PROFILE_NONE ? 0 : profile_make(&b->profile, b->e, b->op_steps, err);
}

/* Gathers the figures of all ranks: sums, and those of the rank that needs most. */
static int gather_shares(struct step_bench *b, struct err *err)
{
	struct comm *c = rank_comm(&b->e->rank);
	struct rank_figures *all = mem_array((size_t)c->world, sizeof(*all));
	int rc;

	all[c->rank].peak_bytes = machine_peak_bytes();
	all[c->rank].flops = b->ops.flops;
	for (int64_t i = 0; i < b->n; i++) {
		all[c->rank].sent += (double)b->steps[i].sent / (double)b->n;
		all[c->rank].sent_nodes += (double)b->steps[i].sent_nodes / (double)b->n;
	}
	all[c->rank].planned_bytes = memory_planned(&b->e->prepared.plan);
	all[c->rank].used_bytes = memory_used(b->e->resident_before);
	all[c->rank].device_bytes = memory_on_device(&b->e->rank);
	rc = c->ops->barrier(c, err); /* all ranks measure at once, as they compute */
	if (!rc)
		rc = bench_matmul(&all[c->rank].peak_flops, b->e, err);
	if (!rc)
		rc = c->ops->all_gather(c, all, sizeof(*all), err);
	for (int r = 0; !rc && r < c->world; r++) {
		b->peak_bytes = all[r].peak_bytes > b->peak_bytes ? all[r].peak_bytes : b->peak_bytes;
		b->planned_bytes = all[r].planned_bytes > b->planned_bytes ? all[r].planned_bytes : b->planned_bytes;
		b->used_bytes = all[r].used_bytes > b->used_bytes ? all[r].used_bytes : b->used_bytes;
		b->device_bytes = all[r].device_bytes > b->device_bytes ? all[r].device_bytes : b->device_bytes;
		b->flops += all[r].flops;
		b->sent = fmax(b->sent, all[r].sent);
		b->sent_nodes = fmax(b->sent_nodes, all[r].sent_nodes);
		b->peak_flops += all[r].peak_flops;
	}
	free(all);
	return rc;
}

/* Returns the share of the step that is neither a matrix product nor a convolution. */
static double other_share(const struct step_bench *b)
{
	return 1 - b->ops.product_seconds / b->op_step_seconds;
}

static json_t *json_ops(const struct step_bench *b)
{
	json_t *list = json_array();

	for (int i = 0; i < b->ops.n; i++) {
		const struct bench_op *o = &b->ops.op[i];
		json_t *j = json_object();

		json_object_set_new(j, "op", json_string(o->name));
		json_object_set_new(j, "nodes", json_integer(o->nodes));
		json_object_set_new(j, "seconds", real_or_null(o->seconds));
		json_object_set_new(j, "share", real_or_null(o->seconds / b->op_step_seconds));
		json_object_set_new(j, "gflops", real_or_null(1e-9 * o->flops / o->seconds));
		json_array_append_new(list, j);
	}
	return list;
}

/* Converts the rows of a profile to JSON. */
static json_t *json_profile(const struct profile *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n; i++) {
		const struct profile_row *r = &p->rows[i];
		json_t *j = json_object();

		json_object_set_new(j, "name", json_string(r->name));
		json_object_set_new(j, "op", json_string(r->op));
		json_object_set_new(j, "dtype", json_string(r->dtype));
		json_object_set_new(j, "impl", json_string(r->impl));
		json_object_set_new(j, "calls", json_integer(r->calls));
		json_object_set_new(j, "seconds", real_or_null(r->seconds));
		json_object_set_new(j, "flops", real_or_null(r->flops));
		json_object_set_new(j, "work_flops", real_or_null(r->work));
		json_object_set_new(j, "bytes", real_or_null(r->bytes));
		json_object_set_new(j, "gflops", real_or_null(1e-9 * r->flops / r->seconds));
		json_object_set_new(j, "gbs", real_or_null(1e-9 * r->bytes / r->seconds));
		json_object_set_new(j, "roof_share", real_or_null(r->roof_s / r->seconds));
		json_object_set_new(j, "bound", json_string(r->by_flops ? "compute" : "memory"));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_roof(const struct roof *r)
{
	json_t *o = json_object(), *list = json_array();

	for (int i = 0; i < ROOF_SIZES; i++)
		json_array_append_new(list, json_pack("{s:f, s:f}", "bytes", r->bytes[i], "gbs", 1e-9 * r->rate[i]));
	json_object_set_new(o, "gflops", real_or_null(1e-9 * r->flops));
	json_object_set_new(o, "bandwidth", list);
	return o;
}

static json_t *json_curve(const struct profile *p)
{
	json_t *list = json_array();

	for (int i = 0; i < p->n_curve; i++)
		json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:i, s:s}", "op", p->curve[i].op, "bytes",
						      p->curve[i].bytes, "seconds", p->curve[i].seconds, "ranks",
						      p->curve[i].ranks, "transport", p->curve[i].transport));
	return list;
}

/* "data_wait" */
static const char *phase_name_of(enum step_phase t)
{
	return series_get(step_phase_series(t))->key + strlen("phase/");
}

/* Returns the seconds of each step by phase. */
static json_t *json_all_phases(const struct step_bench *b)
{
	json_t *all = json_object();

	for (int t = TIME_DATA_WAIT; t < TIME_COUNT; t++) {
		json_t *list = json_array();

		for (int64_t i = 0; i < b->n; i++)
			json_array_append_new(list, real_or_null(b->steps[i].seconds[t]));
		json_object_set_new(all, phase_name_of((enum step_phase)t), list);
	}
	return all;
}

/* Prints all results as one JSON object. */
static void print_bench_json(const struct step_bench *b)
{
	json_t *o = json_object(), *phases = json_object(), *losses = json_array(), *seconds = json_array();
	const struct run_config *cfg = b->e->rank.cfg;

	for (int t = TIME_DATA_WAIT; t < TIME_COUNT; t++)
		json_object_set_new(phases, phase_name_of((enum step_phase)t),
				    real_or_null(median_phase_seconds(b, (enum step_phase)t)));
	for (int64_t i = 0; i < b->n; i++) {
		json_array_append_new(losses, real_or_null(b->steps[i].loss));
		json_array_append_new(seconds, real_or_null(b->steps[i].seconds[TIME_STEP]));
	}
	json_object_set_new(o, "model", json_string(cfg->model));
	json_object_set_new(o, "backend", json_string(b->e->rank.backend->name));
	json_object_set_new(o, "ranks", json_integer(b->e->rank.context->world));
	json_object_set_new(o, "threads", json_integer(rank_threads(&b->e->rank)));
	json_object_set_new(o, "global_batch_size", json_integer(cfg->global_batch_size));
	json_object_set_new(o, "samples_per_s", real_or_null(median_sample_rate(b)));
	json_object_set_new(o, "step_seconds", real_or_null(median_phase_seconds(b, TIME_STEP)));
	json_object_set_new(o, "all_step_seconds", seconds);
	json_object_set_new(o, "ready_seconds", real_or_null(b->ready_s));
	json_object_set_new(o, "all_phases", json_all_phases(b));
	json_object_set_new(o, "peak_bytes", json_integer(b->peak_bytes));
	json_object_set_new(o, "planned_bytes", json_integer(b->planned_bytes));
	json_object_set_new(o, "used_bytes", json_integer(b->used_bytes));
	if (b->e->rank.backend->room) {
		json_object_set_new(o, "device_bytes", json_integer(b->device_bytes));
		json_object_set_new(o, "device_bytes_step_2", json_integer(b->early_bytes));
	}
	json_object_set_new(o, "step_flops", real_or_null(b->flops));
	json_object_set_new(o, "gflops", real_or_null(1e-9 * b->flops / median_phase_seconds(b, TIME_STEP)));
	json_object_set_new(o, "matmul_gflops", real_or_null(1e-9 * b->peak_flops));
	json_object_set_new(o, "other_share", real_or_null(other_share(b)));
	json_object_set_new(o, "phases", phases);
	json_object_set_new(o, "comm",
			    json_pack("{s:s, s:f, s:f}", "transport", rank_transport(&b->e->rank), "bytes", b->sent,
				      "bytes_nodes", b->sent_nodes));
	json_object_set_new(o, "ops", json_ops(b));
	if (b->profile.n) {
		json_object_set_new(o, "profile", json_profile(&b->profile));
		json_object_set_new(o, "roof", json_roof(&b->profile.roof));
		json_object_set_new(o, "collectives", json_curve(&b->profile));
	}
	json_object_set_new(o, "loss", losses);
	json_print(o, JSON_PRINT_PAGE);
}

static void print_ops(const struct step_bench *b)
{
	printf("  %-18s %10s    %6s   %7s %9s\n", "op", "", "", "nodes", "GFLOP/s");
	for (int i = 0; i < b->ops.n && i < OPS_SHOWN; i++) {
		const struct bench_op *o = &b->ops.op[i];

		printf("  %-18s %10.3f ms %6.1f %% %7d", o->name, 1e3 * o->seconds,
		       100 * o->seconds / b->op_step_seconds, o->nodes);
		if (o->flops > 0)
			printf(" %9.1f", 1e-9 * o->flops / o->seconds);
		putchar('\n');
	}
}

static void print_profile(const struct step_bench *b)
{
	const struct profile *p = &b->profile;

	printf("  a product alone %.1f GFLOP/s; memory", 1e-9 * p->roof.flops);
	for (int i = 0; i < ROOF_SIZES; i++)
		printf(" %.0f GB/s at %.3g MiB%s", 1e-9 * p->roof.rate[i], p->roof.bytes[i] / 1048576,
		       i + 1 < ROOF_SIZES ? "," : "\n");
	printf("  %-36s %6s %10s %7s %9s %7s %6s  %s\n", "", "calls", "ms", "of step", "GFLOP/s", "GB/s", "roof",
	       "bound by, implementation");
	for (size_t i = 0; i < p->n; i++) {
		const struct profile_row *r = &p->rows[i];

		printf("  %-36s %6d %10.3f %5.1f %% %9.1f %7.1f %4.0f %%  %s %s\n", r->name, r->calls, 1e3 * r->seconds,
		       100 * r->seconds / b->op_step_seconds, 1e-9 * r->flops / r->seconds,
		       1e-9 * r->bytes / r->seconds, 100 * r->roof_s / r->seconds, r->by_flops ? "compute" : "memory",
		       r->impl);
	}
}

/* Prints all results as a table. */
static void print_bench_table(const struct step_bench *b)
{
	const struct run_config *cfg = b->e->rank.cfg;
	double step = median_phase_seconds(b, TIME_STEP);

	printf("%s, global batch %lld, %s, backend %s, %d rank(s) x %d thread(s): %lld steps\n", cfg->model,
	       (long long)cfg->global_batch_size, dtype_name(b->e->prepared.opts.precision.low),
	       b->e->rank.backend->name, b->e->rank.context->world, rank_threads(&b->e->rank), (long long)b->n);
	printf("%12.1f %s/s (median step %.4f s, first %.4f s)\n", median_sample_rate(b),
	       sample_kind_name(b->e->workload.data->kind), step, b->n ? b->steps[0].seconds[TIME_STEP] : NAN);
	printf("%12.1f GFLOP/s in matrix products and convolutions; a product alone %.1f (%.1f %%)\n",
	       1e-9 * b->flops / step, 1e-9 * b->peak_flops, 100 * b->flops / step / b->peak_flops);
	printf("%12.1f %% of the step is neither\n", 100 * other_share(b));
	for (int t = TIME_DATA_WAIT; t < TIME_COUNT; t++)
		printf("  %-18s %10.3f ms %6.1f %%%s\n", phase_name_of((enum step_phase)t),
		       1e3 * median_phase_seconds(b, (enum step_phase)t),
		       100 * median_phase_seconds(b, (enum step_phase)t) / step,
		       t == TIME_COMM_TOTAL ? "  (not a part of the sum)" : "");
	if (b->profile.n)
		print_profile(b);
	else
		print_ops(b);
	printf("%12.1f MiB peak resident, %.1f MiB planned (largest rank)\n", (double)b->peak_bytes / 1048576,
	       (double)b->planned_bytes / 1048576);
	printf("%12.6f loss of the first step, %.6f of the last\n", b->n ? b->steps[0].loss : NAN,
	       b->n ? b->steps[b->n - 1].loss : NAN);
}

int bench_main(const struct job *job, struct rank_context *context)
{
	struct err err = ERR_INIT;
	struct step_bench b = { .n = 0 };
	const double begin = clock_mono_s();
	int rc = engine_open(&b.e, job, context, &err);
	int code = 0;

	b.ready_s = clock_mono_s() - begin;
	if (!rc)
		rc = run_bench_steps(&b, &err);
	if (!rc)
		rc = collect_op_times(&b, &err);
	if (!rc)
		rc = gather_shares(&b, &err);
	if (!rc) /* after the peak of memory was read, which must not include its probes */
		rc = profile_nodes(&b, &err);
	if (!rc && engine_is_root(b.e)) {
		if (job->cfg->json)
			print_bench_json(&b);
		else
			print_bench_table(&b);
	}
	if (rc)
		code = rank_context_fail(context, &err);
	else if (b.n < job->cfg->steps)
		code = 130;
	profile_done(&b.profile);
	free(b.steps);
	engine_close(b.e);
	return code;
}
