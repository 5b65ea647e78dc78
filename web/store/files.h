/* files.h: files and folders below a folder that is held open. Paths are taken segment by segment and never through a
 * symbolic link, so that nothing outside is reached. Private to web/store. */
#ifndef DPT_STORE_FILES_H
#define DPT_STORE_FILES_H

#include <stddef.h>
#include <stdint.h>

struct files_sum {
	uint64_t files, bytes;
};

/* Opens the folder that holds the last segment of path ("." when there is only one); *ret_name points into path.
 * A descriptor, or -1 with errno. */
int files_parent(int root_fd, const char *path, const char **ret_name);

/* Removes (with dry set: counts) name below at_fd with everything in it. 0, also when it is not there; else an errno. */
int files_remove(int at_fd, const char *name, int dry, struct files_sum *sum);

#endif
