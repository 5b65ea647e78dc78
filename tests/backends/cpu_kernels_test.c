/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_kernels_test.c: kernels of the cpu module compared with plain f64 loops written here, with every instruction set
 * of the machine, in f32 and bf16, at odd sizes. Tolerances follow from the type and the length of the sums. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "trainer/backends/backend.h"
#include "trainer/graph/pass.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/maxpool/maxpool.h"
#include "trainer/ops/xent/xent.h"

static const struct op test_ops[OP_COUNT] = {
#define OP(n) [OP_##n] = { .name = #n, .id = OP_##n },
#include "trainer/ops/ops.def"
#undef OP
};

#define OPERANDS 8

/* A tensor with its memory, and the same values in f64. */
struct cell {
	struct tensor t;
	void *data;
	double *exact;
	int64_t count;
};

struct fixture {
	const struct backend *b;
	void *module;
	struct kernel_env env;
	uint64_t seed;
};

static double noise(struct fixture *f)
{
	f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(int64_t)(f->seed >> 11) / (double)(1LL << 52) - 1;
}

static double bf16_value(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float v;

	memcpy(&v, &u, sizeof(v));
	return (double)v;
}

static uint16_t bf16_of(double x)
{
	float v = (float)x;
	uint32_t u;

	memcpy(&u, &v, sizeof(u));
	return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static double cell_get(const struct cell *c, int64_t i)
{
	switch (c->t.dtype) {
	case DTYPE_F64:
		return ((const double *)c->data)[i];
	case DTYPE_F32:
		return (double)((const float *)c->data)[i];
	case DTYPE_BF16:
		return bf16_value(((const uint16_t *)c->data)[i]);
	case DTYPE_I32:
		return ((const int32_t *)c->data)[i];
	default:
		return ((const uint8_t *)c->data)[i];
	}
}

static void cell_set(struct cell *c, int64_t i, double v)
{
	switch (c->t.dtype) {
	case DTYPE_F64:
		((double *)c->data)[i] = v;
		break;
	case DTYPE_F32:
		((float *)c->data)[i] = (float)v;
		break;
	case DTYPE_BF16:
		((uint16_t *)c->data)[i] = bf16_of(v);
		break;
	case DTYPE_I32:
		((int32_t *)c->data)[i] = (int32_t)v;
		break;
	default:
		((uint8_t *)c->data)[i] = (uint8_t)v;
	}
	c->exact[i] = cell_get(c, i);
}

static struct cell cell_new(enum dtype type, struct shape shape)
{
	struct cell c = { .t = { .name = "t", .dtype = type, .shape = shape }, .count = shape_count(&shape) };

	c.data = aligned_alloc(64, ((size_t)c.count * dtype_bytes(type) + 64) / 64 * 64);
	c.exact = calloc((size_t)c.count + 1, sizeof(double));
	assert_non_null(c.data);
	assert_non_null(c.exact);
	memset(c.data, 0xff, (size_t)c.count * dtype_bytes(type));
	return c;
}

static struct cell cell_noise(struct fixture *f, enum dtype type, struct shape shape)
{
	struct cell c = cell_new(type, shape);

	for (int64_t i = 0; i < c.count; i++)
		cell_set(&c, i, noise(f));
	return c;
}

static void cells_free(struct cell **cells, int n)
{
	for (int i = 0; i < n; i++) {
		free(cells[i]->data);
		free(cells[i]->exact);
	}
}

/* Prepares, runs and releases one kernel; inputs that it needs packed go through the pack kernel first. */
struct call {
	enum op_id op;
	const void *attr;
	struct cell *in[OPERANDS], *out[OPERANDS];
	int n_in, n_out;
};

static void *pack(struct fixture *f, struct node *n, int index, struct cell *plain)
{
	const struct kernel *k = f->b->kernel[n->op->id], *p = f->b->kernel[OP_pack];
	size_t bytes = k->pack_bytes ? k->pack_bytes(&f->env, n, index) : 0;
	struct pack_attr attr = { .consumer = n, .index = index };
	struct tensor packed = *n->in[index], master = packed, *in[] = { &master }, *out[] = { &packed };
	struct node node = {
		.op = &test_ops[OP_pack], .name = "pack", .n_in = 1, .n_out = 1, .in = in, .out = out, .attr = &attr
	};
	struct err err = ERR_INIT;
	void *memory = NULL, *state = NULL;

	if (!bytes)
		return NULL;
	packed.opaque_bytes = bytes;
	master.dtype = DTYPE_F32;
	assert_int_equal(p->prepare(&f->env, &node, &state, &err), 0);
	assert_int_equal(posix_memalign(&memory, 64, bytes), 0);
	memset(memory, 0xff, bytes);
	void *const ins[] = { plain->data }, *const outs[] = { memory };
	p->run(state, &(struct kernel_args){ .in = ins, .out = outs });
	n->in[index]->opaque_bytes = bytes;
	return memory;
}

static const struct step_page page = {
	.step = 1, .epoch = 1, .lr = 0.1, .inv_count = 0.125, .loss_scale = 1
};

static void call(struct fixture *f, const struct call *c)
{
	const struct kernel *k = f->b->kernel[c->op];
	struct tensor copies[2 * OPERANDS], *in[OPERANDS] = { 0 }, *out[OPERANDS] = { 0 };
	void *ins[OPERANDS] = { 0 }, *outs[OPERANDS] = { 0 }, *packed = NULL, *state = NULL, *workspace = NULL;
	struct node n = { .op = &test_ops[c->op],
			  .name = test_ops[c->op].name,
			  .n_in = c->n_in,
			  .n_out = c->n_out,
			  .in = in,
			  .out = out };
	uintptr_t attr = (uintptr_t)c->attr;
	struct err err = ERR_INIT;

	n.attr = (void *)attr;
	for (int i = 0; i < c->n_in; i++)
		if (c->in[i]) {
			copies[i] = c->in[i]->t;
			in[i] = &copies[i];
			ins[i] = c->in[i]->data;
		}
	for (int i = 0; i < c->n_out; i++)
		if (c->out[i]) {
			copies[OPERANDS + i] = c->out[i]->t;
			out[i] = &copies[OPERANDS + i];
			outs[i] = c->out[i]->data;
		}
	if (c->op == OP_conv || c->op == OP_conv_dgrad)
		packed = ins[1] = pack(f, &n, 1, c->in[1]);
	if (k->prepare(&f->env, &n, &state, &err))
		fail_msg("%s: %s", n.name, err.text);
	assert_int_equal(posix_memalign(&workspace, 64, n.workspace_bytes + 64), 0);
	memset(workspace, 0xff, n.workspace_bytes + 64);
	k->run(state, &(struct kernel_args){ .in = ins, .out = outs, .workspace = workspace, .page = &page });
	if (backend_take_failure(f->b, f->env.module, n.name, &err))
		fail_msg("%s: %s", n.name, err.text);
	if (k->release)
		k->release(state);
	free(workspace);
	free(packed);
}

static double unit_of(enum dtype t)
{
	return t == DTYPE_BF16 ? 1.0 / 256 : t == DTYPE_F32 ? 1.0 / (1 << 23) : 1e-12;
}

/* Every element is within one rounding of its type plus `sum` roundings of f32 relative to `size`. */
static void compare(const struct cell *c, const double *want, double sum, double size, const char *what)
{
	for (int64_t i = 0; i < c->count; i++) {
		double got = cell_get(c, i),
		       room = unit_of(c->t.dtype) * fabs(want[i]) + sum / (1 << 23) * size + 1e-30;

		if (!(fabs(got - want[i]) <= room))
			fail_msg("%s: element %lld of %lld is %.9g, not %.9g (room %.3g)", what, (long long)i,
				 (long long)c->count, got, want[i], room);
	}
}

struct conv_case {
	int64_t n, h, w, c, k;
	int kernel, stride, pad;
};

static const struct conv_case conv_cases[] = {
	{ 2, 9, 9, 1, 16, 3, 1, 1 },	 { 3, 8, 10, 16, 16, 3, 1, 1 }, { 2, 9, 7, 16, 32, 3, 2, 1 },
	{ 2, 7, 7, 32, 32, 3, 1, 1 },	 { 2, 8, 8, 32, 64, 3, 2, 1 },	{ 5, 7, 7, 64, 64, 3, 1, 1 },
	{ 2, 8, 8, 16, 32, 1, 2, 0 },	 { 2, 9, 9, 32, 64, 1, 2, 0 },	{ 2, 11, 11, 3, 8, 7, 2, 3 },
	{ 1, 6, 6, 5, 7, 3, 1, 1 },	 { 2, 5, 5, 64, 128, 1, 1, 0 }, { 1, 28, 28, 16, 16, 3, 1, 1 },
	{ 2, 14, 14, 64, 256, 1, 1, 0 }, { 1, 12, 12, 3, 64, 7, 2, 3 }, { 1, 4, 4, 256, 64, 1, 1, 0 },
	{ 130, 7, 7, 64, 64, 3, 1, 1 },	 { 1, 5, 5, 48, 80, 3, 1, 1 },	{ 2, 13, 13, 1, 16, 3, 1, 1 },
	{ 1, 3, 3, 16, 16, 3, 1, 1 },	 { 0, 8, 8, 16, 16, 3, 1, 1 },
	{ 9, 28, 28, 64, 48, 1, 1, 0 },	 { 3, 7, 5, 32, 16, 1, 2, 0 },	{ 6, 20, 22, 48, 32, 1, 2, 0 },
};

/* Naive loops over all taps: add(y index, x index, w index). */
static void conv_loops(const struct conv_case *cc, int64_t p, int64_t q, void (*add)(void *, int64_t, int64_t, int64_t),
		       void *arg)
{
	for (int64_t n = 0; n < cc->n; n++)
		for (int64_t i = 0; i < p * q * cc->k; i++)
			for (int64_t r = 0; r < cc->kernel * cc->kernel; r++) {
				int64_t k = i % cc->k, h = i / cc->k / q * cc->stride - cc->pad + r / cc->kernel;
				int64_t w = i / cc->k % q * cc->stride - cc->pad + r % cc->kernel;

				if (h < 0 || w < 0 || h >= cc->h || w >= cc->w)
					continue;
				for (int64_t c = 0; c < cc->c; c++)
					add(arg, n * p * q * cc->k + i, ((n * cc->h + h) * cc->w + w) * cc->c + c,
					    (k * cc->kernel * cc->kernel + r) * cc->c + c);
			}
}

struct conv_sums {
	const double *x, *w, *dy;
	double *y, *dx, *dw;
};

static void conv_add_all(void *arg, int64_t y, int64_t x, int64_t w)
{
	struct conv_sums *s = arg;

	s->y[y] += s->x[x] * s->w[w];
	s->dx[x] += s->dy[y] * s->w[w];
	s->dw[w] += s->dy[y] * s->x[x];
}

static void check_conv(struct fixture *f, const struct conv_case *cc, enum dtype low)
{
	int64_t p = (cc->h + 2 * cc->pad - cc->kernel) / cc->stride + 1,
		q = (cc->w + 2 * cc->pad - cc->kernel) / cc->stride + 1;
	struct shape xs = SHAPE(cc->n, cc->h, cc->w, cc->c), ys = SHAPE(cc->n, p, q, cc->k);
	struct shape ws = SHAPE(cc->k, cc->kernel, cc->kernel, cc->c);
	struct cell x = cell_noise(f, low, xs), w = cell_noise(f, DTYPE_F32, ws), dy = cell_noise(f, low, ys);
	struct cell y = cell_new(low, ys), dx = cell_new(low, xs), dw = cell_new(DTYPE_F32, ws);
	struct cell wy = cell_new(DTYPE_F64, ys), wx = cell_new(DTYPE_F64, xs), ww = cell_new(DTYPE_F64, ws);
	struct conv_attr attr = { .stride = cc->stride, .pad = cc->pad, .kernel = cc->kernel, .in_shape = xs };
	struct cell wl = w;
	double taps = cc->kernel * cc->kernel;

	wl.t.dtype = low; /* the type for the consumer; the master stays f32 */
	for (int64_t i = 0; low == DTYPE_BF16 && i < w.count; i++)
		cell_set(&w, i, bf16_value(bf16_of(w.exact[i])));
	struct conv_sums sums = { x.exact, w.exact, dy.exact, wy.exact, wx.exact, ww.exact };
	conv_loops(cc, p, q, conv_add_all, &sums);
	call(f, &(struct call){ OP_conv, &attr, { &x, &wl }, { &y }, 2, 1 });
	compare(&y, wy.exact, 1, 8 + taps * (double)cc->c, "conv");
	call(f, &(struct call){ OP_conv_dgrad, &attr, { &dy, &wl }, { &dx }, 2, 1 });
	compare(&dx, wx.exact, 1, 8 + taps * (double)cc->k, "conv_dgrad");
	call(f, &(struct call){ OP_conv_wgrad, &attr, { &x, &dy }, { &dw }, 2, 1 });
	compare(&dw, ww.exact, 1, 8 + (double)(cc->n * p * q), "conv_wgrad");
	cells_free((struct cell *[]){ &x, &w, &dy, &y, &dx, &dw, &wy, &wx, &ww }, 9);
}

static const char *const isas[] = { "base", "avx2", "avx512", "avx512_bf16" };

static void open_with(struct fixture *f, const char *isa, int threads)
{
	struct backend_opts o = { .threads = threads, .deterministic = true };
	struct err err = ERR_INIT;

	setenv("DPTRAIN_CPU_ISA", isa, 1);
	assert_int_equal(f->b->open(&o, &f->module, &err), 0);
	f->env = (struct kernel_env){ .threads = threads, .deterministic = true, .module = f->module };
}

static void each_way(struct fixture *f, void (*check)(struct fixture *f, enum dtype low))
{
	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++)
		for (int threads = 1; threads <= 3; threads++) {
			open_with(f, isas[i], threads);
			check(f, DTYPE_F32);
			if (f->b->takes(&(struct precision){ DTYPE_BF16, DTYPE_F32, NULL }))
				check(f, DTYPE_BF16);
			f->b->close(f->module);
		}
}

