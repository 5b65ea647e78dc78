/* cgroup.h: the control group of this process, for both versions of that interface: how long it was throttled, what it
 * may hold and holds, how long it waited for memory. */
#ifndef DPT_SYSTEM_CGROUP_H
#define DPT_SYSTEM_CGROUP_H

/* NaN where the system does not say. */
struct cgroup {
	double throttled_s;   /* since the group was made, summed over cores where version 1 does so */
	double memory_bytes;  /* in use; NaN without a limit */
	double memory_wait_s; /* some thread waited for memory, of the group (version 2) */
};

/* root: as proc.h's. */
void cgroup_read(struct cgroup *ret, const char *root);

#endif
