/* link_emulation.h: a communicator around another whose collectives take as much longer as a slower link would make them. */
#ifndef DPT_COMM_LINK_EMULATION_H
#define DPT_COMM_LINK_EMULATION_H

#include "trainer/comm/comm.h"

struct link_emulation_link {
	double latency_s;   /* of each call */
	double bytes_per_s; /* of what leaves a rank, or comes to it; 0: no limit */
};

/* Calls of *ret are those of c, and after each the rank waits for latency and bytes; so it is with what is split from
 * it. *ret owns c, which is closed when memory is out. */
int link_emulation_comm(struct comm **ret, struct comm *c, const struct link_emulation_link *link, struct err *err);

#endif
