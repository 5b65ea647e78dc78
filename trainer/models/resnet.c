/* resnet.c: residual networks (He et al. 2015). The ImageNet family is torchvision's (version 1.5: the stride of a
 * bottleneck lies in its 3x3 convolution); the CIFAR family has a 3x3 stem and three stages of 16, 32 and 64 channels,
 * with the same blocks and 1x1 shortcuts. Names and initial values are torchvision's. */
#include <math.h>
#include <stdio.h>

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

/* What every step of building needs. */
struct build {
	struct graph *g;
	const struct model_config *c;
	const struct resnet *spec;
};

struct block {
	const char *name; /* "layer1.0" */
	int64_t planes;	  /* channels inside */
	int64_t out;	  /* channels that leave */
	int stride;
};

static struct tensor *persistent(struct graph *g, enum tensor_kind kind, const char *name, struct shape shape,
				 struct init init)
{
	struct tensor like = {
		.name = name, .kind = kind, .dtype = DTYPE_F32, .shape = shape, .life = LIFE_PERSISTENT, .init = init
	};

	like.decay = kind == TENSOR_PARAM && shape.ndim > 1;
	return name ? graph_tensor(g, &like) : NULL;
}

/* Kaiming's normal by the number of outputs, for a ReLU. */
static struct tensor *conv(struct graph *g, struct tensor *x, const char *name, int64_t channels, int kernel,
			   int stride)
{
	struct init init = { .kind = INIT_NORMAL, .scale = sqrt(2.0 / (double)(channels * kernel * kernel)) };
	struct tensor *w;

	if (graph_failed(g))
		return NULL;
	w = persistent(g, TENSOR_PARAM, graph_printf(g, "%s.weight", name),
		       SHAPE(channels, kernel, kernel, x->shape.dim[3]), init);
	return conv_add(g, x, w, stride, kernel / 2);
}

static struct tensor *norm(struct graph *g, struct tensor *x, const char *name, enum init_kind gain)
{
	struct init zero = { .kind = INIT_ZERO }, one = { .kind = INIT_ONE };
	struct bn_tensors t;
	struct shape shape;

	if (graph_failed(g))
		return NULL;
	shape = SHAPE(x->shape.dim[3]);
	t.gamma = persistent(g, TENSOR_PARAM, graph_printf(g, "%s.weight", name), shape, (struct init){ .kind = gain });
	t.beta = persistent(g, TENSOR_PARAM, graph_printf(g, "%s.bias", name), shape, zero);
	if (t.gamma && t.beta)
		t.gamma->of_norm = t.beta->of_norm = true;
	t.mean = persistent(g, TENSOR_STAT, graph_printf(g, "%s.running_mean", name), shape, zero);
	t.var = persistent(g, TENSOR_STAT, graph_printf(g, "%s.running_var", name), shape, one);
	return bn_add(g, x, &t);
}

static struct tensor *act(const struct build *b, struct tensor *x)
{
	return b->c->act == MODEL_GELU ? gelu_add(b->g, x) : relu_add(b->g, x);
}

/* Convolution number i of a block with its norm: "layer1.0.conv2", "layer1.0.bn2". */
static struct tensor *conv_norm(const struct build *b, const struct block *k, int i, struct tensor *x, int64_t channels,
				int kernel, int stride, bool last)
{
	bool zero = last && b->c->zero_init_residual;

	x = conv(b->g, x, graph_printf(b->g, "%s.conv%d", k->name, i), channels, kernel, stride);
	return norm(b->g, x, graph_printf(b->g, "%s.bn%d", k->name, i), zero ? INIT_ZERO : INIT_ONE);
}

static struct tensor *add_block(const struct build *b, const struct block *k, struct tensor *x)
{
	struct tensor *y = x, *shortcut = x;

	if (graph_failed(b->g))
		return NULL;
	b->g->block++;
	if (b->spec->bottleneck) {
		y = act(b, conv_norm(b, k, 1, y, k->planes, 1, 1, false));
		y = act(b, conv_norm(b, k, 2, y, k->planes, 3, k->stride, false));
		y = conv_norm(b, k, 3, y, k->out, 1, 1, true);
	} else {
		y = act(b, conv_norm(b, k, 1, y, k->planes, 3, k->stride, false));
		y = conv_norm(b, k, 2, y, k->out, 3, 1, true);
	}
	if (k->stride != 1 || x->shape.dim[3] != k->out) {
		shortcut = conv(b->g, x, graph_printf(b->g, "%s.downsample.0", k->name), k->out, 1, k->stride);
		shortcut = norm(b->g, shortcut, graph_printf(b->g, "%s.downsample.1", k->name), INIT_ONE);
	}
	return act(b, add_add(b->g, y, shortcut));
}

