/* journal_pace.h: how often senders of journals are asked to send (interval_s of their replies): every half second, and
 * more seldom when there are many of them or what they bring waits long to be stored. Any thread. */
#ifndef DPT_API_JOURNAL_PACE_H
#define DPT_API_JOURNAL_PACE_H

#include <stdatomic.h>
#include <stdint.h>

/* All zeros at first. */
struct journal_pace {
	atomic_ullong since_ms, posts, waited_ms; /* of the present window: its begin, what came in it */
	atomic_ullong interval_ms;                /* 0: STEP_TIME_LEAST_MS */
};

#define STEP_TIME_LEAST_MS 500
#define STEP_TIME_MOST_MS 30000
#define STEP_TIME_POSTS_PER_S 250 /* that a process is to get, of all senders together */

/* A range was stored waited_ms after it had come. */
void journal_pace_note(struct journal_pace *p, uint64_t now_ms, uint64_t waited_ms);

double journal_pace_interval_s(struct journal_pace *p);

#endif
