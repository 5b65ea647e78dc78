/* slab_file.h: a slab in a file: its unused pages are not resident and are written to the disk when memory is short.
 * The file has no name, so it disappears with the process, however that ends. */
#ifndef DPT_PROGRAM_SLAB_FILE_H
#define DPT_PROGRAM_SLAB_FILE_H

#include <stddef.h>

#include "tracker/base/err.h"

/* Maps zeroed bytes of a new file in the folder and reserves its room. ERR_USAGE when the folder is not writable or has
 * no such room. */
int slab_file_open(void **ret, const char *dir, size_t bytes, struct err *err);
void slab_file_close(void *at, size_t bytes); /* NULL is fine */

#endif
