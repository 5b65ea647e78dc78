/* SPDX-License-Identifier: Apache-2.0 */
/* journal_pace.c: estimates the number of senders. At an interval of i seconds, a rate of r posts per second means r *
 * i senders, whatever the interval is. */
#include "web/api/api.h"

#define WINDOW_MS 5000 /* or twice the interval, so that every sender is counted */
#define WAITS 4	       /* a sender may wait for a quarter of the time between two requests */

static uint64_t current_pace_ms(struct journal_pace *p)
{
	uint64_t ms = atomic_load(&p->interval_ms);

	return ms ? ms : JOURNAL_PACE_LEAST_MS;
}

static uint64_t pace_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The interval falls by half at most: a pause of all senders does not mean that they have ended. */
static uint64_t next_pace_ms(uint64_t before, uint64_t window_ms, uint64_t posts, uint64_t waited_ms)
{
	uint64_t senders = posts * before / window_ms, want = senders * 1000 / JOURNAL_PACE_POSTS_PER_S;

	want = pace_max(want, posts ? WAITS * (waited_ms / posts) : 0);
	want = pace_max(pace_max(want, before / 2), JOURNAL_PACE_LEAST_MS);
	return want < JOURNAL_PACE_MOST_MS ? want : JOURNAL_PACE_MOST_MS;
}

void journal_pace_note(struct journal_pace *p, uint64_t now_ms, uint64_t waited_ms)
{
	unsigned long long since = atomic_load(&p->since_ms);
	uint64_t before = current_pace_ms(p), posts, waited;

	atomic_fetch_add(&p->posts, 1);
	atomic_fetch_add(&p->waited_ms, waited_ms);
	if (now_ms < since + pace_max(WINDOW_MS, 2 * before) ||
	    !atomic_compare_exchange_strong(&p->since_ms, &since, now_ms))
		return;
	posts = atomic_exchange(&p->posts, 0);
	waited = atomic_exchange(&p->waited_ms, 0);
	if (since) /* 0: the duration of the first window is unknown */
		atomic_store(&p->interval_ms, next_pace_ms(before, now_ms - since, posts, waited));
}

double journal_pace_interval_s(struct journal_pace *p)
{
	return (double)current_pace_ms(p) / 1000;
}
