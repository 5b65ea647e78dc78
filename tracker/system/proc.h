/* proc.h: reads small text files of the kernel, below a root folder ("" on a machine; tests use their own folders).
 * Does not interpret them. */
#ifndef DPT_SYSTEM_PROC_H
#define DPT_SYSTEM_PROC_H

#include <stdbool.h>
#include <stddef.h>

#define PROC_TEXT_BYTES 16384

/* Reads the first PROC_TEXT_BYTES - 1 bytes of <root>/<path>, with a NUL. Returns false (and "") if it is
 * unreadable. */
bool proc_read(const char *root, const char *path, char text[PROC_TEXT_BYTES]);

/* Returns the first number in a file; NaN: none. */
double proc_number(const char *root, const char *path);

/* Returns the number after key in lines "key number…" ("some avg10=… total=N": key "some", mark "total="; mark NULL:
 * directly after the key and its colon); NaN: none. */
double proc_value(const char *text, const char *key, const char *mark);

#endif
