/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c: the kernel calls of complete ResNet training steps, in order and on distinct buffers, without graph,
 * planner or loop: the time of a step by op and shape, with rates.
 *   kernels [resnet20|resnet18|resnet18-32px|resnet34|resnet50] [f32|bf16] THREADS BATCH REPEATS [-v|-l|-g|-t]
 * -l: the step's own bound instead, as JSON: every product and convolution as fast as the best implementation that any
 * layer of the network has chosen is when run alone; for the other kernels, the fastest possible reading and writing
 * of their operands (one load per line; stores, or non-temporal stores). Both with caches as the step leaves them:
 * emptied, then the data of the preceding kernels are read, in order; results are written to cached memory.
 * -g: by op and shape, the time beyond that bound, and its share.
 * -t: by op and shape, processor time of the calling thread and of all others, which sleep while they wait: the work
 * that a second thread does not share. Other programs on the machine hardly affect it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/parts/caches.h"
#include "trainer/backends/backend.h"
#include "trainer/graph/pass.h"
#include "trainer/ops/avgpool/avgpool.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/maxpool/maxpool.h"
#include "trainer/ops/update/update.h"
#include "trainer/ops/xent/xent.h"

#define OPERANDS 8
#define ITEMS 4096
#define REPEATS 64

static const struct op bench_ops[OP_COUNT] = {
#define OP(n) [OP_##n] = { .name = #n, .id = OP_##n },
#include "trainer/ops/ops.def"
#undef OP
};

struct item {
	struct node node;
	struct tensor *in[OPERANDS], *out[OPERANDS];
	void *in_data[OPERANDS], *out_data[OPERANDS];
	const struct kernel *kernel;
	void *state, *workspace;
	double flops, time_s[REPEATS];
	double caller_s, process_s; /* processor time of the last pass */
	char label[96];
};

struct cell { /* a tensor and its memory */
	struct tensor t;
	void *data;
};

struct bench {
	const struct backend *b;
	struct kernel_env env;
	enum dtype low;
	struct item items[ITEMS];
	int n, batch, repeats;
	char *slab;
	size_t used, bytes, workspace_bytes;
	struct step_page page;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "kernels: %s: %s\n", what, why);
	exit(1);
}

static void *take(struct bench *b, size_t bytes)
{
	void *p = b->slab + b->used;

	b->used += (bytes + 63) / 64 * 64;
	if (b->used > b->bytes)
		die("memory", "the bench's slab is too small");
	return p;
}

static struct cell *cell(struct bench *b, enum dtype type, struct shape shape)
{
	struct cell *c = calloc(1, sizeof(*c));

	c->t = (struct tensor){ .name = "t", .dtype = type, .shape = shape };
	c->data = take(b, tensor_bytes(&c->t));
	return c;
}

/* Small values that keep the arithmetic finite and dense. */
static struct cell *filled(struct bench *b, enum dtype type, struct shape shape, float scale)
{
	struct cell *c = cell(b, type, shape);
	uint32_t r = 1;

	for (int64_t i = 0; i < shape_count(&shape); i++) {
		r = r * 1664525 + 1013904223;
		float v = scale * ((float)(r >> 8) / (float)(1 << 23) - 1);
		uint32_t u;

		memcpy(&u, &v, sizeof(u));
		if (type == DTYPE_BF16)
			((uint16_t *)c->data)[i] = (uint16_t)(u >> 16);
		else
			((float *)c->data)[i] = v;
	}
	return c;
}

#define CHOICES 512

struct choices { /* implementations chosen by timing: operation and implementation */
	struct {
		char key[256], name[64];
	} list[CHOICES];
	int n;
};

struct call {
	enum op_id op;
	void *attr;
	struct cell *in[OPERANDS], *out[OPERANDS];
	int n_in, n_out;
	double flops;
};

static struct item *add(struct bench *b, const struct call *c)
{
	struct item *it = &b->items[b->n++];
	const struct tensor *big = c->in[0] ? &c->in[0]->t : &c->out[0]->t;
	struct err err = ERR_INIT;
	int len;

