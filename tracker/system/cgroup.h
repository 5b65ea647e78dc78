/* cgroup.h: the control group of this process, for both versions of that interface: how long it was throttled, what it
 * may hold and holds, how long it waited for memory, what its limits and those of the groups above it leave. All of the
 * program that asks about control groups asks here. */
#ifndef DPT_SYSTEM_CGROUP_H
#define DPT_SYSTEM_CGROUP_H

#include <stdint.h>

#define CGROUP_NO_QUOTA (1 << 20) /* cores */

/* NaN where the system does not say. */
struct cgroup {
	double throttled_s;   /* since the groups were made, over their cores: of the group and of those above it
			       * together, as the one that stops it now may have been stopped less than another */
	double memory_bytes;  /* in use by the first of these groups that has a limit; NaN without one */
	double memory_wait_s; /* some thread waited for memory, of the group (version 2) */
};

/* root: as proc.h's, here and below. */
void cgroup_read(struct cgroup *ret, const char *root);

/* Cores that the tightest quota of the group and those above it leaves, rounded up; CGROUP_NO_QUOTA: there is none. */
int cgroup_cores(const char *root);

/* Bytes that may still be taken before the tightest of their memory limits is reached, what would be given up for it
 * included, at least 1; INT64_MAX: there is no limit. */
int64_t cgroup_room_bytes(const char *root);

#endif
