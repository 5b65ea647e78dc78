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

#endif
