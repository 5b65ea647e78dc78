/* module.h: what the files of the module share: the device that a rank has opened. */
#ifndef DPT_BACKENDS_CUDA_MODULE_H
#define DPT_BACKENDS_CUDA_MODULE_H

#include "trainer/backends/backend.h"
#include "trainer/backends/cuda/calls.h"

struct cuda_module {
	int device;
	bool capturing; /* a graph is being recorded */
	struct cuda_calls calls; /* of the libraries that were needed so far */
};

extern const struct backend_streams cuda_streams; /* streams.c */
extern const struct backend_comms cuda_comms;	  /* ranks.c */

#endif
