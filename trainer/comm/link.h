/* SPDX-License-Identifier: Apache-2.0 */
/* link.h: the interface of transport modules (dptrain_ucx.so, dptrain_mpi.so) and its ABI. They carry bytes between
 * ranks of different machines. A module knows ranks, addresses and messages; hier*.c gives them their meaning and
 * orders the sums. A link belongs to one communicator and is used by one thread at a time.
 *
 * Messages between two ranks arrive whole and in the order in which they were started. The receive buffer may be named
 * before or after the message arrives. Buffers must stay untouched until poll reports them done. */
#ifndef DPT_COMM_LINK_H
#define DPT_COMM_LINK_H

#include "tracker/base/err.h"

#define LINK_ABI 4
#define LINK_SYMBOL "dptrain_link_v4"
#define LINK_SOCKETS_MAX 16
#define LINK_NAME_BYTES 16

struct link { /* first member of each module's own struct */
	const struct link_module *module;
};

struct link_opts {
	int rank, world;
	int sockets;	       /* connections over which a long message is spread */
	const char *interface; /* network interface towards the other machines; "": any */
};

struct link_transfer { /* one message; the struct may be moved in memory while it is in progress */
	int peer;
	bool sends;
	void *data;
	size_t bytes;
	void *request[LINK_SOCKETS_MAX]; /* the module's */
};

struct link_module {
	int abi;
	const char *name; /* shorter than LINK_NAME_BYTES */
	/* the system buffers arriving bytes, as far as it has room, while no thread calls the module */
	bool arrives_alone;
	int (*open)(struct link **ret, const struct link_opts *o, struct err *err);
	/* Returns the address that other ranks pass to connect; borrowed until close. */
	const void *(*address)(struct link *l, size_t *ret_n);
	int (*connect)(struct link *l, int rank, const void *address, size_t n, struct err *err);
	int (*start)(struct link *l, struct link_transfer *t, struct err *err);
	/* Progresses all transfers; call it before each round of poll. */
	void (*progress)(struct link *l);
	/* 1: done, 0: in progress, ERR_PEER: the peer is gone. A message that is done has left the process or leaves it
	 * without another call into the module. */
	int (*poll)(struct link *l, struct link_transfer *t, struct err *err);
	/* Sleeps until something may have happened, at most that many seconds. */
	void (*wait)(struct link *l, double seconds);
	void (*close)(struct link *l, bool orderly); /* orderly: messages that were sent still arrive */
};

/* name: "ucx", "mpi". ERR_NOENT: not built or not installed; ERR_UNSUPPORTED: it does not load. The module stays
 * loaded. */
int link_load(const struct link_module **ret, const char *name, struct err *err);

/* ---- modules of all kinds: backends, and transports between machines ---- */

/* Loads dptrain_NAME.so from $DPTRAIN_BACKEND_PATH, from next to the executable or from the installed module folder,
 * and finds its symbol. kind ("backend", "transport") is for messages. ERR_NOENT: not found; ERR_UNSUPPORTED: it does
 * not load or lacks the symbol. It stays loaded until the process ends or module_drop. */
struct module {
	void *handle;
	const void *symbol;
	char path[4096];
};

int module_load(struct module *ret, const char *kind, const char *name, const char *symbol, struct err *err);
void module_drop(struct module *m);

#endif
