/* proc.h: small text files of the kernel, below a root folder ("" on a machine; tests have folders of their own). Knows
 * no file's meaning. */
#ifndef DPT_SYSTEM_PROC_H
#define DPT_SYSTEM_PROC_H

#include <stdbool.h>
#include <stddef.h>

#define PROC_TEXT_BYTES 16384

/* The first PROC_TEXT_BYTES - 1 bytes of <root>/<path>, with a NUL; false (and "") when it cannot be read. */
bool proc_read(const char *root, const char *path, char text[PROC_TEXT_BYTES]);

/* The number of a file that holds one, or the first of several; NaN: there is none. */
double proc_number(const char *root, const char *path);

/* The number behind key in text of lines "key number…" ("some avg10=… total=N": key "some", mark "total="; mark NULL:
 * right behind the key and its colon); NaN: there is none. */
double proc_value(const char *text, const char *key, const char *mark);

#endif
