/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c: CLOCK_MONOTONIC and CLOCK_REALTIME in the units that callers use. */
#include "tracker/base/clock.h"

#include <errno.h>
#include <time.h>

static int64_t read_clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_mono_ns(void)
{
	return read_clock_ns(CLOCK_MONOTONIC);
}

double clock_mono_s(void)
{
	return (double)read_clock_ns(CLOCK_MONOTONIC) * 1e-9;
}

double clock_thread_s(void)
{
	return (double)read_clock_ns(CLOCK_THREAD_CPUTIME_ID) * 1e-9;
}

double clock_wall_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int64_t clock_wall_ms(void)
{
	return read_clock_ns(CLOCK_REALTIME) / 1000000;
}

void clock_sleep_s(double seconds)
{
	struct timespec t;

	if (seconds <= 0)
		return;
	t.tv_sec = (time_t)seconds;
	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}
