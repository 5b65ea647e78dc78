/* SPDX-License-Identifier: Apache-2.0 */
/* resnet.c: residual networks (He et al. 2015). The ImageNet family is torchvision's (version 1.5: the 3x3 convolution
 * of a bottleneck has the stride). The CIFAR family has a 3x3 stem and three stages of 16, 32 and 64 channels, with the
 * same blocks and 1x1 shortcuts. Names and initial values are torchvision's. */
#include <math.h>

#include "trainer/models/models.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/avgpool/avgpool.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/gelu/gelu.h"
#include "trainer/ops/linear/linear.h"
#include "trainer/ops/maxpool/maxpool.h"
#include "trainer/ops/relu/relu.h"
#include "trainer/ops/xent/xent.h"

struct resnet {
	bool cifar;
	bool bottleneck;
	int stages;
	int blocks[4];
};

/* State of the builder. */
struct resnet_builder {
	struct graph *g;
	const struct model_config *c;
	const struct resnet *spec;
};

struct resnet_block {
	const char *name; /* "layer1.0" */
	int64_t planes;	  /* inner channels */
	int64_t out;	  /* output channels */
	int stride;
};

struct conv_size {
	int64_t channels; /* channels of the output */
	int kernel, stride;
};

static struct tensor *add_resnet_tensor(struct graph *g, enum tensor_kind kind, const char *name, struct shape shape,
					struct init init)
{
	struct tensor like = {
		.name = name, .kind = kind, .dtype = DTYPE_F32, .shape = shape, .life = LIFE_PERSISTENT, .init = init
	};

	like.decay = kind == TENSOR_PARAM && shape.ndim > 1;
	return name ? graph_tensor(g, &like) : NULL;
}

/* Initial weights: Kaiming normal by fan-out, for a ReLU. */
static struct tensor *add_resnet_conv(struct graph *g, struct tensor *x, const char *name, struct conv_size size)
{
	int64_t fan_out = size.channels * size.kernel * size.kernel;
	struct init init = { .kind = INIT_NORMAL, .scale = sqrt(2.0 / (double)fan_out) };
	struct tensor *w;

	if (graph_failed(g))
		return NULL;
	w = add_resnet_tensor(g, TENSOR_PARAM, graph_printf(g, "%s.weight", name),
			      SHAPE(size.channels, size.kernel, size.kernel, x->shape.dim[3]), init);
	return conv_add(g, x, w, size.stride, size.kernel / 2);
}

static struct tensor *add_resnet_norm(struct graph *g, struct tensor *x, const char *name, enum init_kind gain)
{
	struct init zero = { .kind = INIT_ZERO }, one = { .kind = INIT_ONE };
	struct bn_tensors t;
	struct shape shape;

	if (graph_failed(g))
		return NULL;
	shape = SHAPE(x->shape.dim[3]);
	t.gamma = add_resnet_tensor(g, TENSOR_PARAM, graph_printf(g, "%s.weight", name), shape,
				    (struct init){ .kind = gain });
	t.beta = add_resnet_tensor(g, TENSOR_PARAM, graph_printf(g, "%s.bias", name), shape, zero);
	if (t.gamma && t.beta)
		t.gamma->of_norm = t.beta->of_norm = true;
	t.mean = add_resnet_tensor(g, TENSOR_STAT, graph_printf(g, "%s.running_mean", name), shape, zero);
	t.var = add_resnet_tensor(g, TENSOR_STAT, graph_printf(g, "%s.running_var", name), shape, one);
	return bn_add(g, x, &t);
}

static struct tensor *add_resnet_act(const struct resnet_builder *b, struct tensor *x)
{
	return b->c->act == MODEL_GELU ? gelu_add(b->g, x) : relu_add(b->g, x);
}

/* Convolution i of a block and its norm: "layer1.0.conv2", "layer1.0.bn2". The gain of the block's last norm may start
 * at 0. */
static struct tensor *add_conv_and_norm(const struct resnet_builder *b, const struct resnet_block *k, int i,
					struct tensor *x, struct conv_size size)
{
	bool last = i == (b->spec->bottleneck ? 3 : 2);
	bool zero = last && b->c->zero_init_residual;

	x = add_resnet_conv(b->g, x, graph_printf(b->g, "%s.conv%d", k->name, i), size);
	return add_resnet_norm(b->g, x, graph_printf(b->g, "%s.bn%d", k->name, i), zero ? INIT_ZERO : INIT_ONE);
}

static struct tensor *add_resnet_block(const struct resnet_builder *b, const struct resnet_block *k, struct tensor *x)
{
	struct tensor *y = x, *shortcut = x;

	if (graph_failed(b->g))
		return NULL;
	b->g->block++;
	if (b->spec->bottleneck) {
		y = add_resnet_act(b, add_conv_and_norm(b, k, 1, y, (struct conv_size){ k->planes, 1, 1 }));
		y = add_resnet_act(b, add_conv_and_norm(b, k, 2, y, (struct conv_size){ k->planes, 3, k->stride }));
		y = add_conv_and_norm(b, k, 3, y, (struct conv_size){ k->out, 1, 1 });
	} else {
		y = add_resnet_act(b, add_conv_and_norm(b, k, 1, y, (struct conv_size){ k->planes, 3, k->stride }));
		y = add_conv_and_norm(b, k, 2, y, (struct conv_size){ k->out, 3, 1 });
	}
	if (k->stride != 1 || x->shape.dim[3] != k->out) {
		shortcut = add_resnet_conv(b->g, x, graph_printf(b->g, "%s.downsample.0", k->name),
					   (struct conv_size){ k->out, 1, k->stride });
		shortcut = add_resnet_norm(b->g, shortcut, graph_printf(b->g, "%s.downsample.1", k->name), INIT_ONE);
	}
	return add_resnet_act(b, add_add(b->g, y, shortcut));
}

