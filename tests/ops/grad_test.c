/* SPDX-License-Identifier: Apache-2.0 */
/* grad_test.c: gradients of the ref kernels compared with central differences, in f64, on small networks that together
 * use every op with a gradient, before and after fusing. A parameter replaces the images too, so that gradients of
 * every kind of operand are checked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/exec.h"
#include "trainer/graph/pass.h"
#include "trainer/graph/rng.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/attention/attention.h"
#include "trainer/ops/avgpool/avgpool.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/embed/embed.h"
#include "trainer/ops/gelu/gelu.h"
#include "trainer/ops/glu/glu.h"
#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/ops/linear/linear.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/maxpool/maxpool.h"
#include "trainer/ops/relu/relu.h"
#include "trainer/ops/rope/rope.h"
#include "trainer/ops/scale/scale.h"
#include "trainer/ops/xent/xent.h"

#define STEP 1e-5
#define TOLERANCE 1e-7 /* relative to the parameter's largest gradient: truncation is STEP^2, rounding 1e-16 / STEP */
#define CHECKED_MAX 60 /* elements per parameter */
#define CLASSES 7
#define IMAGES 3

static const struct precision f64 = { DTYPE_F64, DTYPE_F64, NULL };

static struct tensor *param(struct graph *g, const char *name, struct shape shape)
{
	return graph_tensor(g, &(struct tensor){ .name = name,
						 .kind = TENSOR_PARAM,
						 .dtype = DTYPE_F32,
						 .shape = shape,
						 .life = LIFE_PERSISTENT });
}

static struct tensor *stat(struct graph *g, const char *name, int64_t n)
{
	return graph_tensor(g, &(struct tensor){ .name = name,
						 .kind = TENSOR_STAT,
						 .dtype = DTYPE_F32,
						 .shape = SHAPE(n),
						 .life = LIFE_PERSISTENT });
}

static struct tensor *conv(struct graph *g, struct tensor *x, const char *name, int64_t k, int kernel, int stride)
{
	struct tensor *w = param(g, graph_printf(g, "%s.weight", name), SHAPE(k, kernel, kernel, x->shape.dim[3]));

	return conv_add(g, x, w, stride, kernel / 2);
}

static struct tensor *norm(struct graph *g, struct tensor *x, const char *name)
{
	int64_t c = x->shape.dim[3];
	struct bn_tensors t = { param(g, graph_printf(g, "%s.weight", name), SHAPE(c)),
				param(g, graph_printf(g, "%s.bias", name), SHAPE(c)),
				stat(g, graph_printf(g, "%s.mean", name), c),
				stat(g, graph_printf(g, "%s.var", name), c) };

	return bn_add(g, x, &t);
}

static void head(struct graph *g, struct tensor *x, double smoothing)
{
	struct tensor *labels = graph_tensor(g, &(struct tensor){ .name = "labels",
								  .kind = TENSOR_INPUT,
								  .dtype = DTYPE_I32,
								  .shape = SHAPE(x->shape.dim[0]),
								  .life = LIFE_MICRO });

	x = avgpool_add(g, x);
	x = linear_add(g, x, param(g, "fc.weight", SHAPE(CLASSES, x->shape.dim[1])),
		       param(g, "fc.bias", SHAPE(CLASSES)));
	xent_add(g, x, labels, smoothing);
}

static struct tensor *images(struct graph *g, int64_t h, int64_t w, int64_t c)
{
	return param(g, "images", SHAPE(IMAGES, h, w, c));
}

/* Stem with a pool, then a block whose shortcut has its own convolution and norm. */
static void net_relu(struct graph *g)
{
	struct maxpool_attr pool = { .kernel = 3, .stride = 2, .pad = 1 };
	struct tensor *x = relu_add(g, norm(g, conv(g, images(g, 9, 7, 2), "a", 4, 3, 1), "an")), *y, *z;

	x = maxpool_add(g, x, &pool);
	y = relu_add(g, norm(g, conv(g, x, "b", 5, 3, 2), "bn"));
	y = norm(g, conv(g, y, "c", 6, 3, 1), "cn");
	z = norm(g, conv(g, x, "d", 6, 1, 2), "dn");
	head(g, relu_add(g, add_add(g, y, z)), 0.1);
}

