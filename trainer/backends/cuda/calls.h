/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h: NVIDIA's libraries, opened at run time, so that the module loads on machines without them. calls.def lists
 * them and their functions. */
#ifndef DPT_BACKENDS_CUDA_CALLS_H
#define DPT_BACKENDS_CUDA_CALLS_H

#include "config.h"

#ifdef HAVE_NVRTC
#include <nvrtc.h>
#endif
#ifdef HAVE_CUBLASLT
#include <cublasLt.h>
#endif
#ifdef HAVE_CUDNN
#include <cudnn.h>
#endif
#ifdef HAVE_NCCL
#include <nccl.h>
#endif

#include "tracker/base/err.h"

enum cuda_library {
#define LIBRARY(id, name, file, least, package) CUDA_##id,
#include "trainer/backends/cuda/calls.def"
	CUDA_LIBRARIES
};

struct cuda_calls {
	int version[CUDA_LIBRARIES]; /* 10000 * major + 100 * minor + patch; 0: not open, its function pointers are
				      * NULL */
#define CALL(id, result, name, prototype) result(*name) prototype;
#include "trainer/backends/cuda/calls.def"
};

const char *cuda_library_name(enum cuda_library which);

/* Opens a library and finds its functions. Searches the folders in $DPTRAIN_CUDA_LIBS (separated by ':'; the folder
 * nvidia of NVIDIA's Python wheels works), then configure's folders, then the loader's path. The library stays open
 * until the process ends; a second call does nothing. ERR_NOENT: not found. ERR_UNSUPPORTED: cannot be loaded, is too
 * old, lacks a function, or is not supported by this build. err: one line. */
int cuda_calls_open(struct cuda_calls *c, enum cuda_library which, struct err *err);

/* "cuDNN 9.19.0" */
void cuda_library_version(const struct cuda_calls *c, enum cuda_library which, char *text, size_t n);

#endif
