/* keysets.h: which metric keys runs have, kept in memory: the runs of an experiment share a few sets of up to thousands
 * of keys, so lists are counted set by set instead of key by key. A run's set is good for its rev, and read again once
 * that has grown. Bounded. Threads may share one. Private to web/store. */
#ifndef DPT_STORE_KEYSETS_H
#define DPT_STORE_KEYSETS_H

#include "web/store/db/db.h"

struct keysets;

struct keyset {
	size_t count;
	unsigned users; /* the takers, and keysets itself while it remembers the set */
	int64_t ids[];  /* of keys, ascending */
};

struct keysets *keysets_new(void); /* NULL when out of memory */
void keysets_free(struct keysets *k); /* NULL is fine */

/* At the beginning of what is read in one snapshot: when its rows are others than those of which sets are remembered
 * (a standby took over, and may lack some), all are forgotten. */
int keysets_renew(struct keysets *k, struct db *d, struct err *err);

/* The keys that each of the runs has in the snapshot of d; runs with the same keys mostly share one set. */
struct keysets_want {
	const int64_t *runs;
	size_t count;
};

/* ret: a set a run. Each stays as it is until keysets_give; after a failure there is none. */
int keysets_take(struct keysets *k, struct db *d, const struct keysets_want *w, struct keyset **ret, struct err *err);
void keysets_give(struct keysets *k, struct keyset *s);

#endif
