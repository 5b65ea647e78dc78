/* library.h: shared libraries that only some runs need, opened by name: others neither load nor lack them. */
#ifndef DPT_BASE_LIBRARY_H
#define DPT_BASE_LIBRARY_H

#include <stddef.h>

#include "tracker/base/err.h"

struct library {
	const char *file; /* "libcurl.so.4" */
	const char *need; /* said before the loader's reason: "HTTP needs libcurl (Debian: libcurl4)" */
};

struct library_function {
	const char *name;
	void *to; /* a pointer to a function, which is filled */
};

/* Fills them all. ERR_UNSUPPORTED: there is no such library, or it lacks the function that is named. It stays loaded as
 * long as the process lives. */
int library_load(const struct library *l, const struct library_function *all, size_t n, struct err *err);

#endif
