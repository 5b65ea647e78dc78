/* link_emulation.h: a communicator around another one that emulates a slower link: its collectives take longer. */
#ifndef DPT_COMM_LINK_EMULATION_H
#define DPT_COMM_LINK_EMULATION_H

#include "trainer/comm/comm.h"

struct link_emulation_link {
	double latency_s;   /* added to each call */
	double bytes_per_s; /* of bytes that leave or reach a rank; 0: no limit */
};

/* *ret calls c and then waits for the latency and the bytes of the call; so do communicators split from *ret. *ret owns
 * c; c is closed when memory runs out. */
int link_emulation_comm(struct comm **ret, struct comm *c, const struct link_emulation_link *link, struct err *err);

#endif
