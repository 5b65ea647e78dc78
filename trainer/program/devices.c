/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c: see devices.h. */
#include "trainer/program/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"

#define LANES (STREAM_COUNT * GROUP_COUNT)
#define CHECK_S 0.05 /* between two checks of the other ranks */

struct devices {
	const struct backend_comms *ops;
	struct comm *comm;
	struct device_comm *lane[LANES];
	double checked_s;
	bool aborted;
};

struct device_comm *devices_lane(const struct devices *d, enum stream stream, enum group group)
{
	return d ? d->lane[stream * GROUP_COUNT + group] : NULL;
}

/* Sent by rank 0 of a group to the others. */
struct comm_id_message {
	int rc;
	struct err why;
	unsigned char id[BACKEND_COMM_ID_BYTES];
};

static int exchange_comm_id(const struct devices_opts *o, struct comm *lane, struct comm_id_message *ret,
			    struct err *err)
{
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (lane->rank == 0)
		ret->rc = o->backend->comms->id(o->module, ret->id, &ret->why);
	rc = lane->ops->broadcast(lane, ret, sizeof(*ret), 0, err);
	return !rc && ret->rc ? err_set(err, ret->rc, "%s", ret->why.text) : rc;
}

/* Waits until the communicator of all ranks is open. */
static int wait_lane_open(const struct devices_opts *o, struct device_comm *c, struct err *err)
{
	const double end_s = clock_mono_s() + o->timeout_s;
	const struct timespec nap = { 0, 200000 };
	int rc;

	while ((rc = o->backend->comms->poll(c, err)) == 0) {
		rc = o->comm->ops->check(o->comm, err);
		if (rc)
			return rc;
		if (clock_mono_s() > end_s)
			return err_set(err, ERR_PEER, "the devices of the ranks did not connect within %.0f s",
				       o->timeout_s);
		nanosleep(&nap, NULL);
	}
	return rc < 0 ? rc : 0;
}

#define NODE_BYTES 160

/* Finds, for each rank of a group, the first rank on the same machine. */
static int find_machines(const struct devices_opts *o, struct comm *lane, int **ret, struct err *err)
{
	char(*name)[NODE_BYTES] = mem_array((size_t)lane->world, sizeof(*name));
	int *machine = mem_array((size_t)lane->world, sizeof(*machine)), rc;

	snprintf(name[lane->rank], sizeof(*name), "%s", o->node);
	rc = lane->ops->all_gather(lane, name, sizeof(*name), err);
	for (int r = 0; r < lane->world; r++)
		while (strncmp(name[machine[r]], name[r], sizeof(*name)) != 0)
			machine[r]++;
	free(name);
	*ret = machine;
	return rc;
}

static int open_lane(struct devices *d, const struct devices_opts *o, int i, struct err *err)
{
	struct comm *lane = o->lane[i];
	struct comm_id_message all;
	int *machine = NULL, rc = exchange_comm_id(o, lane, &all, err);

	if (!rc)
		rc = find_machines(o, lane, &machine, err);
	if (!rc)
		rc = d->ops->open(o->module,
				  &(struct device_comm_opts){ .name = group_name((enum group)(i % GROUP_COUNT)),
							      .rank = lane->rank,
							      .world = lane->world,
							      .id = all.id,
							      .machine = machine },
				  &d->lane[i], err);
	free(machine);
	return rc ? rc : wait_lane_open(o, d->lane[i], err);
}

int devices_open(struct devices **ret, const struct devices_opts *o, struct err *err)
{
	struct devices *d = mem_zalloc(sizeof(*d));
	int rc = 0;

	d->ops = o->backend->comms;
	d->comm = o->comm;
	for (int i = 0; !rc && i < LANES; i++)
		if (o->lane[i] && o->lane[i]->world > 1)
			rc = open_lane(d, o, i, err);
	if (rc) {
		devices_abort(d);
		devices_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

int devices_watch(struct devices *d, struct err *err)
{
	const double now = clock_mono_s();
	int rc;

	if (!d || now - d->checked_s < CHECK_S)
		return 0;
	d->checked_s = now;
	rc = d->comm->ops->check(d->comm, err);
	for (int i = 0; !rc && i < LANES; i++)
		if (d->lane[i] && d->ops->poll(d->lane[i], err) < 0)
			rc = ERR_PEER;
	if (rc)
		devices_abort(d);
	return rc;
}

static void close_lanes(struct devices *d, bool orderly)
{
	for (int i = LANES - 1; i >= 0; i--) {
		if (d->lane[i])
			d->ops->close(d->lane[i], orderly);
		d->lane[i] = NULL;
	}
}

void devices_abort(struct devices *d)
{
	if (!d || d->aborted)
		return;
	d->aborted = true;
	close_lanes(d, false);
}

void devices_close(struct devices *d)
{
	if (!d)
		return;
	close_lanes(d, true);
	free(d);
}