	if (b->n > ITEMS)
		die("items", "too many");
	it->node = (struct node){ .op = &bench_ops[c->op],
				  .name = bench_ops[c->op].name,
				  .n_in = c->n_in,
				  .n_out = c->n_out,
				  .in = it->in,
				  .out = it->out,
				  .attr = c->attr };
	for (int i = 0; i < c->n_in; i++)
		if (c->in[i]) {
			it->in[i] = &c->in[i]->t;
			it->in_data[i] = c->in[i]->data;
		}
	for (int i = 0; i < c->n_out; i++)
		if (c->out[i]) {
			it->out[i] = &c->out[i]->t;
			it->out_data[i] = c->out[i]->data;
		}
	it->flops = c->flops;
	it->kernel = b->b->kernel[c->op];
	if (it->kernel->prepare(&b->env, &it->node, &it->state, &err))
		die(it->node.name, err.text);
	if (it->node.workspace_bytes > b->workspace_bytes)
		b->workspace_bytes = it->node.workspace_bytes;
	len = snprintf(it->label, sizeof(it->label), "%s", it->node.name);
	for (int i = 0; i < big->shape.ndim; i++)
		len += snprintf(it->label + len, sizeof(it->label) - (size_t)len, "%c%lld", i ? 'x' : ' ',
				(long long)big->shape.dim[i]);
	return it;
}

/* Packs weights for one consumer, as pass_layout does. */
static struct cell *packed(struct bench *b, enum op_id op, void *attr, struct cell *a, struct cell *w, struct cell *out)
{
	struct tensor *tensors = calloc(3, sizeof(*tensors)), **in = calloc(2, sizeof(*in)),
		      **outs = calloc(1, sizeof(*outs));
	struct node *n = calloc(1, sizeof(*n));
	struct pack_attr *pa = calloc(1, sizeof(*pa));
	struct cell *p = calloc(1, sizeof(*p));

	tensors[0] = a->t, tensors[1] = w->t, tensors[2] = out->t;
	tensors[1].dtype = b->low;
	in[0] = &tensors[0], in[1] = &tensors[1], outs[0] = &tensors[2];
	*n = (struct node){ .op = &bench_ops[op],
			    .name = bench_ops[op].name,
			    .n_in = 2,
			    .n_out = 1,
			    .in = in,
			    .out = outs,
			    .attr = attr };
	p->t = tensors[1];
	p->t.opaque_bytes = b->b->kernel[op]->pack_bytes(&b->env, n, 1);
	if (!p->t.opaque_bytes)
		return w; /* read unpacked */
	p->data = take(b, p->t.opaque_bytes);
	*pa = (struct pack_attr){ .consumer = n, .index = 1 };
	add(b, &(struct call){ OP_pack, pa, { w }, { p }, 1, 1, 0 });
	return p;
}

/* A convolution with its batch norm, and what their backward pass needs. */
struct unit {
	struct conv_attr conv;
	struct bn_attr bn;
	struct cell *x, *w, *y, *z, *stat, *gamma, *beta, *residual, *dw;
	double flops;
};

static struct unit *unit(struct bench *b, struct cell *x, int64_t k, int kernel, int stride, struct cell *residual,
			 bool relu)
{
	const int64_t *d = x->t.shape.dim;
	int pad = kernel / 2;
	int64_t p = (d[1] + 2 * pad - kernel) / stride + 1, q = (d[2] + 2 * pad - kernel) / stride + 1;
	struct unit *u = calloc(1, sizeof(*u));
	struct cell *mean = filled(b, DTYPE_F32, SHAPE(k), 1), *var = filled(b, DTYPE_F32, SHAPE(k), 1);

	u->conv = (struct conv_attr){ .stride = stride, .pad = pad, .kernel = kernel, .in_shape = x->t.shape };
	u->bn = (struct bn_attr){ .eps = 1e-5, .momentum = 0.1, .relu = relu, .residual = residual != NULL };
	u->x = x;
	u->residual = residual;
	u->w = filled(b, DTYPE_F32, SHAPE(k, kernel, kernel, d[3]), 0.1f);
	u->dw = cell(b, DTYPE_F32, u->w->t.shape);
	u->gamma = filled(b, DTYPE_F32, SHAPE(k), 1);
	u->beta = filled(b, DTYPE_F32, SHAPE(k), 1);
	u->y = cell(b, b->low, SHAPE(d[0], p, q, k));
	u->z = cell(b, b->low, SHAPE(d[0], p, q, k));
	u->stat = cell(b, DTYPE_F64, SHAPE(2 * k + 1));
	u->flops = 2.0 * (double)(d[0] * p * q * k * kernel * kernel * d[3]);
	struct cell *wp = packed(b, OP_conv, &u->conv, x, u->w, u->y);
	add(b, &(struct call){ OP_conv, &u->conv, { x, wp }, { u->y }, 2, 1, u->flops });
	add(b, &(struct call){ OP_bn_stats, &u->bn, { u->y }, { u->stat }, 1, 1, 0 });
	add(b, &(struct call){ OP_bn_running, &u->bn, { u->stat, mean, var, mean, var }, { mean, var }, 5, 2, 0 });
	add(b,
	    &(struct call){ OP_bn_apply, &u->bn, { u->y, u->stat, u->gamma, u->beta, residual }, { u->z }, 5, 1, 0 });
	return u;
}

