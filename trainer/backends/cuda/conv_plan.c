/* SPDX-License-Identifier: Apache-2.0 */
/* conv_plan.c: see conv_plan.h. */
#include "trainer/backends/cuda/conv_plan.h"

#include "trainer/backends/cuda/cudnn_plan.h"

#ifdef HAVE_CUDNN

#define WORKSPACE_USUAL ((size_t)64 << 20)
#define WORKSPACE_MOST ((size_t)512 << 20) /* engines without TF32 unfold the images */

enum { UID_X = 1, UID_W, UID_Y };

#define ATTR(name, type, count, value) { CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value }

/* An image or weights with contiguous channels, in the library's order: number, channels, height, width. */
static cudnnBackendDescriptor_t add_conv_tensor(struct dnn_graph *g, const struct conv_spec *s, int64_t uid,
						const int64_t (*sizes)[4])
{
	const int64_t c = (*sizes)[1], h = (*sizes)[2], w = (*sizes)[3];
	const struct dnn_tensor t = { .uid = uid,
				      .type = dnn_type(s->type),
				      .n = 4,
				      .dim = { (*sizes)[0], c, h, w },
				      .stride = { h * w * c, 1, w * c, c } };

	return dnn_tensor(g, &t);
}

static cudnnBackendDescriptor_t make_conv_window(struct dnn_graph *g, const struct conv_spec *s)
{
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
	const int64_t two = 2, dilation[] = { 1, 1 }, stride[] = { s->stride, s->stride }, pad[] = { s->pad, s->pad };
	const struct dnn_attr attrs[] = {
		ATTR(CONVOLUTION_SPATIAL_DIMS, INT64, 1, &two),	   ATTR(CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &sums),
		ATTR(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode),
		ATTR(CONVOLUTION_DILATIONS, INT64, 2, dilation),   ATTR(CONVOLUTION_FILTER_STRIDES, INT64, 2, stride),
		ATTR(CONVOLUTION_PRE_PADDINGS, INT64, 2, pad),	   ATTR(CONVOLUTION_POST_PADDINGS, INT64, 2, pad),
	};

	return dnn_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attrs, sizeof(attrs) / sizeof(attrs[0]));
}

/* The three operations have the same attributes under different names. */
struct conv_attribute_names {
	cudnnBackendDescriptorType_t op;
	cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
};

static const struct conv_attribute_names conv_names[] = {
	[CONV_FORWARD] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA },
	[CONV_BY_DATA] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
			   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA },
	[CONV_BY_WEIGHTS] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
			      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
			      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
			      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
			      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
			      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
			      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA },
};

static void describe_conv(struct dnn_graph *g, const struct conv_spec *s)
{
	const int64_t in[4] = { s->n, s->c, s->h, s->w }, weights[4] = { s->k, s->c, s->kernel, s->kernel };
	const int64_t out[4] = { s->n, s->k, s->p, s->q };
	const struct conv_attribute_names *names = &conv_names[s->pass];
	const float one = 1, zero = 0;
	cudnnBackendDescriptor_t x = add_conv_tensor(g, s, UID_X, &in), w = add_conv_tensor(g, s, UID_W, &weights);
	cudnnBackendDescriptor_t y = add_conv_tensor(g, s, UID_Y, &out), conv = make_conv_window(g, s);
	const struct dnn_attr attrs[] = {
		{ names->x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x },
		{ names->w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w },
		{ names->y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y },
		{ names->window, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv },
		{ names->alpha, CUDNN_TYPE_FLOAT, 1, &one },
		{ names->beta, CUDNN_TYPE_FLOAT, 1, &zero },
	};

	dnn_op(g, names->op, attrs, sizeof(attrs) / sizeof(attrs[0]));
}

int conv_plan_new(struct dnn_plan **ret, const struct kernel_env *env, const struct conv_spec *spec, struct err *err)
{
	struct cuda_module *m = env->module;
	const bool plain = spec->type == DTYPE_F32 && !(m && m->tf32);
	const struct dnn_wish any = { .workspace_max = WORKSPACE_USUAL,
				      .plain = plain,
				      .deterministic = env->deterministic,
				      .direct = m && m->direct };
	struct dnn_wish wishes[2] = { any, any };
	struct dnn_graph g = { .module = m,
			       .key = { 'c', spec->pass, spec->type, spec->n, spec->h, spec->w, spec->c, spec->k,
					spec->p, spec->q, spec->kernel, spec->stride, spec->pad },
			       .n_operands = 3,
			       .uid = { UID_X, UID_W, UID_Y },
			       .bytes = { (size_t)(spec->n * spec->h * spec->w * spec->c),
					  (size_t)(spec->k * spec->kernel * spec->kernel * spec->c),
					  (size_t)(spec->n * spec->p * spec->q * spec->k) } };

	for (int k = 0; k < g.n_operands; k++)
		g.bytes[k] *= dtype_bytes(spec->type);
	if (!m || (!m->dnn && !m->dnn_device))
		return err_set(err, ERR_UNSUPPORTED, "cuDNN is not open");
	if (plain)
		wishes[1].workspace_max = WORKSPACE_MOST;
	else
		wishes[0].tensor_cores = true;
	describe_conv(&g, spec);
	return dnn_plan_new(ret, &g, wishes, 2, err);
}

void conv_plan_free(struct dnn_plan *p)
{
	dnn_plan_free(p);
}

size_t conv_plan_workspace(const struct dnn_plan *p)
{
	return dnn_plan_workspace(p);
}

bool conv_plan_uses_tensor_cores(const struct dnn_plan *p)
{
	return dnn_plan_uses_tensor_cores(p);
}

void conv_plan_run(struct dnn_plan *p, const struct node *n, const struct conv_operands *o)
{
	const struct dnn_operands all = { .n = 3,
					  .uid = { UID_X, UID_W, UID_Y },
					  .address = { (void *)o->x, (void *)o->w, (void *)o->y },
					  .workspace = o->workspace,
					  .stream = o->stream };

	dnn_plan_run(p, n, &all);
}

#else

int conv_plan_new(struct dnn_plan **ret, const struct kernel_env *env, const struct conv_spec *spec, struct err *err)
{
	(void)ret, (void)env, (void)spec;
	return err_set(err, ERR_UNSUPPORTED, "built without cuDNN");
}

void conv_plan_free(struct dnn_plan *p)
{
	(void)p;
}

size_t conv_plan_workspace(const struct dnn_plan *p)
{
	(void)p;
	return 0;
}

bool conv_plan_uses_tensor_cores(const struct dnn_plan *p)
{
	(void)p;
	return false;
}

void conv_plan_run(struct dnn_plan *p, const struct node *n, const struct conv_operands *o)
{
	(void)p, (void)n, (void)o;
}

#endif