/* A stem that feeds a block and its shortcut, then a second such block: gradients join with and without a mask. */
static void net_identity(struct graph *g)
{
	struct tensor *x = relu_add(g, norm(g, conv(g, images(g, 6, 5, 2), "a", 4, 3, 1), "an")), *y;

	y = norm(g, conv(g, x, "b", 4, 3, 1), "bn");
	x = relu_add(g, add_add(g, y, x));
	y = norm(g, conv(g, x, "c", 4, 3, 1), "cn");
	x = relu_add(g, add_add(g, x, y));
	head(g, x, 0);
}

static void net_gelu(struct graph *g)
{
	struct tensor *x = gelu_add(g, norm(g, conv(g, images(g, 6, 5, 2), "a", 4, 3, 1), "an")), *y;

	y = norm(g, conv(g, x, "b", 4, 3, 1), "bn");
	head(g, gelu_add(g, add_add(g, y, x)), 0.1);
}

/* Without norms: the ReLU alone, and a tensor that is used three times. */
static void net_plain(struct graph *g)
{
	struct tensor *x = relu_add(g, conv(g, images(g, 5, 5, 3), "a", 4, 3, 1)), *y;

	y = add_add(g, relu_add(g, conv(g, x, "b", 4, 1, 1)), x);
	head(g, add_add(g, gelu_add(g, x), y), 0);
}

#define SEQ 5
#define WIDTH 6

static struct tensor *token_input(struct graph *g, const char *name)
{
	return graph_tensor(g, &(struct tensor){ .name = name,
						 .kind = TENSOR_INPUT,
						 .dtype = DTYPE_I32,
						 .shape = SHAPE(IMAGES, SEQ),
						 .life = LIFE_MICRO });
}

static struct tensor *layernorm(struct graph *g, struct tensor *x, struct tensor *delta, const char *name,
				struct tensor **ret_sum)
{
	struct layernorm_tensors t = { .gamma = param(g, graph_printf(g, "%s.weight", name), SHAPE(WIDTH)),
				       .beta = param(g, graph_printf(g, "%s.bias", name), SHAPE(WIDTH)),
				       .eps = LAYERNORM_EPS };

	return layernorm_add(g, x, delta, &t, ret_sum);
}

static struct tensor *low(struct graph *g, struct tensor *x, const char *name, int64_t k, bool bias)
{
	struct tensor *w = param(g, graph_printf(g, "%s.weight", name), SHAPE(k, x->shape.dim[1]));

	return linear_add_low(g, x, w, bias ? param(g, graph_printf(g, "%s.bias", name), SHAPE(k)) : NULL);
}

/* One block of a language model; the head uses the embedding's table or a separate one. */
static void net_words(struct graph *g, bool tied, double p)
{
	struct attention_attr attr = { .heads = 2, .seq = SEQ, .dropout.p = p };
	struct tensor *tokens = token_input(g, "tokens"), *targets = token_input(g, "targets");
	struct tensor *wte = param(g, "wte.weight", SHAPE(CLASSES, WIDTH)), *x, *y;

	x = embed_add(g, tokens, wte, param(g, "wpe.weight", SHAPE(SEQ + 1, WIDTH)), 1);
	x = dropout_add(g, x, p, SEQ * WIDTH, "drop");
	y = layernorm(g, x, NULL, "ln_1", NULL);
	y = attention_add(g, low(g, y, "qkv", 3 * WIDTH, true), NULL, &attr, "attn");
	y = dropout_add(g, low(g, y, "proj", WIDTH, true), p, SEQ * WIDTH, "resid");
	y = layernorm(g, x, y, "ln_2", &x);
	y = low(g, gelu_add(g, low(g, y, "fc", 2 * WIDTH, false)), "back", WIDTH, false);
	x = layernorm(g, x, y, "ln_f", NULL);
	lmhead_add(g, x, tied ? wte : param(g, "head.weight", SHAPE(CLASSES, WIDTH)), targets,
		   &(struct lmhead_opts){ .logits = false });
}

static void net_tied(struct graph *g)
{
	net_words(g, true, 0);
}

static void net_dropout(struct graph *g)
{
	net_words(g, false, 0.3);
}