static struct tensor *add_stages(const struct build *b, struct tensor *x)
{
	int64_t planes = b->spec->cifar ? 16 : 64;

	for (int stage = 0; stage < b->spec->stages; stage++, planes *= 2)
		for (int i = 0; i < b->spec->blocks[stage]; i++) {
			struct block k = { .name = graph_printf(b->g, "layer%d.%d", stage + 1, i), .planes = planes };

			k.out = b->spec->bottleneck ? planes * 4 : planes;
			k.stride = stage > 0 && i == 0 ? 2 : 1;
			x = add_block(b, &k, x);
		}
	return x;
}

static struct tensor *add_stem(const struct build *b, struct tensor *x)
{
	struct maxpool_attr pool = { .kernel = 3, .stride = 2, .pad = 1 };
	bool cifar = b->spec->cifar;

	b->g->block = 1;
	x = conv(b->g, x, "conv1", cifar ? 16 : 64, cifar ? 3 : 7, cifar ? 1 : 2);
	x = act(b, norm(b->g, x, "bn1", INIT_ONE));
	return cifar ? x : maxpool_add(b->g, x, &pool);
}

static struct tensor *add_head(const struct build *b, struct tensor *x)
{
	struct init init = { .kind = INIT_UNIFORM };
	struct tensor *w, *bias;

	b->g->block = 0;
	x = avgpool_add(b->g, x);
	if (!x)
		return NULL;
	init.scale = 1 / sqrt((double)x->shape.dim[1]);
	w = persistent(b->g, TENSOR_PARAM, "fc.weight", SHAPE(b->c->classes, x->shape.dim[1]), init);
	bias = persistent(b->g, TENSOR_PARAM, "fc.bias", SHAPE(b->c->classes), init);
	x = linear_add(b->g, x, w, bias);
	if (!x || graph_rename(b->g, x, "logits") != 0)
		return NULL;
	x->keep = !b->g->training;
	return x;
}

static struct tensor *input(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
	return graph_tensor(
		g, &(struct tensor){
			   .name = name, .kind = TENSOR_INPUT, .dtype = dtype, .shape = shape, .life = LIFE_MICRO });
}

static int resnet_build(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch,
			struct err *err)
{
	struct build b = { .g = g, .c = c, .spec = m->spec };
	struct tensor *images, *labels, *x;

	images = input(g, "images", DTYPE_F32, SHAPE(batch, c->image_h, c->image_w, c->in_channels));
	labels = input(g, "labels", DTYPE_I32, SHAPE(batch));
	x = add_head(&b, add_stages(&b, add_stem(&b, images)));
	xent_add(g, x, labels, c->label_smoothing);
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
	.build = resnet_build,
	.spec = SPEC(.stages = 4, .blocks = { 2, 2, 2, 2 }),
};

const struct model model_resnet34 = {
	.name = "resnet34",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = resnet_build,
	.spec = SPEC(.stages = 4, .blocks = { 3, 4, 6, 3 }),
};

const struct model model_resnet50 = {
	.name = "resnet50",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = resnet_build,
	.spec = SPEC(.bottleneck = true, .stages = 4, .blocks = { 3, 4, 6, 3 }),
};

const struct model model_resnet101 = {
	.name = "resnet101",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = resnet_build,
	.spec = SPEC(.bottleneck = true, .stages = 4, .blocks = { 3, 4, 23, 3 }),
};

const struct model model_resnet152 = {
	.name = "resnet152",
	.defaults = IMAGENET,
	.head = "fc.",
	.build = resnet_build,
	.spec = SPEC(.bottleneck = true, .stages = 4, .blocks = { 3, 8, 36, 3 }),
};

const struct model model_resnet20 = {
	.name = "resnet20",
	.defaults = CIFAR,
	.head = "fc.",
	.build = resnet_build,
	.spec = SPEC(.cifar = true, .stages = 3, .blocks = { 3, 3, 3 }),
};

const struct model model_resnet56 = {
	.name = "resnet56",
	.defaults = CIFAR,
	.head = "fc.",
	.build = resnet_build,
	.spec = SPEC(.cifar = true, .stages = 3, .blocks = { 9, 9, 9 }),
};
