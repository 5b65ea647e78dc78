/* roof.c: measures bandwidth with the backend's ReLU and sum of squares. */
#include "trainer/tools/roof.h"

#include <math.h>

#include "trainer/ops/ops.h"
#include "trainer/ops/relu/relu.h"
#include "trainer/tools/bench_ops.h"
#include "trainer/tools/probe.h"

#define LEAST_BYTES 262144.0 /* the smallest working set; each next one is four times as large */
#define STEP 4
#define MEASURE_S 0.02 /* of each pattern */
#define SLOW_S 0.05

/* Access patterns with different speeds: an output in other memory is fetched before it is written, an output in
 * place is not, and reading alone writes nothing. */
enum pattern { PATTERN_COPY, PATTERN_IN_PLACE, PATTERN_READ, PATTERN_COUNT };

static struct node *add_pattern(struct graph *g, enum pattern pattern, struct tensor *x)
{
	if (pattern == PATTERN_READ)
		return graph_node(g, &(struct node_spec){ .op = &op_sumsq, .name = "read", NODE_IN(x),
							  NODE_OUT(NULL) });
	relu_add(g, x);
	return graph_failed(g) ? NULL : g->nodes[g->n_nodes - 1];
}

static int measure_pattern(double *ret, const struct program_opts *o, enum pattern pattern, double bytes,
			   struct err *err)
{
	const double share = pattern == PATTERN_READ ? 1 : 2;
	int64_t n = (int64_t)(bytes / share / (double)dtype_bytes(o->precision.low));
	struct probe p;
	double best_s;
	int rc = probe_init(&p, o, err);

	if (!rc) {
		struct tensor *x = graph_act(p.graph, o->precision.low, SHAPE(n / 256, 256), "x");

		rc = probe_prepare(&p, add_pattern(p.graph, pattern, x), err);
	}
	if (!rc && pattern == PATTERN_IN_PLACE)
		p.out[0] = p.in[0];
	if (!rc)
		rc = probe_best(&p, MEASURE_S, &best_s, err);
	if (!rc)
		*ret = bytes / best_s;
	probe_done(&p);
	return rc;
}

static int measure_rate(double *ret, const struct program_opts *o, double bytes, struct err *err)
{
	double best = 0;
	int rc = 0;

	for (int i = 0; !rc && i < PATTERN_COUNT; i++) {
		double rate = 0;

		rc = measure_pattern(&rate, o, (enum pattern)i, bytes, err);
		best = fmax(best, rate);
	}
	if (!rc)
		*ret = best;
	return rc;
}

/* A smaller working set is at least as fast. If it was slower, distributing the work to threads took the time, which
 * does not limit an operation in one thread. */
static void make_rates_fall(struct roof *r)
{
	for (int i = ROOF_SIZES - 2; i >= 0; i--)
		r->rate[i] = fmax(r->rate[i], r->rate[i + 1]);
}

/* Sets *ret if it holds on any rank, so that all ranks decide alike. */
static int any_rank_votes(struct comm *c, bool own, bool *ret, struct err *err)
{
	double votes = own;
	int rc = c->ops->allreduce(c, &votes, 1, DTYPE_F64, err);

	*ret = votes > 0;
	return rc;
}

int roof_measure(struct roof *ret, const struct engine *e, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	double bytes = LEAST_BYTES;
	bool slow = false;
	int rc = c->ops->barrier(c, err);

	if (!rc)
		rc = bench_matmul(&ret->flops, e, err);
	for (int i = 0; !rc && i < ROOF_SIZES; i++, bytes *= STEP) {
		ret->bytes[i] = bytes;
		if (i && slow) { /* as the reference backend: memory does not limit it */
			ret->rate[i] = ret->rate[i - 1];
			continue;
		}
		rc = c->ops->barrier(c, err); /* all ranks at once, as they compute */
		if (!rc)
			rc = measure_rate(&ret->rate[i], &e->prepared.opts, bytes, err);
		if (!rc)
			rc = any_rank_votes(c, ret->bytes[i] / ret->rate[i] > SLOW_S, &slow, err);
	}
	if (!rc)
		make_rates_fall(ret);
	return rc;
}

double roof_rate(const struct roof *r, double bytes)
{
	for (int i = 1; i < ROOF_SIZES; i++)
		if (bytes < r->bytes[i]) {
			double along = log(fmax(bytes, r->bytes[i - 1]) / r->bytes[i - 1]) / log(STEP);

			return exp(log(r->rate[i - 1]) * (1 - along) + log(r->rate[i]) * along);
		}
	return r->rate[ROOF_SIZES - 1];
}
