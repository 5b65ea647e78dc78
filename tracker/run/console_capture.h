/* console_capture.h: what the process prints, on its way to the journal: bytes become lines with a time each. Any thread adds;
 * the writer takes. A line that is printed over again and again (a progress bar) is kept about once a second. */
#ifndef DPT_RUN_CONSOLE_CAPTURE_H
#define DPT_RUN_CONSOLE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/buf.h"

struct console_capture;

struct console_capture *console_capture_new(void);    /* NULL when out of memory */
void console_capture_free(struct console_capture *p); /* NULL is fine */

/* stream: 1 standard output, 2 standard error. False when lines were left out: too many wait. */
bool console_capture_add(struct console_capture *p, int stream, const char *bytes, size_t n);

/* Appends a record of the lines since; at the end also those that were not ended. */
void console_capture_take(struct console_capture *p, struct buf *to, bool end);

#endif
