/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h: the communicators of the ranks' devices: one of the backend for each communicator of the hosts, for the
 * nodes of its stream and group. Also watches them, since a device that waits for a dead rank reports nothing. Used by
 * the rank's own thread. Independent of programs. */
#ifndef DPT_PROGRAM_DEVICES_H
#define DPT_PROGRAM_DEVICES_H

#include "trainer/backends/backend.h"
#include "trainer/comm/comm.h"

struct devices;

struct devices_opts {
	const struct backend *backend; /* provides comms */
	void *module;
	struct comm *comm;	  /* communicator of all ranks, which reports dead ones */
	struct comm *const *lane; /* [STREAM_COUNT * GROUP_COUNT]; NULL: no such communicator */
	const char *node;	  /* this machine's name in the job */
	double timeout_s;	  /* longest wait for all ranks */
};

/* Collective. ERR_PEER: a rank died or did not connect in time. */
int devices_open(struct devices **ret, const struct devices_opts *o, struct err *err);

/* d may be NULL, here and below. NULL: the lane has no communicator. */
struct device_comm *devices_lane(const struct devices *d, enum stream stream, enum group group);

/* Call it repeatedly while the host waits for its device: ERR_PEER once a rank has died or a communicator failed; then
 * every wait for other ranks on this device ends. Cheap. */
int devices_watch(struct devices *d, struct err *err);

void devices_abort(struct devices *d); /* ends every wait for other ranks on this device */
void devices_close(struct devices *d); /* collective, unless aborted */

#endif