struct grads {
	struct cell *a, *b; /* summands; b may be NULL */
};

/* Stores g, if made, in *ret_g: the gradient at the residual. */
static struct cell *unit_back(struct bench *b, struct unit *u, struct grads dy, bool want_dx, struct cell **ret_g)
{
	struct bn_attr *apply = malloc(sizeof(*apply));
	int64_t k = u->y->t.shape.dim[3];
	struct cell *dstat = cell(b, DTYPE_F64, SHAPE(2 * k)), *dgamma = cell(b, DTYPE_F32, SHAPE(k)),
		    *dbeta = cell(b, DTYPE_F32, SHAPE(k));
	struct cell *g = NULL, *dconv = cell(b, b->low, u->y->t.shape), *dx = NULL;
	struct update_attr *sgd = calloc(1, sizeof(*sgd));
	struct cell *m = cell(b, DTYPE_F32, u->w->t.shape), *step = cell(b, DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	u->bn.write_g = u->bn.residual || dy.b;
	if (u->bn.write_g)
		g = cell(b, b->low, u->y->t.shape);
	*apply = u->bn;
	apply->relu = u->bn.relu && !u->bn.write_g;
	add(b, &(struct call){ OP_bn_grad_stats,
			       &u->bn,
			       { dy.a, dy.b, u->y, u->stat, u->gamma, u->beta, u->z },
			       { dstat, g },
			       7,
			       2,
			       0 });
	add(b, &(struct call){ OP_bn_grad_apply,
			       apply,
			       { g ? g : dy.a, u->y, u->stat, dstat, u->gamma, u->beta },
			       { dconv },
			       6,
			       1,
			       0 });
	add(b, &(struct call){ OP_bn_grad_params, &u->bn, { dstat }, { dgamma, dbeta }, 1, 2, 0 });
	if (want_dx) {
		dx = cell(b, b->low, u->x->t.shape);
		struct cell *wp = packed(b, OP_conv_dgrad, &u->conv, dconv, u->w, dx);
		add(b, &(struct call){ OP_conv_dgrad, &u->conv, { dconv, wp }, { dx }, 2, 1, u->flops });
	}
	add(b, &(struct call){ OP_conv_wgrad, &u->conv, { u->x, dconv }, { u->dw }, 2, 1, u->flops });
	*sgd = (struct update_attr){ UPDATE_sgd, { .momentum = 0.9, .weight_decay = 1e-4 } };
	add(b, &(struct call){ OP_update, sgd, { u->w, u->dw, m, step }, { u->w, m }, 4, 2, 0 });
	if (ret_g)
		*ret_g = g;
	return dx;
}

struct block {
	struct unit *u[3], *shortcut;
	int n;
};

static struct cell *block_add(struct bench *b, struct block *blk, struct cell *x, int64_t width, int stride,
			      bool bottleneck)
{
	int64_t out = bottleneck ? 4 * width : width;
	struct cell *residual = x;

	if (stride != 1 || x->t.shape.dim[3] != out) {
		blk->shortcut = unit(b, x, out, 1, stride, NULL, false);
		residual = blk->shortcut->z;
	}
	blk->n = bottleneck ? 3 : 2;
	if (bottleneck) {
		blk->u[0] = unit(b, x, width, 1, 1, NULL, true);
		blk->u[1] = unit(b, blk->u[0]->z, width, 3, stride, NULL, true);
		blk->u[2] = unit(b, blk->u[1]->z, out, 1, 1, residual, true);
	} else {
		blk->u[0] = unit(b, x, width, 3, stride, NULL, true);
		blk->u[1] = unit(b, blk->u[0]->z, width, 3, 1, residual, true);
	}
	return blk->u[blk->n - 1]->z;
}

static struct grads block_back(struct bench *b, struct block *blk, struct grads dy)
{
	struct cell *g, *d = unit_back(b, blk->u[blk->n - 1], dy, true, &g);