static void check_convs(struct fixture *f, enum dtype low)
{
	if (!f->b->takes(&(struct precision){ low, DTYPE_F32, NULL }))
		return;
	for (size_t i = 0; i < sizeof(conv_cases) / sizeof(conv_cases[0]); i++)
		check_conv(f, &conv_cases[i], low);
}

/* Convolutions depend on the instruction set only in our kernels. */
static void test_conv(void **state)
{
	static const char *const some[] = { "base", "avx512_bf16" };
	struct fixture *f = *state;

	for (int i = 0; i < 4; i++) {
		open_with(f, some[i / 2], 1 + i % 2);
		if (i > 0)
			check_convs(f, DTYPE_BF16);
		if (i < 2)
			check_convs(f, DTYPE_F32);
		f->b->close(f->module);
	}
}

/* x with its statistics, in f64. */
struct bn_truth {
	double *mean, *rstd, *stat;
};

static void bn_truth_make(struct bn_truth *t, const struct cell *x, int64_t c, double eps)
{
	int64_t rows = x->count / c;

	t->mean = calloc((size_t)c, sizeof(double));
	t->rstd = calloc((size_t)c, sizeof(double));
	t->stat = calloc((size_t)(2 * c + 1), sizeof(double));
	for (int64_t i = 0; i < x->count; i++) {
		t->stat[i % c] += x->exact[i];
		t->stat[c + i % c] += x->exact[i] * x->exact[i];
	}
	t->stat[2 * c] = (double)rows;
	for (int64_t i = 0; i < c; i++) {
		t->mean[i] = t->stat[i] / (double)rows;
		t->rstd[i] = 1 / sqrt(t->stat[c + i] / (double)rows - t->mean[i] * t->mean[i] + eps);
	}
}

