/* cuda_module.h: what the files of the module share: the device that a rank has opened, and the libraries. */
#ifndef DPT_BACKENDS_CUDA_CUDA_MODULE_H
#define DPT_BACKENDS_CUDA_CUDA_MODULE_H

#include "trainer/backends/backend.h"
#include "trainer/backends/cuda/calls.h"
#include "trainer/backends/cuda/staging.h"

struct cuda_module {
	int device;
	bool capturing; /* a graph is being recorded */
	bool tf32;	/* products in fp32 may take it */
	bool direct;	/* convolutions are sums of plain products */
	bool described; /* plans are made for a device that is not here; nothing runs */
	struct backend_sent sent, sent_recorded; /* the latter by the graph that is being recorded */
	struct cuda_calls calls; /* of the libraries that were needed so far */
	struct plan_cache *kept;	 /* plans that later runs may take; NULL: none */
	void *staging[STAGING_COUNT]; /* staging.h; NULL: not asked for so far */
#ifdef HAVE_CUBLASLT
	cublasLtHandle_t blas; /* NULL: not open */
#endif
#ifdef HAVE_CUDNN
	cudnnHandle_t dnn;		     /* NULL: not open */
	cudnnBackendDescriptor_t dnn_device; /* plans are made for it where there is no handle */
	struct dnn_engine *dnn_engines;	     /* of the plans that are alive, or were made ahead */
	struct dnn_ahead *dnn_ahead;	     /* plans are noted, not made; NULL: they are made */
#endif
	char lacks[1200]; /* what it goes without, in a line; "": nothing */
};

extern const struct backend_streams cuda_streams; /* cuda_streams.c */
extern const struct backend_comms cuda_comms;	  /* ranks.c */

#endif
