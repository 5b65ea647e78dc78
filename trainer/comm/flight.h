/* flight.h: a rank's flight recorder: its last collectives, in memory that may outlive the rank, and a sign of life
 * that a thread of its own renews. The rank writes, whoever shares the memory reads, also while it is written: an
 * entry may then be torn, never out of bounds. Knows nothing of where the memory comes from and of who reads. */
#ifndef DPT_COMM_FLIGHT_H
#define DPT_COMM_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "trainer/comm/comm.h"

#define FLIGHT_ENTRIES 256
#define FLIGHT_BEAT_S 0.5
#define FLIGHT_LINE_BYTES 240

struct flight_entry {
	char op[16], node[48], group[16]; /* node: of the graph; "": asked for by the host */
	int32_t dtype;			  /* enum dtype; -1 bytes */
	int64_t bytes, step;
	double start_s, end_s; /* clock_mono_s; end 0: under way, or never came to its end */
};

struct flight { /* zeroed before use */
	_Atomic uint32_t beats; /* 0: not yet, or no more */
	_Atomic int64_t step;
	_Atomic uint32_t n; /* entries so far; the last is (n - 1) % FLIGHT_ENTRIES */
	struct flight_entry entry[FLIGHT_ENTRIES];
};

/* Wraps c, which belongs to *ret from now on (also on failure): what *ret and all that is split from it do is
 * recorded. Any number of threads, one for each communicator. f is borrowed. */
int flight_comm(struct comm **ret, struct comm *c, struct flight *f, const char *group, struct err *err);

/* The node that the next collectives of c are for, until called again; NULL none. Nothing where c is not flight_comm's.
 * node is borrowed. */
void flight_node(struct comm *c, const char *node);

/* Entry i from the newest (0); false: there is none. */
bool flight_last(const struct flight *f, unsigned i, struct flight_entry *ret);

/* One line: "all-reduce of bucket.3 (f32, 1048576 bytes, group of all ranks, step 12), under way for 0.2 s". */
void flight_describe(const struct flight_entry *e, double now_s, char ret[FLIGHT_LINE_BYTES]);

/* The thread that renews the sign of life; one for a process. */
struct flight_pulse;
int flight_pulse_start(struct flight_pulse **ret, struct flight *f, struct err *err);
void flight_pulse_stop(struct flight_pulse *p); /* NULL is fine */

#endif