static void bn_truth_free(struct bn_truth *t)
{
	free(t->mean);
	free(t->rstd);
	free(t->stat);
}

struct bn_cells {
	struct cell x, residual, gamma, beta, stat, y, dy, dy2, dstat, g, dx;
};

/* Sums run in f32 over blocks of some hundred rows: each block adds its own rounding. */
static double sum_room(double rows)
{
	return (rows > 4096 ? 4 : 1) * sqrt(rows);
}

static void check_bn_forward(struct fixture *f, struct bn_cells *b, const struct bn_attr *a, const struct bn_truth *t,
			     int64_t c)
{
	double *want = calloc((size_t)b->x.count + 1, sizeof(*want));

	call(f, &(struct call){ OP_bn_stats, a, { &b->x }, { &b->stat }, 1, 1 });
	compare(&b->stat, t->stat, 16, sum_room((double)(b->x.count / c)) + 4, "bn_stats");
	for (int64_t i = 0; i < b->stat.count; i++)
		cell_set(&b->stat, i, t->stat[i]);
	for (int64_t i = 0; i < b->x.count; i++) {
		want[i] = (b->x.exact[i] - t->mean[i % c]) * t->rstd[i % c] * b->gamma.exact[i % c] +
			  b->beta.exact[i % c];
		want[i] += a->residual ? b->residual.exact[i] : 0;
		want[i] = a->relu && want[i] < 0 ? 0 : want[i];
	}
	call(f, &(struct call){ OP_bn_apply,
				a,
				{ &b->x, &b->stat, &b->gamma, &b->beta, a->residual ? &b->residual : NULL },
				{ &b->y },
				5,
				1 });
	compare(&b->y, want, 8, 2, "bn_apply");
	for (int64_t i = 0; i < b->y.count; i++)
		b->y.exact[i] = cell_get(&b->y, i);
	free(want);
}

