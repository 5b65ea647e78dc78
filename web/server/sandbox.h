/* sandbox.h: a second wall around the threads that answer requests: the kernel (Landlock) lets them open the store's
 * files and nothing else, run no program and connect to nobody. What they start inherits it. */
#ifndef DPT_SERVER_SANDBOX_H
#define DPT_SERVER_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct sandbox_path {
	const char *path; /* a file, or a folder with all below it; fine when it is missing */
	bool write;       /* else reading only */
	bool names;       /* not even that: what lies in the folder is seen, not what is in it */
};

/* Confines the calling thread for ever. False: this kernel cannot, nothing has changed. */
bool sandbox_thread(const struct sandbox_path *paths, size_t n);

#endif
