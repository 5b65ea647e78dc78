/* SPDX-License-Identifier: Apache-2.0 */
/* roof.c: times single kernels, matrix products and collectives. Bandwidth is measured with the backend's ReLU and sum
 * of squares. */
#include "trainer/tools/step_profile.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/linear/linear.h"
#include "trainer/ops/relu/relu.h"

/* ---- one node alone, in separate memory: the operands, then the workspace ---- */

enum { PROBE_OPERANDS = 4 };

struct probe {
	const struct program_opts *opts;
	struct graph *graph; /* the caller adds tensors and one node to it */
	const struct kernel *kernel;
	void *state, *memory, *numbers; /* numbers: contents of the operands */
	size_t bytes;
	void *in[PROBE_OPERANDS], *out[PROBE_OPERANDS];
	struct kernel_args args;
	struct event_handle *from, *to; /* of args.stream, on devices */
};

#define ALIGN 256 /* alignment of operands; a rank's part of a collective is a multiple of it */
#define RUNS_LEAST 10
#define NUMBERS_BYTES ((size_t)1 << 20)
#define PATIENCE 5 /* limit of the duration, as a multiple of the wanted one */

static size_t padded_bytes(const struct tensor *t)
{
	return t ? round_up_bytes(tensor_bytes(t), ALIGN) : 0;
}

static int probe_init(struct probe *p, const struct program_opts *o, struct err *err)
{
	*p = (struct probe){ .opts = o, .graph = graph_new(false), .numbers = mem_alloc(NUMBERS_BYTES) };
	return p->graph ? 0 : err_nomem(err, "bench");
}

static size_t place_operands(struct probe *p, struct tensor *const *tensors, int n, void **ret, size_t at)
{
	for (int i = 0; i < n; i++) {
		ret[i] = tensors[i] ? (char *)p->memory + at : NULL;
		at += padded_bytes(tensors[i]);
	}
	return at;
}

/* Writes the operands: pages never written all map to one page of zeros, which stays in the cache. */
static int fill_operand(struct probe *p, const struct tensor *t, void *to, struct err *err)
{
	const int64_t width = (int64_t)dtype_bytes(t->dtype), count = NUMBERS_BYTES / width;
	const size_t bytes = tensor_bytes(t);
	int rc = 0;

	for (int64_t i = 0; i < count; i++)
		float_put(p->numbers, t->dtype, i, (double)(i * 2654435761 % 1999) / 1999 - 0.5);
	for (size_t at = 0; !rc && at < bytes; at += NUMBERS_BYTES)
		rc = p->opts->backend->copy(p->opts->module, (char *)to + at, p->numbers,
					    bytes - at < NUMBERS_BYTES ? bytes - at : NUMBERS_BYTES, err);
	return rc;
}

static int fill_operands(struct probe *p, struct tensor *const *tensors, int n, void *const *to, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < n; i++)
		rc = tensors[i] ? fill_operand(p, tensors[i], to[i], err) : 0;
	return rc;
}

/* Opens a device's stream, and events for timing. */
static int open_probe_stream(struct probe *p, struct err *err)
{
	const struct backend_streams *s = p->opts->backend->streams;
	int rc = s ? s->stream_new(p->opts->module, &p->args.stream, err) : 0;

	if (s && !rc)
		rc = s->event_new(p->opts->module, true, &p->from, err);
	if (s && !rc)
		rc = s->event_new(p->opts->module, true, &p->to, err);
	return rc;
}

/* Prepares n, with at most PROBE_OPERANDS inputs and outputs, all floats. They hold random numbers, because GPUs
 * multiply zeros faster. NULL n: the graph's error. */