static void check_bn_backward(struct fixture *f, struct bn_cells *b, const struct bn_attr *a, const struct bn_truth *t,
			      int64_t c)
{
	int64_t count = b->x.count;
	double *g = calloc((size_t)count, sizeof(*g)), *sums = calloc((size_t)(2 * c), sizeof(*sums)),
	       rows = (double)(count / c);

	for (int64_t i = 0; i < count; i++) {
		double xhat = (b->x.exact[i] - t->mean[i % c]) * t->rstd[i % c];

		g[i] = b->dy.exact[i] + (a->write_g ? b->dy2.exact[i] : 0);
		g[i] = a->relu && b->y.exact[i] <= 0 ? 0 : g[i];
		sums[i % c] += g[i];
		sums[c + i % c] += g[i] * xhat;
	}
	call(f, &(struct call){ OP_bn_grad_stats,
				a,
				{ &b->dy, a->write_g ? &b->dy2 : NULL, &b->x, &b->stat, &b->gamma, &b->beta,
				  a->residual ? &b->y : NULL },
				{ &b->dstat, a->write_g ? &b->g : NULL },
				7,
				2 });
	compare(&b->dstat, sums, 16, sum_room(rows) + 8, "bn_grad_stats");
	if (a->write_g)
		compare(&b->g, g, 2, 2, "bn_grad_stats g");
	for (int64_t i = 0; i < b->dstat.count; i++)
		cell_set(&b->dstat, i, sums[i]);
	for (int64_t i = 0; i < count; i++) {
		double xhat = (b->x.exact[i] - t->mean[i % c]) * t->rstd[i % c];

		g[i] = a->write_g ? cell_get(&b->g, i) : g[i];
		g[i] = b->gamma.exact[i % c] * t->rstd[i % c] *
		       (g[i] - sums[i % c] / rows - xhat * sums[c + i % c] / rows);
	}
	struct bn_attr apply = *a;
	apply.relu = a->relu && !a->write_g;
	call(f, &(struct call){ OP_bn_grad_apply,
				&apply,
				{ a->write_g ? &b->g : &b->dy, &b->x, &b->stat, &b->dstat, &b->gamma, &b->beta },
				{ &b->dx },
				6,
				1 });
	compare(&b->dx, g, 16, 4, "bn_grad_apply");
	free(g);
	free(sums);
}

