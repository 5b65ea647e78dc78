/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_graph.c: descriptors of cuDNN's backend API, and the graphs made of them: see cudnn_plan.h. */
#include "trainer/backends/cuda/cudnn_engine.h"

#ifdef HAVE_CUDNN

#define ALIGN_BYTES 16

int dnn_fail(const struct cuda_module *m, int code, cudnnStatus_t status, const char *what, struct err *err)
{
	char said[256] = "";

	m->calls.cudnnGetLastErrorString(said, sizeof(said));
	return err_set(err, code, "cuda: %s: cuDNN: %s%s%s", what, m->calls.cudnnGetErrorString(status),
		       said[0] ? ": " : "", said);
}

static cudnnStatus_t set_attributes(const struct cuda_calls *c, cudnnBackendDescriptor_t d,
				    const struct dnn_attr *attrs, int n)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	for (int i = 0; !status && i < n; i++)
		status = c->cudnnBackendSetAttribute(d, attrs[i].name, attrs[i].type, attrs[i].count, attrs[i].value);
	return status;
}

/* Creates and finalises a descriptor that the caller owns. */
cudnnStatus_t dnn_make_owned(const struct cuda_calls *c, cudnnBackendDescriptor_t *ret,
			     cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n)
{
	cudnnBackendDescriptor_t d = NULL;
	cudnnStatus_t status = c->cudnnBackendCreateDescriptor(type, &d);

	if (!status)
		status = set_attributes(c, d, attrs, n);
	if (!status)
		status = c->cudnnBackendFinalize(d);
	if (status && d)
		c->cudnnBackendDestroyDescriptor(d);
	else if (!status)
		*ret = d;
	return status;
}

cudnnBackendDescriptor_t dnn_make(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs,
				  int n)
{
	cudnnBackendDescriptor_t d = NULL;

	if (!g->status && g->n == DNN_DESCRIPTORS_MAX)
		g->status = CUDNN_STATUS_NOT_SUPPORTED;
	if (!g->status)
		g->status = dnn_make_owned(&g->module->calls, &d, type, attrs, n);
	if (d)
		g->made[g->n++] = d;
	return d;
}

cudnnDataType_t dnn_type(enum dtype t)
{
	return t == DTYPE_F64	 ? CUDNN_DATA_DOUBLE
	       : t == DTYPE_F32	 ? CUDNN_DATA_FLOAT
	       : t == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16
				 : CUDNN_DATA_HALF;
}

cudnnBackendDescriptor_t dnn_tensor(struct dnn_graph *g, const struct dnn_tensor *t)
{
	const cudnnBackendTensorReordering_t order = CUDNN_TENSOR_REORDERING_F16x16;
	const int64_t align = ALIGN_BYTES;
	const struct dnn_attr attrs[] = {
		ATTR(TENSOR_UNIQUE_ID, INT64, 1, &t->uid),	 ATTR(TENSOR_DATA_TYPE, DATA_TYPE, 1, &t->type),
		ATTR(TENSOR_BYTE_ALIGNMENT, INT64, 1, &align),	 ATTR(TENSOR_DIMENSIONS, INT64, t->n, t->dim),
		ATTR(TENSOR_STRIDES, INT64, t->n, t->stride),	 ATTR(TENSOR_IS_VIRTUAL, BOOLEAN, 1, &t->virtual),
		ATTR(TENSOR_IS_BY_VALUE, BOOLEAN, 1, &t->by_value),
		ATTR(TENSOR_REORDERING_MODE, TENSOR_REORDERING_MODE, 1, &order),
	};

	return dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attrs, t->swizzled ? 8 : 7);
}

void dnn_op(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n)
{
	cudnnBackendDescriptor_t d = dnn_make(g, type, attrs, n);

	if (d && g->n_ops < DNN_OPS_MAX)
		g->ops[g->n_ops++] = d;
}

void dnn_graph_free(struct dnn_graph *g)
{
	while (g->n)
		g->module->calls.cudnnBackendDestroyDescriptor(g->made[--g->n]);
}

cudnnStatus_t dnn_make_pack(const struct cuda_calls *c, cudnnBackendDescriptor_t *ret, const struct dnn_operands *o)
{
	const struct dnn_attr attrs[] = {
		ATTR(VARIANT_PACK_UNIQUE_IDS, INT64, o->n, o->uid),
		ATTR(VARIANT_PACK_DATA_POINTERS, VOID_PTR, o->n, o->address),
		ATTR(VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &o->workspace),
	};

	return dnn_make_owned(c, ret, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attrs, 3);
}

#endif
