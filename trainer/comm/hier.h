/* hier.h: a communicator over several machines: shared memory within each, a link between them. */
#ifndef DPT_COMM_HIER_H
#define DPT_COMM_HIER_H

#include "trainer/comm/comm.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/link.h"

#define NODES_NAME_BYTES 160

struct comm_hier_opts {
	struct comm *local; /* of comm_shm_open: this machine's ranks, in the order of their numbers; taken over */
	struct bootstrap *bootstrap; /* of all ranks, whose members' numbers are the ranks' */
	const char *node;	   /* the machine's name, the same for its ranks and for no other machine's */
	const struct link_module *link;
	int sockets;
	double timeout_s; /* as comm_shm_opts */
};

/* Collective over all ranks. On failure local is closed too. */
int comm_hier_open(struct comm **ret, const struct comm_hier_opts *o, struct err *err);

#endif