static int probe_prepare(struct probe *p, struct node *n, struct err *err)
{
	size_t at;
	int rc;

	if (!n)
		return err_set(err, p->graph->err.code, "%s", p->graph->err.text);
	p->kernel = program_kernel(p->opts, n);
	rc = p->kernel->prepare(&p->opts->env, n, &p->state, err);
	p->bytes = n->workspace_bytes;
	for (int i = 0; i < n->n_in; i++)
		p->bytes += padded_bytes(n->in[i]);
	for (int i = 0; i < n->n_out; i++)
		p->bytes += padded_bytes(n->out[i]);
	if (!rc)
		rc = p->opts->backend->alloc(p->opts->module, SPACE_PRIVATE, p->bytes, &p->memory, err);
	if (rc)
		return rc;
	at = place_operands(p, n->in, n->n_in, p->in, 0);
	at = place_operands(p, n->out, n->n_out, p->out, at);
	p->args = (struct kernel_args){ .in = p->in, .out = p->out, .workspace = (char *)p->memory + at };
	rc = fill_operands(p, n->in, n->n_in, p->in, err);
	if (!rc)
		rc = fill_operands(p, n->out, n->n_out, p->out, err);
	return rc ? rc : open_probe_stream(p, err);
}

static int time_host_run(struct probe *p, double *ret_s, struct err *err)
{
	const double before = clock_mono_s();

	p->kernel->run(p->state, &p->args);
	*ret_s = clock_mono_s() - before;
	return backend_take_failure(p->opts->backend, p->opts->module, "a probe", err);
}

static int time_device_run(struct probe *p, double *ret_s, struct err *err)
{
	const struct backend_streams *s = p->opts->backend->streams;
	void *m = p->opts->module;
	int rc = s->record(m, p->args.stream, p->from, err);

	if (!rc) {
		p->kernel->run(p->state, &p->args);
		rc = backend_take_failure(p->opts->backend, m, "a probe", err);
	}
	if (!rc)
		rc = s->record(m, p->args.stream, p->to, err);
	if (!rc)
		rc = s->event_sync(m, p->to, err);
	return rc ? rc : s->seconds(m, p->from, p->to, ret_s, err);
}

/* Returns the best time of the runs that fit into `seconds`: at least one run, and some more on a busy machine. */
static int probe_best(struct probe *p, double seconds, double *ret_s, struct err *err)
{
	double start = clock_mono_s(), now, took, best = INFINITY;
	int rc, runs = 0;

	do {
		rc = p->opts->backend->streams ? time_device_run(p, &took, err) : time_host_run(p, &took, err);
		now = clock_mono_s();
		best = rc ? best : fmin(best, took);
		runs++;
	} while (!rc && now - start < (runs < RUNS_LEAST ? PATIENCE : 1) * seconds);
	if (!rc)
		*ret_s = best;
	return rc;
}

static void probe_done(struct probe *p)
{
	const struct backend_streams *s = p->opts->backend->streams;

	if (p->from)
		s->event_free(p->opts->module, p->from);
	if (p->to)
		s->event_free(p->opts->module, p->to);
	if (p->args.stream)
		s->stream_free(p->opts->module, p->args.stream);
	if (p->state && p->kernel->release)
		p->kernel->release(p->state);
	free(p->numbers);
	if (p->memory)
		p->opts->backend->release(p->opts->module, SPACE_PRIVATE, p->memory, p->bytes);
	graph_free(p->graph);
}

/* ---- a matrix product ---- */

#define PROBE_SIZE 128 /* size of a first product, which shows how large the others may be */
#define FIRST_S 0.003  /* time for it: one run may be interrupted */
#define PRODUCT_S 0.05 /* longest single product */
#define PRODUCT_MEASURE_S 0.1

/* Times a product of size x size matrices. */
static int time_product(double *ret_best_s, const struct program_opts *o, int64_t size, double seconds, struct err *err)
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
		rc = time_product(&best_s, o, large[i], PRODUCT_MEASURE_S, err);
		*ret = rc ? *ret : fmax(*ret, product_flops(large[i]) / best_s);
	}
	return rc;
}

/* ---- curves: every size is timed several times; the slowest rank counts ---- */

#define TIMES 7