static struct tensor *rms(struct graph *g, struct tensor *x, const char *name, int64_t n)
{
	struct layernorm_tensors t = { .gamma = param(g, graph_printf(g, "%s.weight", name), SHAPE(n)),
				       .eps = 0.1,
				       .shift = 0.3 };

	return layernorm_add(g, x, NULL, &t, NULL);
}

#define HEAD 4

/* Two blocks of a decoder: with three products and norms of heads, and with all in one product and a window. */
static void net_decoder(struct graph *g)
{
	struct attention_attr attr = { .heads = 2, .seq = SEQ };
	struct rope_attr rope = { .heads = 2,
				  .shared = 1,
				  .d = HEAD,
				  .seq = SEQ,
				  .rotary = HEAD,
				  .query_scale = 0.5,
				  .factor = 1.1,
				  .frequency = { 1, 0.1 } };
	struct tensor *tokens = token_input(g, "tokens"), *targets = token_input(g, "targets");
	struct tensor *wte = param(g, "wte.weight", SHAPE(CLASSES, WIDTH)), *qkv[4] = { NULL }, *x, *y;

	x = embed_add(g, tokens, wte, NULL, 0.7);
	y = rms(g, x, "in", WIDTH);
	qkv[0] = rms(g, low(g, y, "q", 2 * HEAD, true), "q_norm", HEAD);
	qkv[1] = rms(g, low(g, y, "k", HEAD, false), "k_norm", HEAD);
	qkv[2] = low(g, y, "v", HEAD, false);
	y = low(g, attention_add(g, rope_add(g, qkv, &rope, "rope"), NULL, &attr, "attn"), "o", WIDTH, false);
	y = glu_add(g, low(g, y, "gate", 5, false), low(g, y, "up", 5, false), GLU_SILU);
	x = add_add(g, x, low(g, y, "down1", WIDTH, false));
	rope.rotary = 2;
	qkv[0] = low(g, x, "qkv", 4 * HEAD, false);
	qkv[1] = qkv[2] = NULL;
	attr.window = 2;
	y = attention_add(g, rope_add(g, qkv, &rope, "rope2"), NULL, &attr, "attn2");
	y = glu_add(g, scale_add(g, low(g, y, "gate_up", 10, false), 1.5), NULL, GLU_GELU);
	y = low(g, y, "down", WIDTH, false);
	lmhead_add(g, rms(g, y, "out", WIDTH), wte, targets, &(struct lmhead_opts){ .logits = false });
}

struct net {
	const char *name;
	void (*build)(struct graph *g);
};

static const struct net nets[] = {
	{ "relu", net_relu }, { "identity", net_identity }, { "gelu", net_gelu },	{ "plain", net_plain },
	{ "tied", net_tied }, { "dropout", net_dropout },   { "decoder", net_decoder },
};

#define NETS ((int)(sizeof(nets) / sizeof(nets[0])))

static struct graph *make(const struct net *net, bool fused)
{
	struct graph *g = graph_new(true);
	struct err err = ERR_INIT;

	assert_non_null(g);
	net->build(g);
	if (pass_grad(g, &op_add, &err) || (fused && pass_fuse(g, &err)) || pass_precision(g, &f64, &op_cast, &err) ||
	    pass_shape(g, &err))
		fail_msg("%s: %s", net->name, err.text);
	return g;
}

static void draw(const struct tensor *t, double *values)
{
	struct rng_key key = { 7, rng_stream(t->name) };
	bool label = t->kind == TENSOR_INPUT, gain = t->shape.ndim == 1;

	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		values[i] = label ? (double)rng_below(key, (uint64_t)i, CLASSES)
				  : (gain ? 0.7 : 0) + 0.6 * rng_normal(key, (uint64_t)i);
}

static void set_inputs(struct exec *e, const struct graph *g)
{
	for (int i = 0; i < g->n_tensors; i++) {
		const struct tensor *t = g->tensors[i];
		double *values;

		if (t->life != LIFE_PERSISTENT && t->kind != TENSOR_INPUT)
			continue;
		values = test_calloc((size_t)shape_count(&t->shape) + 1, sizeof(double));
		draw(t, values);
		exec_put(e, t, values);
		test_free(values);
	}
}

static const struct step_page page = { .inv_count = 1.0 / IMAGES, .loss_scale = 1 };

