/* clock.h: the two clocks. Durations come from clock_mono_s, dates from clock_wall_s. */
#ifndef DPT_BASE_CLOCK_H
#define DPT_BASE_CLOCK_H

#include <stdint.h>

double clock_mono_s(void);   /* seconds since an arbitrary start; never steps back */
int64_t clock_mono_ns(void);
double clock_thread_s(void); /* seconds that this thread was on a core */
double clock_wall_s(void);   /* seconds since 1970 UTC */
int64_t clock_wall_ms(void);
void clock_sleep_s(double seconds);

/* DPTRACK_TEST_CLOCK=factor:seconds, of tests: so long after this call cores are slower by that factor. Who computes
 * makes it so: nodes of host backends, and the fixed loop by which the clock is told. */
struct clock_hook {
	double factor; /* 1: nothing */
	double from_s; /* clock_mono_s */
};

struct clock_hook clock_hook(void);

#endif
