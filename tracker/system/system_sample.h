/* system_sample.h: computes the series of schema/event/system.def over the time since the previous sample.
 *
 *	sample_begin(&s, "", NULL);
 *	…at least once a second: sample_loop(&s)…
 *	sample_take(&s, values);        (NaN: the system does not report it)
 *	sample_done(&s);
 */
#ifndef DPT_SYSTEM_SYSTEM_SAMPLE_H
#define DPT_SYSTEM_SYSTEM_SAMPLE_H

#include "tracker/base/clock.h"
#include "tracker/system/counters.h"
#include "tracker/system/gpu.h"
#include "tracker/system/threads.h"

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
	double loop_s; /* the shortest since the last sample; INFINITY: none */
	struct clock_hook slow; /* of tests: a factor that lengthens the loop */
};

const char *sample_key(enum sample_series s); /* "system/cpu_percent" */

/* root: as in proc.h, borrowed; gpu: its UUID, or NULL. */
void sample_begin(struct system_sample *s, const char *root, const char *gpu);
void sample_loop(struct system_sample *s); /* runs the fixed loop, about 100 us in total */
void sample_take(struct system_sample *s, double ret[SAMPLE_SERIES]);
void sample_done(struct system_sample *s);

/* Returns for how many of `seconds` a quota kept compute threads from their work. throttled_s: seconds of throttling,
 * summed over cores. Threads wait for each other: when one is throttled, others stop too, and the kernel does not count
 * that. The time off their cores is used instead, up to throttled_s. */
double sample_throttled(const struct threads_use *use, double throttled_s, double cores, double seconds);

#endif
