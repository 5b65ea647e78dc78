/* library.h: shared libraries that only some runs need, opened by name: others neither load nor lack them. */
#ifndef DPT_BASE_LIBRARY_H
#define DPT_BASE_LIBRARY_H

#include <stddef.h>

#include "tracker/base/err.h"

struct library_function {
	const char *name;
	void *to; /* a pointer to a function, which is filled */
};

/* NULL: ERR_UNSUPPORTED, `need` ("HTTP needs libcurl (Debian: libcurl4)") with the loader's reason. It stays loaded as
 * long as the process lives. */
void *library_open(const char *file, const char *need, struct err *err);

/* ERR_UNSUPPORTED names the first that the library lacks. */
int library_find(void *so, const char *file, const struct library_function *all, size_t n, struct err *err);

#endif
