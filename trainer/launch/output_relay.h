/* output_relay.h: what a rank writes to its stderr, from a pipe, line by line: each goes on to this process's stderr, the last
 * ones are kept, in case they tell why the rank died. */
#ifndef DPT_LAUNCH_OUTPUT_RELAY_H
#define DPT_LAUNCH_OUTPUT_RELAY_H

#include <stddef.h>

#define OUTPUT_RELAY_LINES 12
#define OUTPUT_RELAY_LINE_BYTES 400 /* what is longer becomes several lines */

/* Caller's storage; nothing but fd is for reading. */
struct output_relay {
	int fd; /* the pipe, to be polled; -1: it has ended */
	int rank;
	char line[OUTPUT_RELAY_LINE_BYTES]; /* not yet complete */
	size_t line_len;
	char tail[OUTPUT_RELAY_LINES][OUTPUT_RELAY_LINE_BYTES];
	int n_tail;
};

/* fd: does not block, and is owned from here on; -1: there is none yet. rank: stands before each line; -1: nothing
 * does. */
void output_relay_begin(struct output_relay *r, int fd, int rank);
/* Passes on all that is there, and closes the pipe at its end. */
void output_relay_read(struct output_relay *r);
/* The kept lines once more, indented. */
void output_relay_print_tail(const struct output_relay *r);

#endif
