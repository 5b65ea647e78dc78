/* counters.h: what the kernel has counted so far of the machine and of this process. Two of them and the time between
 * give the series of schema/event/system.def (system_sample.h). */
#ifndef DPT_SYSTEM_COUNTERS_H
#define DPT_SYSTEM_COUNTERS_H

/* Sums since somewhen, NaN where the system does not say. */
struct counters {
	double at_s;                     /* when they were read: clock_mono_s */
	double cores;
	double busy_s, idle_s, steal_s;  /* of all cores together */
	double own_s;                    /* processor time of this process */
	double throttled_s;              /* cgroup.h */
	double memory_wait_s;
	double memory_bytes, clock_mhz;  /* as they are now */
	double energy_j;
	double major_faults;
	double disk_read, disk_written, net_sent, net_received; /* bytes */
};

/* root: as proc.h's. */
void counters_read(struct counters *ret, const char *root);

#endif
