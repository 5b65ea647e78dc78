/* SPDX-License-Identifier: Apache-2.0 */
/* system_sample.h: computes the series of schema/event/system.def over the time since the previous sample.
 *
 *	sample_begin(&s, "", NULL);
 *	…at least once a second: sample_loop(&s)…
 *	sample_take(&s, values);        (NaN: the system does not report it)
 *	sample_done(&s);
 */
#ifndef DPT_SYSTEM_SYSTEM_SAMPLE_H
#define DPT_SYSTEM_SYSTEM_SAMPLE_H

#include <dirent.h>
#include <stddef.h>

#include "tracker/base/clock.h"

/* ---- the kernel's counters of the machine and of this process ---- */

/* Cumulative sums; NaN if the system does not report them. */
struct counters {
	double at_s; /* time of the reading: clock_mono_s */
	double cores;
	double busy_s, idle_s, steal_s; /* sum over all cores */
	double own_s;			/* processor time of this process */
	double throttled_s;		/* cgroup.h */
	double memory_wait_s;
	double memory_bytes, clock_mhz; /* current values */
	double energy_j;
	double major_faults;
	double disk_read, disk_written, net_sent, net_received; /* bytes */
};

/* root: as in cgroup.h. */
void counters_read(struct counters *ret, const char *root);

/* ---- how long the compute threads of this process waited for a core ----
 * Compute threads have the name of the first thread, as OpenMP's threads do; helpers (loaders, writers) have their own
 * names. */
#define THREADS_MAX 512 /* further ones are ignored */

struct threads_seen {
	long id;
	double on_core_s, wait_s;
};

struct threads {			       /* zeroed at first; all members are private */
	DIR *folder;			       /* kept open, so that a reading allocates nothing */
	struct threads_seen seen[THREADS_MAX]; /* state of the last reading */
	size_t n;
};

struct threads_use {
	double wait_s;	  /* longest wait of a thread; NaN: not counted by the kernel */
	double busy;	  /* number of threads that were on a core for a twentieth of the time or more */
	double on_core_s; /* sum over these */
};

/* Reads the use since the last call with t. seconds: that interval; root: as in cgroup.h, always the same. */
void threads_read(struct threads *t, const char *root, double seconds, struct threads_use *ret);
void threads_done(struct threads *t); /* a zeroed one is fine */

/* ---- one NVIDIA GPU, for the whole device and all its users ----
 * By its driver's library NVML, which is loaded at run time; without it or the device, all values are NaN. */

/* NaN if the driver does not report it. */
struct gpu_stats {
	double util_percent; /* share of NVML's last sample (up to a second) in which a kernel ran */
	double memory_bytes; /* in use, by all processes */
	double power_watts, temperature_c, sm_mhz;
	double throttled_s; /* time that power or heat limited the clocks since the driver was loaded */
};

struct gpu;

/* uuid: "GPU-…", as nvidia-smi -L prints it. Returns NULL without the device, the driver, or memory. */
struct gpu *gpu_open(const char *uuid);
void gpu_read(struct gpu *g, struct gpu_stats *ret); /* g NULL: all NaN */
void gpu_close(struct gpu *g);			     /* NULL is fine */

/* ---- a sample ---- */

enum sample_series {
#define SYSTEM(name, kind, help) SAMPLE_##name,
#include "schema/event/system.def"
#undef SYSTEM
	SAMPLE_SERIES
};

/* Caller's storage; all members are private. */
struct system_sample {
	const char *root;
	struct counters first, last;
	struct threads threads;
	struct gpu *gpu; /* NULL: no GPU, or no NVML */
	double gpu_throttled_s;
	double loop_s;		/* the shortest since the last sample; INFINITY: none */
};

const char *sample_key(enum sample_series s); /* "system/cpu_percent" */

/* root: as in cgroup.h, borrowed; gpu: its UUID, or NULL. */
void sample_begin(struct system_sample *s, const char *root, const char *gpu);
void sample_loop(struct system_sample *s); /* runs the fixed loop, about 100 us in total */
void sample_take(struct system_sample *s, double ret[SAMPLE_SERIES]);
void sample_done(struct system_sample *s);

/* Returns for how many of `seconds` a quota kept compute threads from their work. throttled_s: seconds of throttling,
 * summed over cores. Threads wait for each other: when one is throttled, others stop too, and the kernel does not count
 * that. The time off their cores is used instead, up to throttled_s. */
double sample_throttled(const struct threads_use *use, double throttled_s, double cores, double seconds);

#endif
