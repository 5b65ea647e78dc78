/* hide.h: which points a restart hides. Points of a segment at or after the start of a later segment are hidden, in
 * summaries and in charts. The limit is a step or, for keys that count epochs, an epoch. Knows only this of
 * segments. */
#ifndef DPT_STORE_HIDE_H
#define DPT_STORE_HIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "web/store/db/db.h"

#define HIDE_NONE INT64_MAX

/* Of one segment: the first hidden step and epoch, or HIDE_NONE. */
struct hide {
	int64_t step, epoch;
};

/* Adds a later segment that began at (step, epoch). */
static inline void hide_beyond(struct hide *h, int64_t step, int64_t epoch)
{
	h->step = step < h->step ? step : h->step;
	h->epoch = epoch < h->epoch ? epoch : h->epoch;
}

/* Returns true if keys of that name count epochs instead of steps. */
bool hide_counts_epochs(const char *key);

/* The first hidden step (or epoch) of a key in a segment. h NULL: unknown, nothing is hidden. */
int64_t hide_from(const struct hide *h, const char *key);

static inline bool hide_has(int64_t from, int64_t step)
{
	return step >= from && from != HIDE_NONE;
}

/* The last visible step. */
static inline int64_t hide_last(int64_t from)
{
	return from == HIDE_NONE ? INT64_MAX : from - 1;
}

/* All segments of a run. */
struct hide_list {
	struct hide_segment *segments; /* by number */
	size_t count;
};

int hide_load(struct hide_list *ret, struct db *d, int64_t run_id, struct arena *a, struct err *err);
const struct hide *hide_get(const struct hide_list *l, int segment); /* NULL: unknown segment */

#endif
