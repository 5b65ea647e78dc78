/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h: the flight recorder of a rank: its last collectives, in memory that may outlive the rank, and a heartbeat
 * counter that a thread increments. The rank writes. Any process that shares the memory may read at any time: an entry
 * may be torn then, but it is never out of bounds. Does not know where the memory comes from or who reads it. */
#ifndef DPT_COMM_FLIGHT_H
#define DPT_COMM_FLIGHT_H

#include <stdatomic.h>

#include "trainer/comm/comm.h"

#define FLIGHT_ENTRIES 256
#define FLIGHT_BEAT_S 0.5
#define FLIGHT_LINE_BYTES 240

struct flight_entry {
	char op[16], node[48], group[16]; /* node: of the graph; "": a call of the host */
	int32_t dtype;			  /* enum dtype; -1 bytes */
	int64_t bytes, step;
	double start_s, end_s; /* clock_mono_s; end 0: in progress, or interrupted */
};

struct flight {			/* zeroed before use */
	_Atomic uint32_t beats; /* heartbeat; 0: not started, or stopped */
	_Atomic int64_t step;
	_Atomic uint32_t n; /* entries so far; the last is (n - 1) % FLIGHT_ENTRIES */
	struct flight_entry entry[FLIGHT_ENTRIES];
};

/* Wraps c, which the result owns, and records its calls and those of all communicators split from it. Any number of
 * threads, one for each communicator. f is borrowed. */
struct comm *flight_comm(struct comm *c, struct flight *f, const char *group);

/* Sets the node that the next collectives of c belong to, until the next call; NULL: none. Does nothing where c is not
 * a communicator of flight_comm. node is borrowed. */
void flight_node(struct comm *c, const char *node);

/* Copies entry i, counted from the newest (0); false: there is no such entry. */
bool flight_last(const struct flight *f, unsigned i, struct flight_entry *ret);

/* Writes one line: "all-reduce of bucket.3 (f32, 1048576 bytes, group of all ranks, step 12), in progress for 0.2
 * s". */
void flight_describe(const struct flight_entry *e, double now_s, char ret[FLIGHT_LINE_BYTES]);

/* The thread that increments the heartbeat; one for a process. */
struct flight_pulse;
int flight_pulse_start(struct flight_pulse **ret, struct flight *f, struct err *err);
void flight_pulse_stop(struct flight_pulse *p); /* NULL is fine */

#endif
