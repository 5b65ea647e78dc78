/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_module.h: state of the module: the device that a rank has opened, and the libraries; choosing a device
 * (cuda_pick.c). */
#ifndef DPT_BACKENDS_CUDA_CUDA_MODULE_H
#define DPT_BACKENDS_CUDA_CUDA_MODULE_H

#include "trainer/backends/backend.h"
#include "trainer/backends/cuda/calls.h"
#include "trainer/backends/cuda/device_calls.h"

struct cuda_module {
	int device;
	bool capturing;				 /* a graph is being recorded */
	bool tf32;				 /* fp32 products may use TF32 */
	bool direct;				 /* compute convolutions only as sums of plain products */
	bool described;				 /* planning for an absent device; nothing runs */
	struct backend_sent sent, sent_recorded; /* sent_recorded: by the graph being recorded */
	struct cuda_calls calls;		 /* functions of the libraries opened so far */
	struct plan_cache *kept;		 /* plan cache; NULL: none */
	void *staging[STAGING_COUNT];		 /* see device_calls.h; NULL: not requested yet */
#ifdef HAVE_CUBLASLT
	cublasLtHandle_t blas; /* NULL: not open */
#endif
#ifdef HAVE_CUDNN
	cudnnHandle_t dnn;		     /* NULL: not open */
	cudnnBackendDescriptor_t dnn_device; /* target of plans if there is no handle */
	struct dnn_engine *dnn_engines;	     /* engines of live plans, and those made ahead */
	struct dnn_ahead *dnn_ahead;	     /* not NULL: plans are collected, not made */
#endif
	struct err failed; /* the first library call of a kernel that failed since take_failure; code 0: none */
	char lacks[1200]; /* missing parts, in one line; "": none */
};

extern const struct backend_streams cuda_streams; /* cuda_streams.c */
extern const struct backend_comms cuda_comms;	  /* ranks.c */

/* Compute capability, 10 * major + minor; 0: unknown. */
int pick_capability(int device);
#define PICK_CAPABILITY_MIN 80

int pick_describe(int device, struct backend_device *ret, struct err *err);

/* Chooses the device of o->local_rank among those that CUDA_VISIBLE_DEVICES shows. If ranks share a device, which only
 * o->share allows, each pretends to be another host to NCCL (NCCL_HOSTID). ERR_USAGE: one line with the devices
 * present. */
int pick_device(const struct backend_opts *o, int *ret, struct err *err);

#endif
