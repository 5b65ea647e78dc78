/* requests.h: what a collective has under way between machines. Messages are begun in the order in which their peers
 * begin the other ends, and each says by when it is due: a collective waits for what it needs next and leaves the rest
 * to travel meanwhile. Knows the link and the machine's own ranks, nothing of sums.
 *
 * Who waits for long messages beside somebody who computes on the same core takes that from them with every piece that
 * comes: where `rests`, the thread sleeps through a part of the time that they will take, a few milliseconds at most at
 * once, while the machine's buffers take what comes. */
#ifndef DPT_COMM_REQUESTS_H
#define DPT_COMM_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/comm/comm.h"
#include "trainer/comm/link.h"

struct message;

struct requests {
	struct link *link;	  /* borrowed, as all pointers are but the list */
	struct comm *local;	  /* of shared memory: its ranks' deaths end a wait */
	const int *number;	  /* by rank: what messages to users call it */
	const char *what;	  /* collective that runs, for them */
	double timeout_s;	  /* of a wait; 0: none */
	int64_t sent;		  /* bytes so far */
	struct message *list;	  /* under way */
	int n, room;
	bool sleeps_while_waiting;
	struct requests_pace { /* since nothing was under way */
		double began_s;
		size_t requested; /* bytes that were asked for, */
		double rate;  /* and came in a second, of former long ones; 0: not known */
	} pace;
};

/* room: the most that are under way at once. */
int requests_take_memory(struct requests *m, int room, struct err *err);

struct message_opts {
	int peer;
	bool sends;
	void *data; /* untouched until it is awaited */
	size_t bytes;
	size_t due; /* what requests_await counts by */
};

int requests_begin(struct requests *m, const struct message_opts *o, struct err *err);

/* All that is due by then is done. ERR_PEER: a rank is gone, or did not come in time. */
int requests_await(struct requests *m, size_t due, struct err *err);

int requests_await_all(struct requests *m, struct err *err);

/* After a fault: what is under way is forgotten. */
void requests_drop(struct requests *m);

void requests_free(struct requests *m);

#endif
