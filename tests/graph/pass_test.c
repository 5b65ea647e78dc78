/* SPDX-License-Identifier: Apache-2.0 */
/* pass_test.c: the result of each pass on complete models: names and shapes of the parameters compared with a list
 * written from torchvision's definition, types, casts, packs, gradients, and the errors of impossible configurations.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/net.h"
#include "trainer/graph/pass.h"
#include "trainer/graph/rng.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/ops.h"

#define F32_F32                                                                                                        \
	{                                                                                                              \
		DTYPE_F32, DTYPE_F32, NULL                                                                             \
	}
#define BF16_F32                                                                                                       \
	{                                                                                                              \
		DTYPE_BF16, DTYPE_F32, NULL                                                                            \
	}
#define F64_F64                                                                                                        \
	{                                                                                                              \
		DTYPE_F64, DTYPE_F64, NULL                                                                             \
	}

/* "64,3,7,7" for a convolution's weights: PyTorch stores [K,C,R,S], this program [K,R,S,C]. */
static void torch_shape(const struct tensor *t, char *text, size_t n)
{
	static const int conv_order[4] = { 0, 3, 1, 2 };
	size_t len = 0;

	for (int i = 0; i < t->shape.ndim; i++) {
		int d = t->shape.ndim == 4 ? conv_order[i] : i;

		len += (size_t)snprintf(text + len, n - len, "%s%lld", i ? "," : "", (long long)t->shape.dim[d]);
	}
}

static void check_names(const char *model)
{
	struct net_opts o = { .model = model, .batch = 2, .training = true, .precision = F32_F32 };
	struct net net;
	char path[512], line[256], want[256], shape[128];
	int at = 0;
	FILE *f;

	net_make(&net, &o);
	snprintf(path, sizeof(path), "%s/tests/graph/golden/%s.params", getenv("srcdir") ? getenv("srcdir") : ".",
		 model);
	f = fopen(path, "r");
	assert_non_null(f);
	for (; fgets(line, sizeof(line), f); at++) {
		while (at < net.g->n_tensors && net.g->tensors[at]->kind != TENSOR_PARAM &&
		       net.g->tensors[at]->kind != TENSOR_STAT)
			at++;
		assert_true(at < net.g->n_tensors);
		torch_shape(net.g->tensors[at], shape, sizeof(shape));
		snprintf(want, sizeof(want), "%s %s\n", net.g->tensors[at]->name, shape);
		assert_string_equal(want, line);
	}
	fclose(f);
	for (; at < net.g->n_tensors; at++)
		assert_true(net.g->tensors[at]->kind != TENSOR_PARAM && net.g->tensors[at]->kind != TENSOR_STAT);
	net_free(&net);
}

static void test_names(void **state)
{
	(void)state;
	check_names("resnet18");
	check_names("resnet34");
	check_names("resnet50");
	check_names("resnet20");
}

static void test_parameter_counts(void **state)
{
	static const struct {
		const char *model;
		int64_t count;
	} known[] = { { "resnet18", 11689512 },
		      { "resnet34", 21797672 },
		      { "resnet50", 25557032 },
		      { "resnet20", 272474 },
		      { "resnet56", 855770 } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct net_opts o = { .model = known[i].model, .batch = 1, .precision = F32_F32 };
		struct net net;

		net_make(&net, &o);
		assert_int_equal(model_parameter_count(net.g), known[i].count);
		net_free(&net);
	}
}

static int count(const struct graph *g, const struct op *op)
{
	int n = 0;

	for (int i = 0; i < g->n_nodes; i++)
		n += g->nodes[i]->op == op;
	return n;
}

/* Every parameter has its gradient, in the master type; none is computed for the images. */
static void test_gradients(void **state)
{
	struct net_opts o = { .model = "resnet18", .batch = 2, .image = 64, .training = true, .precision = BF16_F32 };
	struct net net;

	(void)state;
	net_make(&net, &o);
	for (int i = 0; i < net.g->n_tensors; i++) {
		const struct tensor *t = net.g->tensors[i];

		if (t->kind != TENSOR_PARAM)
			continue;
		assert_non_null(t->grad);
		assert_int_equal(t->grad->kind, TENSOR_GRAD);
		assert_int_equal(t->grad->dtype, DTYPE_F32);
		assert_true(shape_equal(&t->grad->shape, &t->shape));
		assert_int_equal(t->decay, t->shape.ndim > 1);
	}
	assert_null(graph_find(net.g, "images")->grad);
	assert_null(graph_find(net.g, "conv1.dx"));
	assert_int_equal(count(net.g, &op_conv_wgrad), count(net.g, &op_conv));
	assert_int_equal(count(net.g, &op_conv_dgrad), count(net.g, &op_conv) - 1);
	net_free(&net);
}

