/* output_relay.h: relays the stderr of a rank from a pipe, line by line, to this process's stderr, and keeps the last
 * lines, which may explain why the rank died. */
#ifndef DPT_LAUNCH_OUTPUT_RELAY_H
#define DPT_LAUNCH_OUTPUT_RELAY_H

#include <stddef.h>

#define OUTPUT_RELAY_LINES 12
#define OUTPUT_RELAY_LINE_BYTES 400 /* longer lines are split */

/* In the caller's storage; the caller may read fd only. */
struct output_relay {
	int fd; /* the pipe, to be polled; -1: it has ended */
	int rank;
	char line[OUTPUT_RELAY_LINE_BYTES]; /* incomplete line */
	size_t line_len;
	char tail[OUTPUT_RELAY_LINES][OUTPUT_RELAY_LINE_BYTES];
	int n_tail;
};

/* fd: non-blocking, owned from here on; -1: none yet. rank: prefix of each line; -1: no prefix. */
void output_relay_begin(struct output_relay *r, int fd, int rank);
/* Relays all available bytes, and closes the pipe at its end. */
void output_relay_read(struct output_relay *r);
/* Prints the kept lines again, indented. */
void output_relay_print_tail(const struct output_relay *r);

#endif
