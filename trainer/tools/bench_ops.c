/* bench_ops.c: sums over the nodes of each op; the speed of a matrix product alone. */
#include "trainer/tools/bench_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/ops/linear/linear.h"
#include "trainer/tools/probe.h"

#define PROBE_SIZE 128 /* of a first product, which shows how large the others may be */
#define FIRST_S 0.003  /* time for it: one run may be interrupted */
#define PRODUCT_S 0.05 /* longest single product */
#define MEASURE_S 0.1

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
	int64_t micros = sampler_micros(&e->course.train, 0);

	memset(ret, 0, sizeof(*ret));
	for (int64_t m = 0; m < micros; m++) {
		struct range r = sampler_micro(&e->course.train, 0, rank_share(&e->rank), m);
		const struct program *p = prepared_program(
			&e->prepared, m + 1 < micros ? PROGRAM_MICRO : PROGRAM_STEP, r.end - r.begin);

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

/* Times a product of size x size matrices. */
static int time_product(double *ret_best_s, const struct program_opts *o, int64_t size, double seconds,
			struct err *err)
{
	struct linear_attr attr = { .low = true };
	struct probe p;
	int rc = probe_init(&p, o, err);

	if (!rc) {
		struct tensor *x = graph_act(p.graph, o->precision.low, SHAPE(size, size), "x");
		struct tensor *w = graph_act(p.graph, o->precision.low, SHAPE(size, size), "w");

		rc = probe_prepare(&p,
				   graph_node(p.graph, &(struct node_spec){ .op = &op_linear,
									    .name = "product",
									    NODE_IN(x, w, NULL),
									    NODE_OUT(NULL),
									    NODE_ATTR(attr) }),
				   err);
	}
	if (!rc)
		rc = probe_best(&p, seconds, ret_best_s, err);
	probe_done(&p);
	return rc;
}

static double product_flops(int64_t size)
{
	return 2 * (double)size * (double)size * (double)size;
}

int bench_matmul(double *ret, const struct engine *e, struct err *err)
{
	const struct program_opts *o = &e->prepared.opts;
	static const int64_t large[] = { 512, 1024, 2048, 8192 }; /* the fastest one depends on caches and tiles */
	double best_s;
	int rc = time_product(&best_s, o, PROBE_SIZE, FIRST_S, err);
	if (!rc)
		*ret = product_flops(PROBE_SIZE) / best_s;
	for (size_t i = 0; !rc && i < sizeof(large) / sizeof(*large); i++) {
		if (product_flops(large[i]) > PRODUCT_S * *ret)
			break;
		rc = time_product(&best_s, o, large[i], MEASURE_S, err);
		*ret = rc ? *ret : fmax(*ret, product_flops(large[i]) / best_s);
	}
	return rc;
}
