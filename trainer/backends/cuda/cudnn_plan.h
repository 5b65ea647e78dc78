/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_plan.h: graphs of cuDNN's backend API from C: creates descriptors, chooses an engine and keeps it as a plan.
 * Only cudnn_plan.c and the files that build graphs (conv_plan.c, attention_plan.c) use that library. A plan can also
 * be made for an absent device. */
#ifndef DPT_BACKENDS_CUDA_CUDNN_PLAN_H
#define DPT_BACKENDS_CUDA_CUDNN_PLAN_H

#include "trainer/backends/cuda/cuda_module.h"

/* Opens the library for a module; on failure err has the reason in one line. */
int dnn_open(struct cuda_module *m, struct err *err);
/* For planning without a device: json describes one in the format of cuDNN's device properties. Such plans cannot
 * run. */
int dnn_open_for(struct cuda_module *m, const char *json, struct err *err);
void dnn_close(struct cuda_module *m);

/* See ahead_begin in backend.h: plans requested in between are made at the end, in this number of threads, each with
 * its own handle. They live at least until the next ahead_begin. */
void dnn_ahead_begin(void *module);
void dnn_ahead_end(void *module, int threads);

#ifdef HAVE_CUDNN

#define DNN_DESCRIPTORS_MAX 96
#define DNN_OPS_MAX 24
#define DNN_KEY_MAX 16
#define DNN_TRIED_MAX 4

/* A graph under construction. It owns all descriptors made for it. After a failure nothing more is made, and
 * dnn_plan_new returns the error. */
struct dnn_graph {
	struct cuda_module *module;
	cudnnHandle_t handle;	  /* handle used for planning; set by dnn_plan_new */
	int64_t key[DNN_KEY_MAX]; /* parameters of the graph: equal keys mean equal graphs */
	int n_operands;		  /* operands for timing engines; 0: engines are not timed */
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
	bool virtual;		   /* never stored in memory */
	bool by_value;		   /* a scalar in host memory */
	bool swizzled;		   /* stored in the library's own order */
};

cudnnBackendDescriptor_t dnn_make(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs,
				  int n);
cudnnBackendDescriptor_t dnn_tensor(struct dnn_graph *g, const struct dnn_tensor *t);
void dnn_op(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n);
cudnnDataType_t dnn_type(enum dtype t);

struct dnn_wish {
	size_t workspace_max; /* bytes */
	bool tensor_cores;    /* require tensor cores */
	bool plain;	      /* exclude tensor cores, which would round fp32 to TF32 */
	bool deterministic;
	bool direct; /* exclude transforms: sums of plain products only */
};

#define DNN_OPERANDS_MAX 16

struct dnn_plan;

/* Creates a plan. Uses the first of n (one or two) wishes that any recommended engine fits, and of these engines the
 * first; or the fastest of a few, if the graph has operands for timing and no wish is deterministic. A live plan with
 * the same key and wishes is shared, and a cached one is restored, since compiling can take seconds. Takes ownership of
 * the graph's descriptors, also on failure: ERR_UNSUPPORTED with the library's message. */
int dnn_plan_new(struct dnn_plan **ret, struct dnn_graph *g, const struct dnn_wish *wishes, int n, struct err *err);
void dnn_plan_free(struct dnn_plan *p); /* NULL is fine */
size_t dnn_plan_workspace(const struct dnn_plan *p);
bool dnn_plan_uses_tensor_cores(const struct dnn_plan *p);
bool dnn_plan_recalled(const struct dnn_plan *p); /* restored from the cache (plan_cache.h), without a search */

struct dnn_operands {
	int n;
	int64_t uid[DNN_OPERANDS_MAX];
	void *address[DNN_OPERANDS_MAX];
	void *workspace;
	struct stream_handle *stream;
};

/* Enqueues a run. Allocates some host memory on the first run and when addresses change, but never when a CUDA graph is
 * launched again. n: for messages. */
void dnn_plan_run(struct dnn_plan *p, const struct node *n, const struct dnn_operands *o);

#endif

#endif
