/* bootstrap.h: how members of a job on several machines (launchers, or ranks) find each other over TCP and tell all of
 * them something. Member 0 listens, the others come to it. Each proves by HMAC of the other's fresh random bytes that
 * it knows the job's key; who cannot is dropped and disturbs nobody. What goes wrong in one member while all meet is
 * told to all. Not thread-safe. Knows nothing of what is told. */
#ifndef DPT_COMM_BOOTSTRAP_H
#define DPT_COMM_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"
#include "trainer/comm/tcp.h"

#define BOOTSTRAP_VERSION 2     /* of all that members say to each other: to be raised when a struct of it changes */
#define BOOTSTRAP_ANY (-1)      /* the number that member 0 gives: first come */
#define BOOTSTRAP_KEY_BYTES 256

struct bootstrap_opts {
	const char *what; /* of members, for messages: "node", "rank" */
	const char *host; /* of member 0 */
	int port;
	int listener;	/* member 0: of tcp_listen, stays the caller's; others -1 */
	int self;	/* 0, another number, or BOOTSTRAP_ANY */
	int count;	/* of members, the same for all */
	int least;	/* member 0: so many, with itself, are enough once wait_s is over; 0: all are needed */
	const char *key;
	double wait_s;	/* longest for all to come, and for one that has come to say something */
};

struct bootstrap;

/* All are there, or enough of them: who did not come says nothing in any round. ERR_PEER names who did not come, or why
 * another could not. */
int bootstrap_open(struct bootstrap **ret, const struct bootstrap_opts *o, struct err *err);
void bootstrap_close(struct bootstrap *x); /* NULL is fine */

int bootstrap_self(const struct bootstrap *x);
int bootstrap_count(const struct bootstrap *x);

/* Collective: everybody's bytes (any number, at most 16 MiB) reach everybody. With failure set (code not 0) it says
 * instead that this member cannot go on: all others get ERR_PEER, this one its own error back. */
int bootstrap_round(struct bootstrap *x, const void *own, size_t n, const struct err *failure, struct err *err);

/* Of the last round; borrowed until the next. */
const void *bootstrap_said(const struct bootstrap *x, int member, size_t *ret_n);

/* The connection to that member: member 0 has one to each, the others one to member 0; else -1. Stays x's. */
int bootstrap_fd(const struct bootstrap *x, int member);

/* This machine's interface towards the others; "" unknown. */
void bootstrap_interface(const struct bootstrap *x, char *ret, size_t n);

#endif
