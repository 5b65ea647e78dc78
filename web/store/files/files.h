/* files.h: files and folders below a folder that is held open. Paths are taken segment by segment and never through a
 * symbolic link, so that nothing outside is reached. Private to web/store. */
#ifndef DPT_STORE_FILES_H
#define DPT_STORE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define FILES_UPLOADS ".uploads" /* beside the experiments, what is arriving; no client can name it */

struct files_sum {
	uint64_t files, bytes;
};

/* Opens the folder that holds the last segment of path ("." when there is only one); *ret_name points into path.
 * make: what is missing is made, durably. A descriptor, or -1 with errno. */
int files_parent(int root_fd, const char *path, bool make, const char **ret_name);

/* Removes (with dry set: counts) name below at_fd with everything in it, but nothing that is mounted there. 0, also
 * when it is not there; else an errno. */
int files_remove(int at_fd, const char *name, int dry, struct files_sum *sum);

/* Copies a file or a folder with everything in it (links and special files aside) to a name that is not there yet,
 * synced. stop (NULL: never) is asked between files and pieces. */
int files_copy(const char *from, const char *to, struct files_sum *sum, int (*stop)(void *arg), void *arg,
	       struct err *err);

/* 32 random digits, in hex, that no other file or object has. ERR_IO. */
int files_draw_name(char ret[33], struct err *err);

int files_sync_parent(const char *path, struct err *err); /* the folder's entry of path is on the disk then */

#endif
