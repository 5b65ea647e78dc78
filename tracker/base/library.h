/* SPDX-License-Identifier: Apache-2.0 */
/* library.h: shared libraries that only some runs need. They are opened by name, so that other runs neither load nor
 * require them. */
#ifndef DPT_BASE_LIBRARY_H
#define DPT_BASE_LIBRARY_H

#include "tracker/base/err.h"

struct library {
	const char *file; /* "libcurl.so.4" */
	const char *need; /* put in front of the loader's message: "HTTP needs libcurl (Debian: libcurl4)" */
};

struct library_function {
	const char *name;
	void *to; /* address of a function pointer, which is set */
};

/* Sets all function pointers. ERR_UNSUPPORTED: the library is missing, or lacks a function. It stays loaded for the
 * life of the process. */
int library_load(const struct library *l, const struct library_function *all, size_t n, struct err *err);

#endif
