/* SPDX-License-Identifier: Apache-2.0 */
/* step_profile.c: sums nodes into rows, and by op. */
#include "trainer/tools/step_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"
#include "trainer/tools/costing.h"

struct profile_builder {
	struct profile *p;
	const struct engine *e;
	int64_t steps;
	size_t room;
};

static void profile_row_name(const struct node *n, int by, char *ret, size_t size)
{
	if (by == CONFIG_PROFILE_NODE)
		snprintf(ret, size, "%s", n->name);
	else if (by == CONFIG_PROFILE_OP)
		snprintf(ret, size, "%s", n->op->name);
	else if (n->block)
		snprintf(ret, size, "block %d %s", n->block, phase_name(n->phase));
	else
		snprintf(ret, size, "no block, %s", phase_name(n->phase));
}

/* Finds or adds the row of that name; NULL: out of memory. */
static struct profile_row *find_profile_row(struct profile_builder *a, const char *name)
{
	struct profile *p = a->p;

	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->rows[i].name, name))
			return &p->rows[i];
	if (!array_reserve(&p->rows, &a->room, p->n + 1))
		return NULL;
	p->rows[p->n] = (struct profile_row){ .calls = 0 };
	snprintf(p->rows[p->n].name, sizeof(p->rows[0].name), "%s", name);
	return &p->rows[p->n++];
}

static const char *kernel_impl(const struct profile_builder *a, const struct program *p, const struct node *n)
{
	const struct kernel *k = program_kernel(&a->e->prepared.opts, n);
	const char *impl = k->impl ? k->impl(p->state[n->id]) : NULL;

	return impl ? impl : "";
}

/* Returns the multiplications of an implementation divided by those of the plain formula. */
static double made_flop_share(const char *impl)
{
	static const struct {
		const char *word;
		double share;
	} algorithms[] = { { "winograd_4x3:avx512 in f32",
			     2 / 4.0 },			/* a product of f32 takes as long as two of bf16 */
			   { "winograd_4x3", 1 / 4.0 }, /* F(4x4, 3x3): 36 products for 16 sums of 9 */
			   { "wino_4x3", 1 / 4.0 },
			   { "wino_2x3", 4 / 9.0 } };

	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
		if (strstr(impl, algorithms[i].word))
			return algorithms[i].share;
	return 1;
}

/* Adds a node with its calls and seconds in a step. */
static int add_profiled_node(struct profile_builder *a, const struct program *p, const struct node *n, int64_t calls,
			     double seconds)
{
	const struct costing_node w = costing_node(n);
	const char *impl = kernel_impl(a, p, n);
	const double work = w.flops * made_flop_share(impl), bytes = op_touched(n);
	double work_s = work / a->p->roof.flops, bytes_s = bytes / roof_rate(&a->p->roof, bytes);
	struct profile_row *r;
	char name[80];

	profile_row_name(n, a->e->rank.cfg->profile, name, sizeof(name));
	r = find_profile_row(a, name);
	if (!r)
		return ERR_NOMEM;
	r->op = n->op->name;
	r->dtype = w.dtype;
	r->impl = !r->calls || !strcmp(r->impl, impl) ? impl : "";
	r->calls += (int)calls;
	r->seconds += seconds;
	r->flops += op_counted(n) * (double)calls;
	r->work += work * (double)calls;
	r->bytes += bytes * (double)calls;
	r->roof_s += fmax(work_s, bytes_s) * (double)calls;
	r->by_flops = r->work / a->p->roof.flops > r->roof_s / 2;
	return 0;
}

/* Returns how often a step runs the program: once, or for each of its micro-batches of that size. */
static int64_t program_runs_per_step(const struct engine *e, const struct program *p)
{
	int64_t micros = sampler_micros(&e->train_schedule.train, 0), n = 0;

	for (int64_t m = 0; m < micros; m++) {
		struct range r = sampler_micro(&e->train_schedule.train, 0, rank_share(&e->rank), m);

		n += p ==
		     prepared_program(&e->prepared, m + 1 < micros ? PROGRAM_MICRO : PROGRAM_STEP, r.end - r.begin);
	}
	return n;
}

