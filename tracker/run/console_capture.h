/* SPDX-License-Identifier: Apache-2.0 */
/* console_capture.h: console capture: converts printed bytes into lines with times, for the journal. Any thread adds;
 * the writer takes. A line that is overwritten repeatedly (a progress bar) is recorded about once a second. */
#ifndef DPT_RUN_CONSOLE_CAPTURE_H
#define DPT_RUN_CONSOLE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/buf.h"

struct console_capture;

struct console_capture *console_capture_new(void);    /* NULL: out of memory */
void console_capture_free(struct console_capture *p); /* NULL is fine */

/* stream: 1 standard output, 2 standard error. Returns false if lines were dropped because too many were queued. */
bool console_capture_add(struct console_capture *p, int stream, const char *bytes, size_t n);

/* Appends a record of the lines since the last call; with `end` also the partial lines. */
void console_capture_take(struct console_capture *p, struct buf *to, bool end);

#endif