/* A weight is cast once however often it is used; sums are f64, inputs of the loss are master. */
static void test_types(void **state)
{
	struct net_opts o = { .model = "resnet18", .batch = 2, .image = 64, .training = true, .precision = BF16_F32 };
	struct net net;

	(void)state;
	net_make(&net, &o);
	/* the images, each convolution's weight, the last weight, the logits' gradient */
	assert_int_equal(count(net.g, &op_cast), 1 + count(net.g, &op_conv) + 1 + 1);
	assert_int_equal(graph_find(net.g, "conv1")->dtype, DTYPE_BF16);
	assert_int_equal(graph_find(net.g, "layer1.0.add.relu.dx")->dtype, DTYPE_BF16);
	assert_int_equal(graph_find(net.g, "logits")->dtype, DTYPE_F32);
	assert_int_equal(graph_find(net.g, "bn1.stat")->dtype, DTYPE_F64);
	assert_int_equal(graph_find(net.g, "bn1.running_var")->dtype, DTYPE_F32);
	assert_int_equal(graph_find(net.g, "conv1.weight.momentum")->dtype, DTYPE_F32);
	assert_int_equal(graph_find(net.g, "result")->dtype, DTYPE_F64);
	net_free(&net);
	o.precision = (struct precision)F64_F64;
	net_make(&net, &o);
	assert_int_equal(count(net.g, &op_cast), 0);
	assert_int_equal(graph_find(net.g, "images")->dtype, DTYPE_F64);
	net_free(&net);
}

/* The end of a block is one node in each direction: the only remaining ReLU or sum is the sum of gradients before the
 * pool. */
static void test_fused(void **state)
{
	struct net_opts o = { .model = "resnet50", .batch = 2, .image = 64, .training = true, .precision = F32_F32 };
	struct net net;

	(void)state;
	net_make(&net, &o);
	assert_int_equal(count(net.g, &op_relu) + count(net.g, &op_relu_grad), 0);
	assert_int_equal(count(net.g, &op_add), 1);
	net_free(&net);
	o.training = false;
	net_make(&net, &o);
	assert_int_equal(count(net.g, &op_relu) + count(net.g, &op_add), 0);
	assert_int_equal(count(net.g, &op_bn_apply), 53);
	net_free(&net);
}

static size_t weight_pack(const struct kernel_env *env, const struct node *n, int index)
{
	(void)env;
	return index == 1 ? tensor_bytes(n->in[index]) + 64 : 0;
}

/* Packs read the master, are placed directly before their consumer and leave no cast. */
static void test_layout(void **state)
{
	static const struct kernel plain = { 0 }, packing = { .pack_bytes = weight_pack };
	const struct kernel *kernels[OP_COUNT];
	struct kernel_env env = { 0 };
	struct layout_backend b = { .kernels = kernels, .env = &env, .pack = &op_pack, .cast = &op_cast };
	struct net_opts o = { .model = "resnet20", .batch = 2, .training = true, .precision = BF16_F32 };
	struct net net;
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < OP_COUNT; i++)
		kernels[i] = i == OP_conv || i == OP_conv_dgrad ? &packing : &plain;
	net_make(&net, &o);
	assert_int_equal(pass_layout(net.g, &b, &err), 0);
	assert_int_equal(count(net.g, &op_pack), count(net.g, &op_conv) + count(net.g, &op_conv_dgrad));
	assert_int_equal(count(net.g, &op_cast), 3); /* images, last weight, logits' gradient */
	for (int i = 0; i < net.g->n_nodes; i++) {
		const struct node *n = net.g->nodes[i];
		const struct pack_attr *a = n->attr;

		assert_int_equal(n->id, i);
		if (n->op != &op_pack)
			continue;
		assert_int_equal(n->in[0]->kind, TENSOR_PARAM);
		assert_ptr_equal(a->consumer, net.g->nodes[i + 1]);
		assert_ptr_equal(a->consumer->in[a->index], n->out[0]);
		assert_int_equal(n->out[0]->dtype, DTYPE_BF16);
	}
	assert_int_equal(pass_shape(net.g, &err), 0);
	net_free(&net);
}