static int add_profiled_program(struct profile_builder *a, const struct program *p)
{
	const double *seconds = exec_node_seconds(a->e->exec, p);
	int64_t calls = program_runs_per_step(a->e, p);
	int rc = 0;

	for (int i = 0; calls && seconds && !rc && i < p->graph->n_nodes; i++) {
		const struct node *n = p->graph->nodes[i];

		rc = add_profiled_node(a, p, n, calls, seconds[n->id] / (double)a->steps);
	}
	return rc;
}

static int compare_row_seconds(const void *a, const void *b)
{
	double x = ((const struct profile_row *)a)->seconds, y = ((const struct profile_row *)b)->seconds;

	return (x < y) - (x > y);
}

int profile_make(struct profile *ret, const struct engine *e, int64_t steps, struct err *err)
{
	struct profile_builder a = { .p = ret, .e = e, .steps = steps };
	int rc;

	*ret = (struct profile){ .n = 0 };
	rc = roof_measure(&ret->roof, e, err);
	if (!rc)
		rc = curve_measure(ret->curve, &ret->n_curve, e, err);
	if (rc)
		return rc;
	for (int i = 0; !rc && i < e->prepared.n_programs; i++)
		rc = add_profiled_program(&a, e->prepared.program[i]);
	if (rc)
		return err_nomem(err, "profile");
	if (ret->n)
		qsort(ret->rows, ret->n, sizeof(*ret->rows), compare_row_seconds);
	return 0;
}

void profile_done(struct profile *p)
{
	free(p->rows);
}

/* ---- by op alone ---- */

static int compare_op_seconds(const void *a, const void *b)
{
	double x = ((const struct bench_op *)a)->seconds, y = ((const struct bench_op *)b)->seconds;

	return (x < y) - (x > y);
}

/* Adds nodes and operations of the program of one micro-batch. */
static void add_graph_work(struct bench_ops *ops, const struct graph *g)
{
	for (int i = 0; i < g->n_nodes; i++) {
		const struct node *n = g->nodes[i];
		double flops = op_flops(n);

		ops->op[n->op->id].nodes++;
		ops->op[n->op->id].flops += flops;
		ops->flops += flops;
	}
}

static void add_op_seconds(struct bench_ops *ops, const struct graph *g, const double *seconds, int64_t steps)
{
	for (int i = 0; seconds && i < g->n_nodes; i++) {
		const struct node *n = g->nodes[i];
		double s = seconds[n->id] / (double)steps;

		ops->op[n->op->id].name = n->op->name;
		ops->op[n->op->id].seconds += s;
		ops->product_seconds += n->op->flops ? s : 0;
	}
}

void bench_ops_collect(struct bench_ops *ret, const struct engine *e, int64_t steps)
{
	int64_t micros = sampler_micros(&e->train_schedule.train, 0);

	memset(ret, 0, sizeof(*ret));
	for (int64_t m = 0; m < micros; m++) {
		struct range r = sampler_micro(&e->train_schedule.train, 0, rank_share(&e->rank), m);
		const struct program *p =
			prepared_program(&e->prepared, m + 1 < micros ? PROGRAM_MICRO : PROGRAM_STEP, r.end - r.begin);

		if (p)
			add_graph_work(ret, p->graph);
	}
	for (int i = 0; i < e->prepared.n_programs; i++)
		add_op_seconds(ret, e->prepared.program[i]->graph, exec_node_seconds(e->exec, e->prepared.program[i]),
			       steps);
	for (int i = 0; i < OP_COUNT; i++)
		if (ret->op[i].nodes && ret->op[i].name)
			ret->op[ret->n++] = ret->op[i];
	qsort(ret->op, (size_t)ret->n, sizeof(ret->op[0]), compare_op_seconds);
}
