/* hide.h: what a restart hides. A segment's points at or beyond the place where a later segment began are hidden, by
 * step or, for keys that count epochs, by epoch: everywhere, in summaries as in charts. Knows nothing of what is kept
 * of segments besides. */
#ifndef DPT_STORE_HIDE_H
#define DPT_STORE_HIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "web/store/db/db.h"

#define HIDE_NONE INT64_MAX

/* Of one segment: the first step and epoch that are hidden, or HIDE_NONE. */
struct hide {
	int64_t step, epoch;
};

/* A later segment began at (step, epoch). */
static inline void hide_beyond(struct hide *h, int64_t step, int64_t epoch)
{
	h->step = step < h->step ? step : h->step;
	h->epoch = epoch < h->epoch ? epoch : h->epoch;
}

/* Whether keys of that name count epochs instead of steps. */
bool hide_counts_epochs(const char *key);

/* Where the points of a key begin to be hidden in a segment; h NULL: it is not known, and nothing is. */
int64_t hide_from(const struct hide *h, const char *key);

static inline bool hide_has(int64_t from, int64_t step)
{
	return step >= from && from != HIDE_NONE;
}

/* The last step that shows. */
static inline int64_t hide_last(int64_t from)
{
	return from == HIDE_NONE ? INT64_MAX : from - 1;
}

/* All segments of a run, however many restarts it had. */
struct hide_list {
	struct hide_segment *segments; /* by number */
	size_t count;
};

int hide_load(struct hide_list *ret, struct db *d, int64_t run_id, struct arena *a, struct err *err);
const struct hide *hide_get(const struct hide_list *l, int segment); /* NULL: it is not known */

#endif
