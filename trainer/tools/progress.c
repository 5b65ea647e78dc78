/* progress.c: estimates the remaining time from the rate so far. */
#include "trainer/tools/progress.h"

#include "tracker/base/clock.h"
#include "tracker/base/log.h"

void progress_begin(struct progress *p)
{
	p->begun_s = p->said_s = clock_mono_s();
}

bool progress_due(struct progress *p)
{
	const double now = clock_mono_s();

	if (now - p->said_s < PROGRESS_S)
		return false;
	p->said_s = now;
	return true;
}

void progress_say(struct progress *p, int64_t done, int64_t whole, const char *what)
{
	long left;

	if (!done || !progress_due(p))
		return;
	left = (long)((p->said_s - p->begun_s) / (double)done * (double)(whole - done) + 0.5);
	log_info("%lld of %lld %s, ETA %ld:%02ld:%02ld", (long long)done, (long long)whole, what, left / 3600,
		 left / 60 % 60, left % 60);
}
