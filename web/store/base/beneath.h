/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.h: the one rule for paths that others chose: nothing outside the folder that the user or the store named is
 * opened. Any thread. */
#ifndef DPT_STORE_BENEATH_H
#define DPT_STORE_BENEATH_H

#include <stdbool.h>

/* Opens the parent folder of path ("." if it has one segment); *ret_name points into path. make: creates missing
 * folders durably. Returns a descriptor, or -1 with errno. */
int beneath_parent(int root_fd, const char *path, bool make, const char **ret_name);

/* Opens path below a folder; no part of it is a link, "..", or leads outside. -1 with errno. */
int beneath_open(int root_fd, const char *path, int flags);

/* Opens a path of any form whose links all lead to something below the folder, in one step that no rename can deceive.
 * -1 with errno; EXDEV: outside. */
int beneath_open_real(const char *folder, const char *path, int flags);

#endif