static double loss(struct exec *e, const struct graph *g)
{
	double result[XENT_RESULTS];
	struct err err = ERR_INIT;

	if (exec_run(e, &page, &err) != 0)
		fail_msg("%s", err.text);
	exec_get(e, g->loss, result);
	return result[XENT_LOSS_SUM] * page.inv_count;
}

static double largest(const double *v, int64_t n)
{
	double max = 0;

	for (int64_t i = 0; i < n; i++)
		max = fmax(max, fabs(v[i]));
	return max;
}

static void check_param(struct exec *e, const struct graph *g, const struct tensor *p)
{
	int64_t n = shape_count(&p->shape), stride = n / CHECKED_MAX + 1;
	double *values = test_calloc((size_t)n, sizeof(double)), *grad = test_calloc((size_t)n, sizeof(double));

	assert_non_null(p->grad);
	assert_int_equal(p->grad->kind, TENSOR_GRAD);
	loss(e, g);
	exec_get(e, p, values);
	exec_get(e, p->grad, grad);
	for (int64_t i = 0; i < n; i += stride) {
		double was = values[i], up, down, slope;

		values[i] = was + STEP;
		exec_put(e, p, values);
		up = loss(e, g);
		values[i] = was - STEP;
		exec_put(e, p, values);
		down = loss(e, g);
		values[i] = was;
		slope = (up - down) / (2 * STEP);
		if (!(fabs(slope - grad[i]) <= TOLERANCE * (largest(grad, n) + 1e-3)))
			fail_msg("%s[%lld]: gradient %.12g, central difference %.12g", p->name, (long long)i, grad[i],
				 slope);
	}
	exec_put(e, p, values);
	test_free(values);
	test_free(grad);
}

static void test_net(const struct net *net, bool fused)
{
	struct graph *g = make(net, fused);
	struct exec *e;
	struct err err = ERR_INIT;
	struct rig rig;

	assert_int_equal(rig_open(&rig, &backend_ref, 1, &f64, &err), 0);
	if (exec_new(&e, g, &rig, false, &err) != 0)
		fail_msg("%s", err.text);
	set_inputs(e, g);
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_PARAM)
			check_param(e, g, g->tensors[i]);
	assert_null(exec_damage(e));
	exec_free(e);
	rig_close(&rig);
	graph_free(g);
}

static void test_gradients(void **state)
{
	(void)state;
	for (int i = 0; i < NETS; i++)
		test_net(&nets[i], false);
}

static void test_fused_gradients(void **state)
{
	(void)state;
	for (int i = 0; i < NETS; i++)
		test_net(&nets[i], true);
}

static int count(const struct graph *g, const struct op *op)
{
	int n = 0;

	for (int i = 0; i < g->n_nodes; i++)
		n += g->nodes[i]->op == op;
	return n;
}

/* Fusing leaves no node that the norms can absorb. */
static void test_fused_away(void **state)
{
	struct graph *g = make(&nets[0], true);

	(void)state;
	assert_int_equal(count(g, &op_relu) + count(g, &op_relu_grad), 0);
	assert_int_equal(count(g, &op_add), 1); /* the sum of two gradients in front of the pool */
	graph_free(g);
	g = make(&nets[1], true);
	assert_int_equal(count(g, &op_relu) + count(g, &op_relu_grad) + count(g, &op_add), 0);
	graph_free(g);
	g = make(&nets[2], true);
	assert_int_equal(count(g, &op_add), 1); /* the sum of two gradients in front of a GELU */
	graph_free(g);
}

/* The nets above use every op that has a gradient, and every op that gradients consist of. */
static void test_coverage(void **state)
{
	bool seen[OP_COUNT] = { false };

	(void)state;
	for (int i = 0; i < NETS; i++) {
		struct graph *g = make(&nets[i], false);

		for (int k = 0; k < g->n_nodes; k++)
			seen[g->nodes[k]->op->id] = true;
		graph_free(g);
	}
	for (int i = 0; i < OP_COUNT; i++)
		if ((ops_table[i]->grad || strstr(ops_table[i]->name, "grad")) && !seen[i])
			fail_msg("no net of this test uses %s", ops_table[i]->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_fused_gradients),
		cmocka_unit_test(test_fused_away),
		cmocka_unit_test(test_coverage),
	};

	return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
