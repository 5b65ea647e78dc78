/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h: what programs need of a terminal: its width, and one line of progress on stderr. */
#ifndef DPT_BASE_TERMINAL_H
#define DPT_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of the terminal at fd; if fd is not a terminal, those of the variable COLUMNS; otherwise `fallback`. */
int terminal_columns(int fd, int fallback);

/* terminal_columns of stdout for help texts: between 60 and 120. */
int terminal_help_columns(int fallback);

/* Progress of a long task on stderr: how many are done, after how long, and with a known whole how long the rest will
 * take. On a terminal a line appears after two seconds and is rewritten in place; elsewhere, in a log, a line is added
 * every 30 seconds. One thread. */
struct terminal_progress {
	const char *what; /* "runs imported", "MiB of files copied" */
	uint64_t whole;	  /* 0: unknown */
	double start_s, shown_s;
	bool terminal, shown;
};

void terminal_progress_begin(struct terminal_progress *p, const char *what, uint64_t whole);

/* Cheap: writes at most five times a second. done <= whole, if that is known. */
void terminal_progress_show(struct terminal_progress *p, uint64_t done);

/* Removes the line. Call it before anything else is printed; showing may continue after that. */
void terminal_progress_clear(struct terminal_progress *p);

#endif
