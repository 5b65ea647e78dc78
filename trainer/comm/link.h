/* link.h: what carries bytes between ranks of different machines, and the ABI of the modules that do (dptrain_ucx.so,
 * dptrain_mpi.so). A module knows ranks, addresses and messages; what they mean, and in which order sums run, is
 * hier.c's. A link belongs to one communicator and is used by one thread at a time.
 *
 * Messages between two ranks arrive in the order in which they were started, whole, into buffers that were named before
 * or after they came. Buffers stay untouched until poll says so. */
#ifndef DPT_COMM_LINK_H
#define DPT_COMM_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"

#define LINK_ABI 3
#define LINK_SYMBOL "dptrain_link_v3"
#define LINK_SOCKETS_MAX 16
#define LINK_NAME_BYTES 16

struct link { /* first member of each module's own struct */
	const struct link_module *module;
};

struct link_opts {
	int rank, world;
	int sockets;	       /* over which long messages are spread */
	const char *interface; /* towards the other machines; "" any */
};

struct link_transfer { /* one message; may be moved in memory while it is under way */
	int peer;
	bool sends;
	void *data;
	size_t bytes;
	void *request[LINK_SOCKETS_MAX]; /* the module's */
};

struct link_module {
	int abi;
	const char *name; /* shorter than LINK_NAME_BYTES */
	bool arrives_alone; /* what comes is kept, as far as buffers go, while nobody calls the module */
	int (*open)(struct link **ret, const struct link_opts *o, struct err *err);
	/* What the others need to reach this rank; borrowed until close. */
	const void *(*address)(struct link *l, size_t *ret_n);
	int (*connect)(struct link *l, int rank, const void *address, size_t n, struct err *err);
	int (*start)(struct link *l, struct link_transfer *t, struct err *err);
	/* Moves along what is under way; before each look at some of it. */
	void (*progress)(struct link *l);
	/* 1: done, 0: not yet, ERR_PEER: the peer is gone. What was sent has left the process then, or leaves without a
	 * call: who sent it may call the link no more. */
	int (*poll)(struct link *l, struct link_transfer *t, struct err *err);
	/* Sleeps until something may have happened, so many seconds at most. */
	void (*wait)(struct link *l, double seconds);
	void (*close)(struct link *l, bool orderly); /* orderly: what was sent still arrives */
};

/* "ucx", "mpi". ERR_NOENT: not built or not installed; ERR_UNSUPPORTED: it does not load. Stays loaded. */
int link_load(const struct link_module **ret, const char *name, struct err *err);

#endif
