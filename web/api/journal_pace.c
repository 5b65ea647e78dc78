/* journal_pace.c: senders that keep an interval come rate * interval in number, whatever the interval is. */
#include "web/api/journal_pace.h"

#define WINDOW_MS 5000 /* or twice the interval, so that each sender is counted */
#define WAITS 4        /* a sender may wait for a quarter of the time between two requests */

static uint64_t interval_of(struct journal_pace *p)
{
	uint64_t ms = atomic_load(&p->interval_ms);

	return ms ? ms : STEP_TIME_LEAST_MS;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Down by half at most: a pause of all senders is not their end. */
static uint64_t next_interval(uint64_t before, uint64_t window_ms, uint64_t posts, uint64_t waited_ms)
{
	uint64_t senders = posts * before / window_ms, want = senders * 1000 / STEP_TIME_POSTS_PER_S;

	want = larger(want, posts ? WAITS * (waited_ms / posts) : 0);
	want = larger(larger(want, before / 2), STEP_TIME_LEAST_MS);
	return want < STEP_TIME_MOST_MS ? want : STEP_TIME_MOST_MS;
}

void journal_pace_note(struct journal_pace *p, uint64_t now_ms, uint64_t waited_ms)
{
	unsigned long long since = atomic_load(&p->since_ms);
	uint64_t before = interval_of(p), posts, waited;

	atomic_fetch_add(&p->posts, 1);
	atomic_fetch_add(&p->waited_ms, waited_ms);
	if (now_ms < since + larger(WINDOW_MS, 2 * before) ||
	    !atomic_compare_exchange_strong(&p->since_ms, &since, now_ms))
		return;
	posts = atomic_exchange(&p->posts, 0);
	waited = atomic_exchange(&p->waited_ms, 0);
	if (since) /* 0: nobody knows over what time these came */
		atomic_store(&p->interval_ms, next_interval(before, now_ms - since, posts, waited));
}

double journal_pace_interval_s(struct journal_pace *p)
{
	return (double)interval_of(p) / 1000;
}
