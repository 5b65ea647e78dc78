/* SPDX-License-Identifier: Apache-2.0 */
/* journal_pace.h: the interval that senders of journals are asked to keep (interval_s in replies). It is half a second,
 * and longer when there are many senders or when storing takes long. Any thread. */
#ifndef DPT_API_JOURNAL_PACE_H
#define DPT_API_JOURNAL_PACE_H

#include <stdatomic.h>
#include <stdint.h>

/* Zero-initialize. */
struct journal_pace {
	atomic_ullong since_ms, posts, waited_ms; /* start of the current window, its posts, their total wait */
	atomic_ullong interval_ms;                /* 0: JOURNAL_PACE_LEAST_MS */
};

#define JOURNAL_PACE_LEAST_MS 500
#define JOURNAL_PACE_MOST_MS 30000
#define JOURNAL_PACE_POSTS_PER_S 250 /* wanted rate of a process, of all senders together */

/* Counts a range that was stored waited_ms after it arrived. */
void journal_pace_note(struct journal_pace *p, uint64_t now_ms, uint64_t waited_ms);

double journal_pace_interval_s(struct journal_pace *p);

#endif
