/* module.h: what the files of the module share: the device that a rank has opened. */
#ifndef DPT_BACKENDS_CUDA_MODULE_H
#define DPT_BACKENDS_CUDA_MODULE_H

#include "trainer/backends/backend.h"

struct cuda_module {
	int device;
	bool capturing; /* a graph is being recorded */
};

extern const struct backend_streams cuda_streams; /* streams.c */

#endif