static int try_build(const char *model, const struct model_config *c, int64_t batch, struct err *err)
{
	struct graph *g = graph_new(true);
	int rc = model_build(model_find(model), g, c, batch, err);

	graph_free(g);
	return rc;
}

static void test_bad_sizes(void **state)
{
	struct model_config c = model_find("resnet20")->defaults;
	struct err err = ERR_INIT;

	(void)state;
	assert_null(model_find("resnet19"));
	c.classes = 1;
	assert_int_equal(try_build("resnet20", &c, 2, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "classes"));
	c.classes = 10;
	c.image_w = 0;
	assert_int_equal(try_build("resnet20", &c, 2, &err), ERR_USAGE);
	c.image_w = 1;
	c.image_h = 1;
	assert_int_equal(try_build("resnet20", &c, 2, &err), 0);
	assert_int_equal(try_build("resnet20", &c, -1, &err), ERR_USAGE);
	c.label_smoothing = 1;
	assert_int_equal(try_build("resnet20", &c, 2, &err), ERR_USAGE);
}

/* The first failure is kept, later calls do nothing, and the text names the node. */
static void test_first_failure(void **state)
{
	struct graph *g = graph_new(true);
	struct tensor *x = graph_act(g, DTYPE_F32, SHAPE(1, 4, 4, 3), "x"),
		      *w = graph_act(g, DTYPE_F32, SHAPE(8, 3, 3, 5), "c.w");
	struct tensor *y = conv_add(g, x, w, 1, 1);
	struct err err = ERR_INIT;

	(void)state;
	assert_null(y);
	assert_true(graph_failed(g));
	assert_non_null(strstr(g->err.text, "c (conv): weights"));
	assert_null(conv_add(g, y, w, 1, 1));
	assert_int_equal(pass_grad(g, &op_add, &err), ERR_USAGE);
	assert_string_equal(err.text, g->err.text);
	graph_free(g);
}

/* Spreading a tail gives the order of moving its nodes one by one. */
static void test_spread(void **state)
{
	static const struct op bare = { .name = "bare" };
	enum { ALL = 40, FROM = 15 };
	struct graph *one = graph_new(true), *all = graph_new(true);
	struct node *nodes[ALL];
	int after[ALL - FROM];

	(void)state;
	for (int i = 0; i < ALL; i++) {
		nodes[i] = graph_node(one, &(struct node_spec){ .op = &bare });
		assert_non_null(graph_node(all, &(struct node_spec){ .op = &bare }));
	}
	for (int j = 0; j < ALL - FROM; j++)
		after[j] = j * 7 % (FROM + 1) - 1;
	for (int j = 0; j < ALL - FROM; j++)
		graph_move(one, nodes[FROM + j]->id, after[j] < 0 ? 0 : nodes[after[j]]->id + 1);
	graph_spread(all, FROM, after);
	for (int i = 0; i < ALL; i++) {
		assert_string_equal(one->nodes[i]->name, all->nodes[i]->name);
		assert_int_equal(all->nodes[i]->id, i);
	}
	graph_free(one);
	graph_free(all);
}

/* The reference results published by the generator's authors. */
static void test_rng(void **state)
{
	static const struct {
		uint64_t counter, stream, seed;
		uint32_t want[4];
	} known[] = {
		{ 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ 0x85a308d3243f6a88,
		  0x0370734413198a2e,
		  0x299f31d0a4093822,
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	double sum = 0, squares = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t got[4];

		rng_block((struct rng_key){ known[i].seed, known[i].stream }, known[i].counter, got);
		assert_memory_equal(got, known[i].want, sizeof(got));
	}
	for (uint64_t i = 0; i < 100000; i++) {
		double v = rng_normal((struct rng_key){ 1, 2 }, i);

		sum += v;
		squares += v * v;
		assert_true(rng_below((struct rng_key){ 1, 3 }, i, 7) < 7);
		assert_true(rng_uniform((struct rng_key){ 1, 3 }, i) < 1);
	}
	assert_true(sum / 1e5 > -0.02 && sum / 1e5 < 0.02 && squares / 1e5 > 0.97 && squares / 1e5 < 1.03);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	  cmocka_unit_test(test_parameter_counts),
		cmocka_unit_test(test_gradients), cmocka_unit_test(test_types),
		cmocka_unit_test(test_fused),	  cmocka_unit_test(test_layout),
		cmocka_unit_test(test_bad_sizes), cmocka_unit_test(test_first_failure),
		cmocka_unit_test(test_spread),	  cmocka_unit_test(test_rng),
	};

	return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
