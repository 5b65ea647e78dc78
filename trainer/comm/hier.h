/* SPDX-License-Identifier: Apache-2.0 */
/* hier.h: a hierarchical communicator: shared memory within each machine, a link between machines. */
#ifndef DPT_COMM_HIER_H
#define DPT_COMM_HIER_H

#include "trainer/comm/bootstrap.h"
#include "trainer/comm/comm.h"
#include "trainer/comm/link.h"

#define NODES_NAME_BYTES 160

struct comm_hier_opts {
	/* of comm_shm_open: this machine's ranks, in the order of their numbers; owned from here on */
	struct comm *local;
	struct bootstrap *bootstrap; /* connects all ranks; a member's number is its rank */
	/* the machine's name: the same for all its ranks, different on every other machine */
	const char *node;
	const struct link_module *link;
	int sockets;
	double timeout_s; /* as in comm_shm_opts */
};

/* Collective over all ranks. Closes local on failure, too. */
int comm_hier_open(struct comm **ret, const struct comm_hier_opts *o, struct err *err);

#endif
