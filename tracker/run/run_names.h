/* run_names.h: ids and the names of folders and files. No disk access. */
#ifndef DPT_RUN_RUN_NAMES_H
#define DPT_RUN_RUN_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/file.h"

#define NAMES_ID_BYTES 33 /* 32 hex digits and NUL */

int names_draw_id(char ret[NAMES_ID_BYTES]); /* 0 or ERR_IO */
bool names_is_id(const char *id);

/* Two words and a number, derived from the id. */
void names_from_id(char ret[FILE_NAME_BYTES], const char *id);

/* This machine's name, valid in a file name. */
void names_host(char ret[FILE_NAME_BYTES]);

#endif