static void check_bn(struct fixture *f, enum dtype low, struct shape shape, int flags)
{
	struct bn_attr a = {
		.eps = 1e-5, .momentum = 0.1, .relu = flags & 1, .residual = flags & 2, .write_g = flags & 2
	};
	int64_t c = shape.dim[3];
	struct shape one = SHAPE(c), two = SHAPE(2 * c), three = SHAPE(2 * c + 1);
	struct bn_cells b = {
		cell_noise(f, low, shape),     cell_noise(f, low, shape),  cell_noise(f, DTYPE_F32, one),
		cell_noise(f, DTYPE_F32, one), cell_new(DTYPE_F64, three), cell_new(low, shape),
		cell_noise(f, low, shape),     cell_noise(f, low, shape),  cell_new(DTYPE_F64, two),
		cell_new(low, shape),	       cell_new(low, shape),
	};
	struct bn_truth t;

	bn_truth_make(&t, &b.x, c, a.eps);
	check_bn_forward(f, &b, &a, &t, c);
	check_bn_backward(f, &b, &a, &t, c);
	bn_truth_free(&t);
	cells_free((struct cell *[]){ &b.x, &b.residual, &b.gamma, &b.beta, &b.stat, &b.y, &b.dy, &b.dy2, &b.dstat,
				      &b.g, &b.dx },
		   11);
}

