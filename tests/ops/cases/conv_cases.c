/* SPDX-License-Identifier: Apache-2.0 */
/* conv_cases.c: test cases of conv, conv_dgrad and conv_wgrad: the three run on the same list of layers. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/conv/conv.h"

enum { N, H, W, C, K, KERNEL, STRIDE, PAD };

static struct conv_attr attr_of(const struct op_case *c)
{
	return (struct conv_attr){ .stride = (int)c->size[STRIDE],
				   .pad = (int)c->size[PAD],
				   .kernel = (int)c->size[KERNEL],
				   .in_shape = SHAPE(c->size[N], c->size[H], c->size[W], c->size[C]) };
}

static struct shape w_shape(const struct op_case *c)
{
	return SHAPE(c->size[K], c->size[KERNEL], c->size[KERNEL], c->size[C]);
}

static struct shape y_shape(const struct op_case *c)
{
	int64_t p = (c->size[H] + 2 * c->size[PAD] - c->size[KERNEL]) / c->size[STRIDE] + 1;
	int64_t q = (c->size[W] + 2 * c->size[PAD] - c->size[KERNEL]) / c->size[STRIDE] + 1;

	return SHAPE(c->size[N], p, q, c->size[K]);
}

static struct node *build_conv_node(struct graph *g, const struct op_case *c)
{
	struct conv_attr attr = attr_of(c);

	return graph_node(g, &(struct node_spec){ .op = &op_conv,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "x", DTYPE_F32, attr.in_shape),
							  case_input(g, "w", DTYPE_F32, w_shape(c))) });
}

static struct node *build_dgrad(struct graph *g, const struct op_case *c)
{
	struct conv_attr attr = attr_of(c);

	return graph_node(g, &(struct node_spec){ .op = &op_conv_dgrad,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, y_shape(c)),
							  case_input(g, "w", DTYPE_F32, w_shape(c))) });
}

static struct node *build_wgrad(struct graph *g, const struct op_case *c)
{
	struct conv_attr attr = attr_of(c);

	return graph_node(g, &(struct node_spec){ .op = &op_conv_wgrad,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "x", DTYPE_F32, attr.in_shape),
							  case_input(g, "dy", DTYPE_F32, y_shape(c))) });
}

/* r: 1 where the result may have been of the low type: cuDNN gives gradients of weights so. */
#define CASE(what, b, r, ...) { what, .build = (b), .rounds_result = (r), .size = { __VA_ARGS__ } }
#define LAYERS(b, r)                                                                                                   \
	CASE("no images", b, r, 0, 8, 8, 16, 16, 3, 1, 1),                                                             \
		CASE("one pixel", b, r, 1, 1, 1, 1, 1, 1, 1, 0),                                                       \
		CASE("3x3 on one pixel", b, r, 2, 1, 1, 3, 5, 3, 1, 1),                                                \
		CASE("no images of one pixel", b, r, 0, 1, 1, 16, 16, 3, 1, 1),                                        \
		CASE("3x3 on one pixel, 64 channels", b, r, 5, 1, 1, 64, 48, 3, 1, 1),                                 \
		CASE("3x3/2 on 2x2 pixels", b, r, 3, 2, 2, 16, 32, 3, 2, 1),                                           \
		CASE("3x3/2 on 1x2 pixels", b, r, 5, 1, 2, 17, 9, 3, 2, 1),                                            \
		CASE("3x3 on 3x3 pixels, no padding", b, r, 2, 3, 3, 8, 24, 3, 1, 0),                                  \
		CASE("stem 3x3, one channel", b, r, 3, 28, 28, 1, 16, 3, 1, 1),                                        \
		CASE("stem 7x7/2, three channels", b, r, 2, 31, 33, 3, 64, 7, 2, 3),                                   \
		CASE("3x3, 16 to 16", b, r, 4, 14, 14, 16, 16, 3, 1, 1),                                               \
		CASE("3x3/2, 16 to 32, odd image", b, r, 3, 15, 13, 16, 32, 3, 2, 1),                                  \
		CASE("3x3/2, 32 to 64, even image", b, r, 2, 14, 14, 32, 64, 3, 2, 1),                                 \
		CASE("1x1, 64 to 256", b, r, 2, 9, 7, 64, 256, 1, 1, 0),                                               \
		CASE("1x1/2, 16 to 32, odd image", b, r, 3, 15, 13, 16, 32, 1, 2, 0),                                  \
		CASE("1x1/2, 256 to 512", b, r, 1, 8, 8, 256, 512, 1, 2, 0),                                           \
		CASE("odd channels", b, r, 2, 10, 11, 13, 19, 3, 1, 1),                                                \
		CASE("one image, long sum", b, r, 1, 7, 7, 512, 64, 3, 1, 1),                                          \
		CASE("3x3/2, 256 channels", b, r, 1, 14, 14, 256, 256, 3, 2, 1),                                       \
		CASE("3x3, 512 channels", b, r, 1, 7, 7, 512, 512, 3, 1, 1),                                           \
		CASE("1x1, 512 to 2048", b, r, 2, 7, 7, 512, 2048, 1, 1, 0),                                           \
		CASE("1x1, 64 to 64 at 56", b, r, 1, 56, 56, 64, 64, 1, 1, 0),                                         \
		CASE("1x1, 256 to 80 at 4", b, r, 1, 4, 4, 256, 80, 1, 1, 0),                                          \
		CASE("many pixels", b, r, 8, 32, 32, 16, 16, 3, 1, 1),                                                 \
		CASE("many small images", b, r, 17, 4, 4, 32, 48, 3, 1, 1),                                            \
		CASE("3x3/2, 24 to 40, odd image", b, r, 2, 9, 11, 24, 40, 3, 2, 1),                                   \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_conv[] = { LAYERS(build_conv_node, 0) };
const struct op_case cases_conv_dgrad[] = { LAYERS(build_dgrad, 0) };
const struct op_case cases_conv_wgrad[] = { LAYERS(build_wgrad, 1 << 0) };
