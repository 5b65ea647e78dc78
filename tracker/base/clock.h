/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the clocks. Use clock_mono_s for durations and clock_wall_s for dates. */
#ifndef DPT_BASE_CLOCK_H
#define DPT_BASE_CLOCK_H

#include <stdint.h>

double clock_mono_s(void); /* seconds since an arbitrary start; never steps back */
int64_t clock_mono_ns(void);
double clock_thread_s(void); /* CPU seconds of this thread */
double clock_wall_s(void);   /* seconds since 1970 UTC */
int64_t clock_wall_ms(void);
void clock_sleep_s(double seconds);

#endif
