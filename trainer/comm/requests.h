/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h: the messages of a collective between machines that are in progress. Both peers begin them in the same
 * order. Each message has a number by which it is due: a collective waits for what it needs next while the rest
 * travels. Knows the link and the machine's own ranks, not sums.
 *
 * A thread that polls for long messages takes time from a thread that computes on the same core, once for every
 * arriving piece. With sleeps_while_waiting the thread sleeps through a part of the expected wait, at most a few
 * milliseconds at once, while the system's buffers take the bytes. */
#ifndef DPT_COMM_REQUESTS_H
#define DPT_COMM_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/comm/comm.h"
#include "trainer/comm/link.h"

struct message;

struct requests {
	struct link *link;	  /* borrowed, as all pointers but the list */
	struct comm *local;	  /* the machine's communicator: the death of one of its ranks ends a wait */
	const int *number;	  /* indexed by rank: its number in messages to users */
	const char *what;	  /* name of the running collective in messages to users */
	double timeout_s;	  /* limit of a wait; 0: none */
	int64_t sent;		  /* bytes sent so far */
	struct message *list;	  /* messages in progress */
	int n, room;
	bool sleeps_while_waiting;
	struct requests_pace { /* measured since the list was last empty */
		double began_s;
		size_t requested; /* bytes to receive */
		double rate;  /* bytes per second of former long messages; 0: unknown */
	} pace;
};

/* room: most messages in progress at once. */
int requests_take_memory(struct requests *m, int room, struct err *err);

struct message_opts {
	int peer;
	bool sends;
	void *data; /* untouched until requests_await returns */
	size_t bytes;
	size_t due; /* compared by requests_await */
};

int requests_begin(struct requests *m, const struct message_opts *o, struct err *err);

/* Waits for all messages with a due of at most `due`. ERR_PEER: a rank is gone or late. */
int requests_await(struct requests *m, size_t due, struct err *err);

int requests_await_all(struct requests *m, struct err *err);

/* After a failure: forgets the messages in progress. */
void requests_drop(struct requests *m);

void requests_free(struct requests *m);

#endif
