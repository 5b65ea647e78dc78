/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h: a sandbox for the threads that answer requests. Landlock, a kernel feature, lets them open the files of
 * the store and nothing else, run no program and connect to no address. Threads that they start inherit it. */
#ifndef DPT_SERVER_SANDBOX_H
#define DPT_SERVER_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct sandbox_path {
	const char *path; /* a file, or a folder with everything below it; may be missing */
	bool write;	  /* else read-only */
	bool names;	  /* file names in the folder are visible, but no contents */
};

/* Confines the calling thread for good. Returns false, with nothing changed, if the kernel lacks Landlock. */
bool sandbox_thread(const struct sandbox_path *paths, size_t n);

#endif
