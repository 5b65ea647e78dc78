/* slab_file.h: a slab that is a file: pages of it that nobody works with are not resident, and go to the disk when memory
 * is short. The file has no name, so it is gone with the process, however that ends. */
#ifndef DPT_PROGRAM_SLAB_FILE_H
#define DPT_PROGRAM_SLAB_FILE_H

#include <stddef.h>

#include "tracker/base/err.h"

/* Zeroed bytes in a new file of the folder, its room taken at once. ERR_USAGE when the folder cannot be written to, or
 * has no such room. */
int slab_file_open(void **ret, const char *dir, size_t bytes, struct err *err);
void slab_file_close(void *at, size_t bytes); /* NULL is fine */

#endif