static void check_bns(struct fixture *f, enum dtype low)
{
	for (int flags = 0; flags < 4; flags++) {
		check_bn(f, low, SHAPE(3, 9, 9, 16), flags);
		check_bn(f, low, SHAPE(3, 5, 5, 32), flags);
		check_bn(f, low, SHAPE(3, 5, 5, 64), flags);
		check_bn(f, low, SHAPE(2, 3, 5, 7), flags);
		check_bn(f, low, SHAPE(2, 8, 8, 40), flags);
		check_bn(f, low, SHAPE(8, 14, 14, 96), flags);
	}
}

static void test_bn(void **state)
{
	each_way(*state, check_bns);
}

/* Large tensors are written past the caches. */
static void test_bn_large(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		open_with(f, i ? "avx512_bf16" : "base", 2);
		check_bn(f, DTYPE_F32, SHAPE(1, 128, 129, 64), 1);
		check_bn(f, DTYPE_F32, SHAPE(1, 128, 65, 128), 3);
		if (i && f->b->takes(&(struct precision){ DTYPE_BF16, DTYPE_F32, NULL }))
			check_bn(f, DTYPE_BF16, SHAPE(2, 128, 129, 64), 3);
		f->b->close(f->module);
	}
}

static void check_gelu(struct fixture *f, enum dtype low)
{
	struct shape s = SHAPE(1003);
	struct cell x = cell_new(low, s), dy = cell_noise(f, low, s), y = cell_new(low, s), dx = cell_new(low, s);
	double *want = calloc((size_t)x.count, sizeof(*want)), *grad = calloc((size_t)x.count, sizeof(*grad));

	for (int64_t i = 0; i < x.count; i++) {
		cell_set(&x, i, (double)(i - 500) / 25);
		double v = x.exact[i], u = sqrt(2 / M_PI) * (v + 0.044715 * v * v * v),
		       du = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * v * v);

		want[i] = 0.5 * v * (1 + tanh(u));
		grad[i] = dy.exact[i] * (0.5 * (1 + tanh(u)) + 0.5 * v * (1 - tanh(u) * tanh(u)) * du);
	}
	call(f, &(struct call){ OP_gelu, NULL, { &x }, { &y }, 1, 1 });
	compare(&y, want, 2, 1, "gelu");
	call(f, &(struct call){ OP_gelu_grad, NULL, { &dy, &x }, { &dx }, 2, 1 });
	compare(&dx, grad, 8, 1, "gelu_grad");
	free(want);
	free(grad);
	cells_free((struct cell *[]){ &x, &dy, &y, &dx }, 4);
}