static struct tensor *add_resnet_stages(const struct resnet_builder *b, struct tensor *x)
{
	int64_t planes = b->spec->cifar ? 16 : 64;

	for (int stage = 0; stage < b->spec->stages; stage++, planes *= 2)
		for (int i = 0; i < b->spec->blocks[stage]; i++) {
			struct resnet_block k = { .name = graph_printf(b->g, "layer%d.%d", stage + 1, i),
						  .planes = planes };

			k.out = b->spec->bottleneck ? planes * 4 : planes;
			k.stride = stage > 0 && i == 0 ? 2 : 1;
			x = add_resnet_block(b, &k, x);
		}
	return x;
}

static struct tensor *add_resnet_stem(const struct resnet_builder *b, struct tensor *x)
{
	struct maxpool_attr pool = { .kernel = 3, .stride = 2, .pad = 1 };
	bool cifar = b->spec->cifar;

	b->g->block = 1;
	x = add_resnet_conv(b->g, x, "conv1", cifar ? (struct conv_size){ 16, 3, 1 } : (struct conv_size){ 64, 7, 2 });
	x = add_resnet_act(b, add_resnet_norm(b->g, x, "bn1", INIT_ONE));
	return cifar ? x : maxpool_add(b->g, x, &pool);
}

static struct tensor *add_resnet_head(const struct resnet_builder *b, struct tensor *x)
{
	struct init init = { .kind = INIT_UNIFORM };
	struct tensor *w, *bias;

	b->g->block = 0;
	x = avgpool_add(b->g, x);
	if (!x)
		return NULL;
	init.scale = 1 / sqrt((double)x->shape.dim[1]);
	w = add_resnet_tensor(b->g, TENSOR_PARAM, "fc.weight", SHAPE(b->c->classes, x->shape.dim[1]), init);
	bias = add_resnet_tensor(b->g, TENSOR_PARAM, "fc.bias", SHAPE(b->c->classes), init);
	x = linear_add(b->g, x, w, bias);
	if (!x || graph_rename(b->g, x, "logits") != 0)
		return NULL;
	x->keep = !b->g->training;
	return x;
}

static struct tensor *add_resnet_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
	return graph_tensor(
		g, &(struct tensor){
			   .name = name, .kind = TENSOR_INPUT, .dtype = dtype, .shape = shape, .life = LIFE_MICRO });
}

static int build_resnet(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch,
			struct err *err)
{
	struct resnet_builder b = { .g = g, .c = c, .spec = m->spec };
	struct tensor *images, *labels, *x;

	images = add_resnet_input(g, "images", DTYPE_F32,
				  SHAPE(batch, g->training && c->train_h ? c->train_h : c->image_h,
					g->training && c->train_w ? c->train_w : c->image_w, c->in_channels));
	labels = add_resnet_input(g, "labels", DTYPE_I32,
				  g->training && c->label_pairs ? SHAPE(batch, 2) : SHAPE(batch));
	x = add_resnet_head(&b, add_resnet_stages(&b, add_resnet_stem(&b, images)));
	xent_add(g, x, labels, g->training ? c->label_smoothing : 0);
	return graph_failed(g) ? err_set(err, g->err.code, "%s: %s", m->name, g->err.text) : 0;
}

#define IMAGENET { .classes = 1000, .in_channels = 3, .image_h = 224, .image_w = 224 }
#define CIFAR { .classes = 10, .in_channels = 3, .image_h = 32, .image_w = 32 }
#define SPEC(...)                                                                                                      \
	&(const struct resnet)                                                                                         \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}

const struct model model_resnet18 = {
	.name = "resnet18",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.stages = 4, .blocks = { 2, 2, 2, 2 }),
};

const struct model model_resnet34 = {
	.name = "resnet34",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.stages = 4, .blocks = { 3, 4, 6, 3 }),
};

const struct model model_resnet50 = {
	.name = "resnet50",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.bottleneck = true, .stages = 4, .blocks = { 3, 4, 6, 3 }),
};

const struct model model_resnet101 = {
	.name = "resnet101",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.bottleneck = true, .stages = 4, .blocks = { 3, 4, 23, 3 }),
};

const struct model model_resnet152 = {
	.name = "resnet152",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.bottleneck = true, .stages = 4, .blocks = { 3, 8, 36, 3 }),
};

const struct model model_resnet20 = {
	.name = "resnet20",
	.defaults = CIFAR,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.cifar = true, .stages = 3, .blocks = { 3, 3, 3 }),
};

const struct model model_resnet56 = {
	.name = "resnet56",
	.defaults = CIFAR,
	.head = "fc.",
	.build = build_resnet,
	.spec = SPEC(.cifar = true, .stages = 3, .blocks = { 9, 9, 9 }),
};