	for (int i = blk->n - 2; i >= 0; i--)
		d = unit_back(b, blk->u[i], (struct grads){ d, NULL }, true, NULL);
	if (blk->shortcut)
		g = unit_back(b, blk->shortcut, (struct grads){ g, NULL }, true, NULL);
	return (struct grads){ d, g };
}

struct net {
	const char *name;
	int64_t px, channels, width, classes;
	int stages, blocks[4], stem_kernel, stem_stride;
	bool pool, bottleneck;
};

static const struct net nets[] = {
	{ "resnet20", 28, 1, 16, 10, 3, { 3, 3, 3 }, 3, 1, false, false },
	{ "resnet18", 224, 3, 64, 1000, 4, { 2, 2, 2, 2 }, 7, 2, true, false },
	{ "resnet18-32px", 32, 3, 64, 10, 4, { 2, 2, 2, 2 }, 7, 2, true, false },
	{ "resnet34", 224, 3, 64, 1000, 4, { 3, 4, 6, 3 }, 7, 2, true, false },
	{ "resnet50", 224, 3, 64, 1000, 4, { 3, 4, 6, 3 }, 7, 2, true, true },
};

/* Adds pool, classifier and loss; returns the gradient that they produce. */
static struct cell *head(struct bench *b, const struct net *net, struct cell *x)
{
	int64_t n = b->batch, c = x->t.shape.dim[3], k = net->classes;
	struct cell *p = cell(b, b->low, SHAPE(n, c)), *dp = cell(b, b->low, SHAPE(n, c)),
		    *dx = cell(b, b->low, x->t.shape);
	struct cell *w = filled(b, b->low, SHAPE(k, c), 0.1f), *bias = filled(b, DTYPE_F32, SHAPE(k), 0.1f);
	struct cell *dw = cell(b, DTYPE_F32, SHAPE(k, c)), *db = cell(b, DTYPE_F32, SHAPE(k));
	struct cell *y = cell(b, DTYPE_F32, SHAPE(n, k)), *dy = cell(b, DTYPE_F32, SHAPE(n, k));
	struct cell *labels = cell(b, DTYPE_I32, SHAPE(n)), *result = cell(b, DTYPE_F64, SHAPE(4)),
		    *lse = cell(b, DTYPE_F32, SHAPE(n)),
		    *low = b->low == DTYPE_F32 ? dy : cell(b, b->low, SHAPE(n, k));
	struct avgpool_attr *pool = calloc(1, sizeof(*pool));
	struct xent_attr *xent = calloc(1, sizeof(*xent));
	double flops = 2.0 * (double)(n * c * k);