static void test_gelu(void **state)
{
	each_way(*state, check_gelu);
}

static void check_linear(struct fixture *f, enum dtype low, int64_t n, int64_t c, int64_t k)
{
	struct cell x = cell_noise(f, low, SHAPE(n, c)), w = cell_noise(f, low, SHAPE(k, c)),
		    b = cell_noise(f, DTYPE_F32, SHAPE(k));
	struct cell dy = cell_noise(f, low, SHAPE(n, k)), y = cell_new(DTYPE_F32, SHAPE(n, k)),
		    dx = cell_new(low, SHAPE(n, c));
	struct cell dw = cell_new(DTYPE_F32, SHAPE(k, c)), db = cell_new(DTYPE_F32, SHAPE(k));
	struct cell wy = cell_new(DTYPE_F64, SHAPE(n, k)), wx = cell_new(DTYPE_F64, SHAPE(n, c)),
		    ww = cell_new(DTYPE_F64, SHAPE(k, c));
	struct cell wb = cell_new(DTYPE_F64, SHAPE(k));

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++) {
			wy.exact[i * k + j] = b.exact[j];
			wb.exact[j] += dy.exact[i * k + j];
			for (int64_t l = 0; l < c; l++) {
				wy.exact[i * k + j] += x.exact[i * c + l] * w.exact[j * c + l];
				wx.exact[i * c + l] += dy.exact[i * k + j] * w.exact[j * c + l];
				ww.exact[j * c + l] += dy.exact[i * k + j] * x.exact[i * c + l];
			}
		}
	call(f, &(struct call){ OP_linear, NULL, { &x, &w, &b }, { &y }, 3, 1 });
	compare(&y, wy.exact, 1, 8 + (double)c, "linear");
	call(f, &(struct call){ OP_linear_dgrad, NULL, { &dy, &w }, { &dx }, 2, 1 });
	compare(&dx, wx.exact, 1, 8 + (double)k, "linear_dgrad");
	call(f, &(struct call){ OP_linear_wgrad, NULL, { &x, &dy }, { &dw, &db }, 2, 2 });
	compare(&dw, ww.exact, 1, 8 + (double)n, "linear_wgrad");
	compare(&db, wb.exact, 1, 8 + (double)n, "linear_wgrad bias");
	cells_free((struct cell *[]){ &x, &w, &b, &dy, &y, &dx, &dw, &db, &wy, &wx, &ww, &wb }, 12);
}

static void check_linears(struct fixture *f, enum dtype low)
{
	check_linear(f, low, 128, 64, 10);
	check_linear(f, low, 5, 33, 7);
	check_linear(f, low, 16, 512, 100);
	check_linear(f, low, 0, 16, 4);
}

static void test_linear(void **state)
{
	each_way(*state, check_linears);
}

/* Operands processed panel by panel when bf16 is computed in f32: three panels of w, two of dy. */
static void test_linear_large(void **state)
{
	struct fixture *f = *state;

	open_with(f, "avx2", 2);
	check_linear(f, DTYPE_BF16, 8, 64, 140000);
	check_linear(f, DTYPE_BF16, 40, 8, 120000);
	f->b->close(f->module);
}

static int setup(void **state)
{
	static struct fixture f = { .seed = 1 };
	const char *build = getenv("builddir");
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/.libs/dptrain_cpu.so", build ? build : ".");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	f.b = handle ? dlsym(handle, BACKEND_SYMBOL) : NULL;
	if (!f.b) {
		printf("skipped: the cpu module does not load (%s)\n", dlerror());
		exit(77);
	}
	*state = &f;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conv),
		cmocka_unit_test(test_bn),
		cmocka_unit_test(test_bn_large),
		cmocka_unit_test(test_gelu),
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_linear_large),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
