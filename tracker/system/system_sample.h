/* system_sample.h: the series of schema/event/system.def, of the time since the sample before.
 *
 *	sample_begin(&s, "", NULL);
 *	…at least once a second: sample_loop(&s)…
 *	sample_take(&s, values);        (NaN: the system does not say)
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

/* Caller's storage; nothing in it is for reading. */
struct sample {
	const char *root;
	struct counters first, last;
	struct threads threads;
	struct gpu *gpu; /* NULL: none, or nothing is known of it */
	double gpu_held_s;
	double loop_s; /* the shortest since the last sample; INFINITY: none */
	struct clock_hook slow; /* of tests: the loop is so many times as long */
};

const char *sample_key(enum sample_series s); /* "system/cpu_percent" */

/* root: as proc.h's, borrowed; gpu: its UUID, or NULL. */
void sample_begin(struct sample *s, const char *root, const char *gpu);
void sample_loop(struct sample *s); /* runs the fixed loop, about 100 us in all */
void sample_take(struct sample *s, double ret[SAMPLE_SERIES]);
void sample_done(struct sample *s);

/* Seconds, of so many, for which a quota kept compute threads from their work. throttled_s: seconds that were taken
 * away, summed over cores. Threads wait for each other: where one of two is stopped the other's work ends too, and
 * nobody counts that; so what they were off their cores counts, as far as throttled_s reaches. */
double sample_throttled(const struct threads_use *use, double throttled_s, double cores, double seconds);

#endif