	pool->in_shape = x->t.shape;
	add(b, &(struct call){ OP_avgpool, NULL, { x }, { p }, 1, 1, 0 });
	add(b, &(struct call){ OP_linear, NULL, { p, w, bias }, { y }, 3, 1, flops });
	add(b, &(struct call){ OP_xent, xent, { y, labels }, { result, lse }, 2, 2, 0 });
	add(b, &(struct call){ OP_xent_grad, xent, { y, labels, lse }, { dy }, 3, 1, 0 });
	if (low != dy)
		add(b, &(struct call){ OP_cast, NULL, { dy }, { low }, 1, 1, 0 });
	add(b, &(struct call){ OP_linear_wgrad, NULL, { p, low }, { dw, db }, 2, 2, flops });
	add(b, &(struct call){ OP_linear_dgrad, NULL, { low, w }, { dp }, 2, 1, flops });
	add(b, &(struct call){ OP_avgpool_grad, pool, { dp }, { dx }, 1, 1, 0 });
	return dx;
}

static void build(struct bench *b, const struct net *net)
{
	struct cell *x = filled(b, b->low, SHAPE(b->batch, net->px, net->px, net->channels), 1), *index = NULL,
		    *pooled = NULL;
	struct unit *stem = unit(b, x, net->width, net->stem_kernel, net->stem_stride, NULL, true);
	struct maxpool_attr *pool = calloc(1, sizeof(*pool));
	struct block *blocks[64];
	struct grads d;
	int n = 0;

	x = stem->z;
	if (net->pool) {
		int64_t half = x->t.shape.dim[1] / 2;

		*pool = (struct maxpool_attr){ .kernel = 3, .stride = 2, .pad = 1, .in_shape = x->t.shape };
		index = cell(b, DTYPE_U8, SHAPE(b->batch, half, half, net->width));
		pooled = cell(b, b->low, index->t.shape);
		add(b, &(struct call){ OP_maxpool, pool, { x }, { pooled, index }, 1, 2, 0 });
		x = pooled;
	}
	for (int s = 0; s < net->stages; s++)
		for (int i = 0; i < net->blocks[s]; i++) {
			blocks[n] = calloc(1, sizeof(*blocks[n]));
			x = block_add(b, blocks[n++], x, net->width << s, s && !i ? 2 : 1, net->bottleneck);
		}
	d = (struct grads){ head(b, net, x), NULL };
	while (n)
		d = block_back(b, blocks[--n], d);
	if (net->pool) {
		struct cell *sum = cell(b, b->low, pooled->t.shape), *dx = cell(b, b->low, stem->z->t.shape);

		add(b, &(struct call){ OP_add, NULL, { d.a, d.b }, { sum }, 2, 1, 0 });
		add(b, &(struct call){ OP_maxpool_grad, pool, { sum, index }, { dx }, 2, 1, 0 });
		d = (struct grads){ dx, NULL };
	}
	unit_back(b, stem, d, false, NULL);
}

/* With one thread, its processor time, which other programs on the machine disturb less. */
static double now_s(const struct bench *b)
{
	struct timespec t;

	clock_gettime(b->env.threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double pass(struct bench *b, int repeat)
{
	double start = now_s(b), last = start, t;

	for (int i = 0; i < b->n; i++) {
		struct item *it = &b->items[i];
		const struct kernel_args a = { it->in_data, it->out_data, it->workspace, &b->page, NULL };

		it->kernel->run(it->state, &a);
		t = now_s(b);
		it->time_s[repeat] = t - last;
		last = t;
	}
	return last - start;
}

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One pass that adds up the work of the calling thread and of all threads. */
static void pass_shared(struct bench *b)
{
	for (int i = 0; i < b->n; i++) {
		struct item *it = &b->items[i];
		const struct kernel_args a = { it->in_data, it->out_data, it->workspace, &b->page, NULL };
		const double caller = clock_s(CLOCK_THREAD_CPUTIME_ID), all = clock_s(CLOCK_PROCESS_CPUTIME_ID);

		it->kernel->run(it->state, &a);
		it->caller_s += clock_s(CLOCK_THREAD_CPUTIME_ID) - caller;
		it->process_s += clock_s(CLOCK_PROCESS_CPUTIME_ID) - all;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return v[n / 2];
}

static const char *impl_of(const struct item *it)
{
	return it->kernel->impl ? it->kernel->impl(it->state) : "";
}

/* One line per distinct label (verbose) or op; sort(1) can order them. */
static void report(struct bench *b, bool verbose)
{
	bool *done = calloc((size_t)b->n, sizeof(*done));
	double total = 0;

	for (int i = 0; i < b->n; i++) {
		double ms = 0, flops = 0;
		int count = 0;

		if (done[i])
			continue;
		for (int j = i; j < b->n; j++)
			if (verbose ? !strcmp(b->items[j].label, b->items[i].label) &&
					      b->items[j].flops == b->items[i].flops
				    : b->items[j].node.op == b->items[i].node.op) {
				done[j] = true;
				ms += 1e3 * median(b->items[j].time_s, b->repeats);
				flops += b->items[j].flops;
				count++;
			}
		printf("%8.3f ms %3d x %7.1f GFLOP/s  %s  %s\n", ms, count, flops / ms / 1e6,
		       verbose ? b->items[i].label : b->items[i].node.name,
		       verbose ? impl_of(&b->items[i]) : "");
		total += ms;
	}
	printf("%8.3f ms, %.1f images/s by medians of kernels\n", total, b->batch / total * 1e3);
	free(done);
}

/* One line per distinct label: milliseconds per step of the caller's work, of the others' work, and of idle time if all
 * worked equally. */
static void sharing(struct bench *b)
{
	double all_ms[3] = { 0 };

	for (int i = 0; i < b->repeats; i++)
		pass_shared(b);
	for (int i = 0; i < b->n; i++) {
		double ms[3] = { 0 };
		int count = 0;

		for (int j = i; j < b->n && b->items[i].process_s > 0; j++) {
			struct item *it = &b->items[j];

			if (strcmp(it->label, b->items[i].label) || it->flops != b->items[i].flops)
				continue;
			count++;
			ms[0] += 1e3 * it->caller_s / b->repeats;
			ms[1] += 1e3 * (it->process_s - it->caller_s) / b->repeats;
			it->process_s = j > i ? 0 : it->process_s;
		}
		ms[2] = (b->env.threads - 1) * ms[0] - ms[1];
		if (count)
			printf("%8.3f ms caller, %8.3f ms others, %8.3f ms idle %3d x  %s  %s\n", ms[0], ms[1], ms[2],
			       count, b->items[i].label, impl_of(&b->items[i]));
		for (int k = 0; k < 3; k++)
			all_ms[k] += ms[k];
	}
	printf("%8.3f ms caller, %8.3f ms others, %8.3f ms idle\n", all_ms[0], all_ms[1], all_ms[2]);
}

/* Returns its operands: first those that it reads (*ret_in of them), then those that it writes. */
static int pieces_of(const struct item *it, struct piece *p, int *ret_in)
{
	int n = 0;

	for (int k = 0; k < OPERANDS; k++)
		if (it->in[k])
			p[n++] = (struct piece){ it->in_data[k], tensor_bytes(it->in[k]) };
	*ret_in = n;
	for (int k = 0; k < OPERANDS; k++)
		if (it->out[k])
			p[n++] = (struct piece){ it->out_data[k], tensor_bytes(it->out[k]) };
	return n;
}

static size_t operand_bytes(const struct item *it)
{
	struct piece p[2 * OPERANDS];
	size_t bytes = 0;
	int n_in, n = pieces_of(it, p, &n_in);

	for (int i = 0; i < n; i++)
		bytes += p[i].bytes;
	return bytes;
}

static const struct item *before(const struct bench *b, int i, int back)
{
	return &b->items[(i + b->n - back % b->n) % b->n];
}

/* Leaves caches as item i finds them in a step: only the data of the preceding items, in order. What the item writes
 * was touched just before the last of them, because a plan may place it in memory freed there. */
static void place(const struct bench *b, int i)
{
	struct piece own[2 * OPERANDS];
	size_t bytes = 0;
	int back = 0, n_in, own_in, own_n = pieces_of(&b->items[i], own, &own_in);

	while (back < b->n - 1 && bytes < caches_bytes())
		bytes += operand_bytes(before(b, i, ++back));
	caches_empty();
	for (; back > 0; back--) {
		const struct item *it = before(b, i, back);
		struct piece p[2 * OPERANDS + 1];
		int n = pieces_of(it, p, &n_in);

		if (back == 1)
			caches_read(own + own_in, own_n - own_in);
		p[n++] = (struct piece){ it->workspace, it->node.workspace_bytes };
		caches_read(p, n);
	}
}

/* Seconds of item i alone, with its operands where the step leaves them; or of reading and writing these. */
static double once_s(const struct bench *b, int i, bool moved, bool past)
{
	const struct item *it = &b->items[i];
	const struct kernel_args a = { (void **)it->in_data, (void **)it->out_data, it->workspace, &b->page, NULL };
	struct piece p[2 * OPERANDS];
	int n_in, n = pieces_of(it, p, &n_in);
	double start;

	place(b, i);
	start = now_s(b);
	if (moved)
		caches_move(p, n_in, n, past);
	else
		it->kernel->run(it->state, &a);
	return now_s(b) - start;
}

static bool alike(const struct item *a, const struct item *b)
{
	return a->flops == b->flops && strcmp(a->label, b->label) == 0 && strcmp(impl_of(a), impl_of(b)) == 0;
}

/* The best of several measurements of item i: its kernel, or moving its operands if it multiplies nothing. Measured
 * once for consecutive items of the same kind. */
static double bound_s(const struct bench *b, int i, double *known_s)
{
	const bool moved = b->items[i].flops == 0;
	double best = 1e9;

	for (int k = 0; k < i; k++)
		if (known_s[k] > 0 && alike(&b->items[k], &b->items[i]) && alike(before(b, k, 1), before(b, i, 1)))
			return known_s[i] = known_s[k];
	for (int r = 0; r < b->repeats; r++)
		for (int past = 0; past <= moved; past++) {
			double s = once_s(b, i, moved, past);

			best = s < best ? s : best;
		}
	return known_s[i] = best;
}

/* One line per distinct label: milliseconds per step, of the bound, and the difference. */
static void gaps(struct bench *b)
{
	static double known_s[ITEMS];
	bool *done = calloc((size_t)b->n, sizeof(*done));
	double all_ms = 0, all_bound_ms = 0;

	for (int i = 0; i < b->n; i++) {
		double ms = 0, bound_ms = 0;
		int count = 0;

		for (int j = i; !done[i] && j < b->n; j++) {
			struct item *it = &b->items[j];

			if (strcmp(it->label, b->items[i].label) || it->flops != b->items[i].flops || done[j])
				continue;
			done[j] = j > i;
			count++;
			ms += 1e3 * median(it->time_s, b->repeats);
			bound_ms += 1e3 * bound_s(b, j, known_s);
		}
		if (!count)
			continue;
		printf("%8.3f ms beyond %8.3f ms, takes %8.3f ms %3d x  %s  %s\n", ms - bound_ms, bound_ms, ms, count,
		       b->items[i].label, impl_of(&b->items[i]));
		all_ms += ms;
		all_bound_ms += bound_ms;
	}
	printf("%8.3f ms, bound %.3f ms: %.3f\n", all_ms, all_bound_ms, all_bound_ms / all_ms);
	free(done);
}

static const struct backend *load(void)
{
	const char *build = getenv("builddir");
	const struct backend *b;
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/.libs/dptrain_cpu.so", build ? build : ".");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		die("loading the cpu module ($builddir/.libs)", dlerror());
	b = dlsym(handle, BACKEND_SYMBOL);
	if (!b)
		die(path, "no " BACKEND_SYMBOL);
	return b;
}

#define SLAB_BYTES ((size_t)12 << 30)

/* Opens the module and makes all kernels of a step; with a name, uses that implementation wherever `of` can be chosen
 * and it supports the operation. */
static void prepare(struct bench *b, const struct net *net, const struct choices *of, const char *name)
{
	struct err err = ERR_INIT;
	void *slab, *workspace;

	if (b->b->open(&(struct backend_opts){ .threads = b->env.threads }, &b->env.module, &err))
		die("opening the module", err.text);
	for (int i = 0; name && i < of->n; i++)
		b->b->choose(b->env.module, of->list[i].key, name);
	b->bytes = SLAB_BYTES;
	if (b->b->alloc(b->env.module, SPACE_PRIVATE, b->bytes, &slab, &err))
		die("memory", err.text);
	b->slab = slab;
	build(b, net);
	workspace = take(b, b->workspace_bytes);
	for (int i = 0; i < b->n; i++)
		b->items[i].workspace = workspace;
}

static void note_choice(void *user, const char *key, const char *name)
{
	struct choices *c = user;

	if (c->n == CHOICES)
		die("choices", "too many");
	snprintf(c->list[c->n].key, sizeof(c->list[0].key), "%s", key);
	snprintf(c->list[c->n++].name, sizeof(c->list[0].name), "%s", name);
}

/* The products of a step, in order; implementations may need other nodes in between, but the same products. */
static int products(struct bench *b, struct item **ret)
{
	int n = 0;

	for (int i = 0; i < b->n; i++)
		if (b->items[i].flops > 0)
			ret[n++] = &b->items[i];
	return n;
}

/* Lowers best_s[i] to the time of product i alone, with data where the step leaves it, if the choices contain this
 * name. */
static void try_name(struct bench *b, const struct net *net, const struct choices *c, const char *name,
		     double *best_s)
{
	static struct item *had[ITEMS], *has[ITEMS];
	double *known_s = calloc(ITEMS, sizeof(*known_s));
	struct bench *other = calloc(1, sizeof(*other));
	int n = products(b, had);
	double s;

	if (!other || !known_s)
		die("memory", "none for a second net");
	other->b = b->b;
	other->env.threads = b->env.threads;
	other->low = b->low;
	other->batch = b->batch;
	other->repeats = b->repeats;
	other->page = b->page;
	prepare(other, net, c, name);
	pass(other, 0);
	if (products(other, has) != n)
		die(name, "makes another number of products");
	for (int i = 0; i < n; i++)
		if (strcmp(impl_of(has[i]), impl_of(had[i])) != 0) {
			s = bound_s(other, (int)(has[i] - other->items), known_s);
			best_s[i] = s < best_s[i] ? s : best_s[i];
		}
	other->b->release(other->env.module, SPACE_PRIVATE, other->slab, other->bytes);
	free(other);
	free(known_s);
}

static bool is_first(const struct choices *c, int i)
{
	for (int k = 0; k < i; k++)
		if (strcmp(c->list[k].name, c->list[i].name) == 0)
			return false;
	return true;
}

static void limit(struct bench *b, const struct net *net)
{
	static struct choices c;
	static struct item *product[ITEMS];
	static double best_s[ITEMS], known_s[ITEMS];
	double chosen = 0, best = 0, moved = 0, bytes = 0;
	int n = products(b, product);

	for (int i = 0; i < n; i++)
		chosen += best_s[i] = bound_s(b, (int)(product[i] - b->items), known_s);
	for (int i = 0; i < b->n; i++)
		if (b->items[i].flops == 0) {
			moved += bound_s(b, i, known_s);
			bytes += (double)operand_bytes(&b->items[i]);
		}
	b->b->choices(b->env.module, note_choice, &c);
	for (int i = 0; i < c.n; i++)
		if (is_first(&c, i))
			try_name(b, net, &c, c.list[i].name, best_s);
	for (int i = 0; i < n; i++)
		best += best_s[i];
	printf("{\"bound_s\": %.6f, \"products_s\": %.6f, \"chosen_s\": %.6f, \"moved_s\": %.6f, "
	       "\"moved_bytes\": %.0f}\n",
	       best + moved, best, chosen, moved, bytes);
}

static const struct net *net_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(nets) / sizeof(nets[0]); i++)
		if (strcmp(name, nets[i].name) == 0)
			return &nets[i];
	return &nets[0];
}

int main(int argc, char **argv)
{
	static struct bench b;
	const struct net *net = net_of(argc > 1 ? argv[1] : NULL);
	const char *what = argc > 6 ? argv[6] : "";
	double start, best = 1e9, passes[REPEATS];

	b.low = argc > 2 && strcmp(argv[2], "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
	b.env.threads = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;
	b.batch = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 128;
	b.repeats = argc > 5 ? (int)strtol(argv[5], NULL, 10) : 9;
	b.repeats = b.repeats < 1 ? 1 : b.repeats > REPEATS ? REPEATS : b.repeats;
	b.page = (struct step_page){
		.step = 1, .epoch = 1, .lr = 1e-6, .inv_count = 1.0 / b.batch, .loss_scale = 1
	};
	if (strcmp(what, "-t") == 0)
		setenv("OMP_WAIT_POLICY", "passive", 1); /* before the module loads OpenMP */
	b.b = load();
	caches_open(b.env.threads);
	start = now_s(&b);
	prepare(&b, net, NULL, NULL);
	if (strcmp(what, "-l") == 0) {
		pass(&b, 0);
		limit(&b, net);
		return 0;
	}
	printf("%s %s, %d threads, batch %d: %d kernels prepared in %.1f ms, %.0f MB\n", net->name, dtype_name(b.low),
	       b.env.threads, b.batch, b.n, 1e3 * (now_s(&b) - start), (double)b.used / 1e6);
	pass(&b, 0);
	if (strcmp(what, "-t") == 0) {
		sharing(&b);
		return 0;
	}
	for (int i = 0; i < b.repeats; i++) {
		passes[i] = pass(&b, i);
		best = passes[i] < best ? passes[i] : best;
	}
	if (strcmp(what, "-g") == 0)
		gaps(&b);
	else
		report(&b, strcmp(what, "-v") == 0);
	printf("%.1f images/s median, %.1f best\n", b.batch / median(passes, b.repeats), b.batch / best);
	return 0;
}