static const double sizes[] = { 4096, 65536, 1048576, 4194304, 16777216, 67108864 };
static const char *const ops[] = { "allreduce", "all_gather", "reduce_scatter" };

static int run_collective(struct comm *c, int op, void *data, size_t bytes, struct err *err)
{
	const size_t each = bytes / (size_t)c->world;

	if (op == 0)
		return c->ops->allreduce(c, data, (int64_t)(bytes / sizeof(float)), DTYPE_F32, err);
	if (op == 1)
		return c->ops->all_gather(c, data, (int64_t)each, err);
	return c->ops->reduce_scatter(c, data, (int64_t)(each / sizeof(float)), DTYPE_F32, err);
}

/* All ranks start together, so that waiting for another rank's start is not included. */
static int time_collective(struct comm *c, int op, void *data, struct curve_point *p, struct err *err)
{
	double seconds[TIMES];
	int rc = 0;

	for (int i = 0; !rc && i < TIMES; i++) {
		double start;

		rc = c->ops->barrier(c, err);
		start = clock_mono_s();
		if (!rc)
			rc = run_collective(c, op, data, (size_t)p->bytes, err);
		seconds[i] = clock_mono_s() - start;
	}
	p->seconds = median_of(seconds, TIMES);
	return rc;
}

/* Replaces the seconds by those of the slowest rank. */
static int take_slowest_rank(struct comm *c, struct curve_point *points, int n, struct err *err)
{
	double *all = mem_array((size_t)c->world * (size_t)n, sizeof(*all));
	int rc;

	for (int i = 0; i < n; i++)
		all[c->rank * n + i] = points[i].seconds;
	rc = c->ops->all_gather(c, all, (int64_t)((size_t)n * sizeof(*all)), err);
	for (int i = 0; !rc && i < n; i++)
		for (int r = 0; r < c->world; r++)
			points[i].seconds = all[r * n + i] > points[i].seconds ? all[r * n + i] : points[i].seconds;
	free(all);
	return rc;
}

int curve_measure(struct curve_point ret[CURVE_POINTS], int *ret_n, const struct engine *e, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	const size_t n_sizes = sizeof(sizes) / sizeof(sizes[0]), unit = ALIGN * (size_t)c->world;
	void *data;
	int rc, n = 0;

	*ret_n = 0;
	if (c->world == 1 || e->rank.backend->streams)
		return 0;
	rc = c->ops->alloc(c, (size_t)sizes[n_sizes - 1], &data, err);
	for (size_t i = 0; !rc && i < sizeof(ops) / sizeof(ops[0]); i++)
		for (size_t k = 0; !rc && k < n_sizes; k++) {
			const size_t bytes = (size_t)sizes[k] / unit * unit;

			ret[n] = (struct curve_point){ ops[i], (double)bytes, 0, c->world, rank_transport(&e->rank) };
			rc = bytes ? time_collective(c, (int)i, data, &ret[n], err) : 0;
			n += bytes != 0;
		}
	if (!rc)
		rc = take_slowest_rank(c, ret, n, err);
	*ret_n = rc ? 0 : n;
	return rc;
}

/* ---- the roofline ---- */

#define LEAST_BYTES 262144.0 /* the smallest working set; each next one is four times as large */
#define STEP 4
#define MEASURE_S 0.02 /* time for each pattern */
#define SLOW_S 0.05

/* Access patterns with different speeds: an output in other memory is fetched before it is written, an output in
 * place is not, and reading alone writes nothing. */
enum pattern { PATTERN_COPY, PATTERN_IN_PLACE, PATTERN_READ, PATTERN_COUNT };

static struct node *add_pattern(struct graph *g, enum pattern pattern, struct tensor *x)
{
	if (pattern == PATTERN_READ)
		return graph_node(g,
				  &(struct node_spec){ .op = &op_sumsq, .name = "read", NODE_IN(x), NODE_OUT(NULL) });
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
		if (i && slow) { /* like the reference backend: memory does not limit it */
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
