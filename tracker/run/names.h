/* names.h: ids and the names of folders and files. Nothing here touches the disk. */
#ifndef DPT_RUN_NAMES_H
#define DPT_RUN_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define NAMES_ID_BYTES 33         /* 32 hex digits and NUL */
#define NAMES_COMPONENT_BYTES 128 /* an escaped name and NUL */

int names_draw_id(char ret[NAMES_ID_BYTES]); /* 0 or ERR_IO */
bool names_is_id(const char *id);

/* A folder's name for an experiment or run: [A-Za-z0-9._-] as they are, other bytes '_', at most 100 bytes, never
 * empty, hidden, ".." or one of the server's own (dptrack.*). */
void names_escape(char ret[NAMES_COMPONENT_BYTES], const char *name);

/* Two words and a number, the same for the same id. */
void names_from_id(char ret[NAMES_COMPONENT_BYTES], const char *id);

/* This machine's name, fit for a file name. */
void names_host(char ret[NAMES_COMPONENT_BYTES]);

#endif
