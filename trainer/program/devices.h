/* devices.h: how the devices of the ranks meet: a communicator of the backend beside each one that the hosts have, for
 * the nodes of its stream and group; and the watch over them, for a device that waits for a rank that is gone says
 * nothing. Used by the rank's own thread. Knows nothing of programs. */
#ifndef DPT_PROGRAM_DEVICES_H
#define DPT_PROGRAM_DEVICES_H

#include "trainer/backends/backend.h"
#include "trainer/comm/comm.h"

struct devices;

struct devices_opts {
	const struct backend *backend; /* with comms */
	void *module;
	struct comm *comm;	  /* of all ranks: who has died is asked there */
	struct comm *const *lane; /* [STREAM_COUNT * GROUP_COUNT], NULL where there is none */
	const char *node;	  /* this machine's name among the job's */
	double timeout_s;	  /* for all to come */
};

/* Collective. ERR_PEER: a rank died meanwhile or did not come in time. */
int devices_open(struct devices **ret, const struct devices_opts *o, struct err *err);

/* NULL is fine, here and below, and of a lane that there is none of. */
struct device_comm *devices_lane(const struct devices *d, enum stream stream, enum group group);

/* To be called again and again while the host waits for its device: ERR_PEER once a rank has died or a communicator
 * failed, and then whatever waits for others on this device ends. Cheap. */
int devices_watch(struct devices *d, struct err *err);

void devices_abort(struct devices *d); /* what waits for others on this device ends */
void devices_close(struct devices *d); /* collective, unless it was aborted */

#endif
