/* file_name.h: file names that are derived from untrusted texts. */
#ifndef DPT_BASE_FILE_NAME_H
#define DPT_BASE_FILE_NAME_H

#include <stddef.h>

#include "tracker/base/err.h"

#define FILE_NAME_BYTES 128 /* a name made from a text, room for a numeric suffix, and NUL */

/* Makes a folder name for an experiment or run: [A-Za-z0-9._-] are kept, other bytes become '_'. At most 100 bytes;
 * never empty, hidden, "..", an option or a reserved name of the server (dptrack.*). */
void file_name_of(char ret[FILE_NAME_BYTES], const char *text);

/* The folder of the file at path, "." without a slash; truncated to n bytes with NUL. */
void file_name_folder(const char *path, char *ret, size_t n);

/* Creates the folders above the file at path. */
int file_name_folders(const char *path, struct err *err);

#endif
