/* file_name.h: where files go whose names come from elsewhere. */
#ifndef DPT_BASE_FILE_NAME_H
#define DPT_BASE_FILE_NAME_H

#include <stddef.h>

#include "tracker/base/err.h"

#define FILE_NAME_BYTES 128 /* a name made of a text, with room for digits behind it, and NUL */

/* A folder's name for an experiment or run: [A-Za-z0-9._-] as they are, other bytes '_', at most 100 bytes, never
 * empty, hidden, "..", an option or one of the server's own (dptrack.*). */
void file_name_of(char ret[FILE_NAME_BYTES], const char *text);

/* The folder of the file at path, "." where it names none; cut to n bytes with NUL. */
void file_name_folder(const char *path, char *ret, size_t n);

/* Makes the folders that lead to the file at path. */
int file_name_folders(const char *path, struct err *err);

#endif
