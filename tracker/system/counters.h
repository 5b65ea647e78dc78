/* counters.h: the kernel's counters of the machine and of this process. Two readings give the series of
 * schema/event/system.def (system_sample.h). */
#ifndef DPT_SYSTEM_COUNTERS_H
#define DPT_SYSTEM_COUNTERS_H

/* Cumulative sums; NaN if the system does not report them. */
struct counters {
	double at_s;                     /* time of the reading: clock_mono_s */
	double cores;
	double busy_s, idle_s, steal_s;  /* sum over all cores */
	double own_s;                    /* processor time of this process */
	double throttled_s;              /* cgroup.h */
	double memory_wait_s;
	double memory_bytes, clock_mhz;  /* current values */
	double energy_j;
	double major_faults;
	double disk_read, disk_written, net_sent, net_received; /* bytes */
};

/* root: as in proc.h. */
void counters_read(struct counters *ret, const char *root);

#endif
