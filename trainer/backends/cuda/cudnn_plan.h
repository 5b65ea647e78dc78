/* cudnn_plan.h: graphs of cuDNN from C: descriptors are made, an engine that fits is chosen and kept as a plan. Only cudnn_plan.c and
 * what plans with it (conv_plan.c) know that library. A plan can also be made for a device that is not there. */
#ifndef DPT_BACKENDS_CUDA_CUDNN_PLAN_H
#define DPT_BACKENDS_CUDA_CUDNN_PLAN_H

#include "trainer/backends/cuda/cuda_module.h"

/* Opens the library for a module; err says in one line why it cannot be used. */
int dnn_open(struct cuda_module *m, struct err *err);
/* For plans without a device: json describes one as cuDNN's own device properties do. They cannot be run. */
int dnn_open_for(struct cuda_module *m, const char *json, struct err *err);
void dnn_close(struct cuda_module *m);

/* See backend.h: plans that are asked for in between are made at the end, in so many threads, each with a handle of its
 * own, and live at least until the next time. */
void dnn_ahead_begin(void *module);
void dnn_ahead_end(void *module, int threads);

#ifdef HAVE_CUDNN

#define DNN_DESCRIPTORS_MAX 96
#define DNN_OPS_MAX 24
#define DNN_KEY_MAX 16
#define DNN_TRIED_MAX 4

/* What is made joins the graph and dies with it. After a failure nothing more is made; dnn_plan_new tells. */
struct dnn_graph {
	struct cuda_module *module;
	cudnnHandle_t handle;	  /* that it is planned with; set by dnn_plan_new */
	int64_t key[DNN_KEY_MAX]; /* what the graph was made from: equal numbers make equal graphs */
	int n_operands;		  /* what engines are tried on; 0: they are not */
	int64_t uid[DNN_TRIED_MAX];
	size_t bytes[DNN_TRIED_MAX];
	int n, n_ops;
	cudnnBackendDescriptor_t made[DNN_DESCRIPTORS_MAX], ops[DNN_OPS_MAX];
	cudnnStatus_t status;
};

struct dnn_attr {
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t count;
	const void *value;
};

struct dnn_tensor {
	int64_t uid;
	cudnnDataType_t type;
	int n;
	int64_t dim[4], stride[4]; /* in elements */
	bool virtual;		   /* it never lies in memory */
	bool by_value;		   /* a number in the host's memory */
	bool swizzled;		   /* its elements lie as the library likes */
};

cudnnBackendDescriptor_t dnn_make(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs,
				  int n);
cudnnBackendDescriptor_t dnn_tensor(struct dnn_graph *g, const struct dnn_tensor *t);
void dnn_op(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n);
cudnnDataType_t dnn_type(enum dtype t);

struct dnn_wish {
	size_t workspace_max; /* bytes */
	bool tensor_cores;    /* only with them */
	bool plain;	      /* only without: they would round fp32 to TF32 */
	bool deterministic;
	bool direct; /* no transform: sums of plain products */
};

#define DNN_OPERANDS_MAX 16

struct dnn_plan;

/* Of the engines that the library recommends, and that fit the first of n (one or two) wishes which any fits, the
 * first; or the fastest of a few, where the graph says on what to try them and no wish is for what is deterministic. A
 * plan that lives already for the same key and wishes is shared, and one that was kept is read: to compile one takes up
 * to seconds. Takes over the graph's descriptors, also when it fails: ERR_UNSUPPORTED, with the library's words. */
int dnn_plan_new(struct dnn_plan **ret, struct dnn_graph *g, const struct dnn_wish *wishes, int n, struct err *err);
void dnn_plan_free(struct dnn_plan *p); /* NULL is fine */
size_t dnn_plan_workspace(const struct dnn_plan *p);
bool dnn_plan_uses_tensor_cores(const struct dnn_plan *p);
bool dnn_plan_recalled(const struct dnn_plan *p); /* made of what was kept (plan_cache.h): nothing was searched */

struct dnn_operands {
	int n;
	int64_t uid[DNN_OPERANDS_MAX];
	void *address[DNN_OPERANDS_MAX];
	void *workspace;
	struct stream_handle *stream;
};

/* Allocates a little of the host's memory on the first run and where addresses change: not while a graph is launched
 * again. n: for messages. */
int dnn_plan_run(struct dnn_plan *p, const struct node *n, const struct dnn_operands *o, struct err *err);

#endif

#endif
