/* SPDX-License-Identifier: Apache-2.0 */
/* keysets.h: the metric keys of runs, in memory. Runs of an experiment share few sets of up to thousands of keys, so
 * lists are counted set by set. The set of a run is valid for its rev and is read again when that grows. Memory is
 * bounded. Threads may share one. Private to web/store. */
#ifndef DPT_STORE_KEYSETS_H
#define DPT_STORE_KEYSETS_H

#include "web/store/db/db.h"

struct keysets;

struct keyset {
	size_t count;
	unsigned users; /* takers, plus one while keysets remembers the set */
	int64_t ids[];	/* of keys, ascending */
};

struct keysets *keysets_new(void);
void keysets_free(struct keysets *k); /* NULL is fine */

/* Call at the start of a snapshot. Drops all sets if the rows come from another database than before (a standby that
 * took over may lack some). */
int keysets_renew(struct keysets *k, struct db *d, struct err *err);

/* The runs whose key sets are requested; runs with equal keys usually share a set. */
struct keysets_want {
	const int64_t *runs;
	size_t count;
};

/* ret: one set per run, unchanged until keysets_give; on failure none is held. */
int keysets_take(struct keysets *k, struct db *d, const struct keysets_want *w, struct keyset **ret, struct err *err);
void keysets_give(struct keysets *k, struct keyset *s);

/* Looks up the names of keys by id. name is borrowed. Private to web/store. */
typedef void key_names_fn(void *arg, size_t at, const char *name);

struct key_names {
	const int64_t *ids;
	size_t n;
	key_names_fn *fn;
	void *arg;
};

/* Calls k->fn for each id that has a name, in any order. */
int key_names_read(struct db *d, const struct key_names *k, struct err *err);

#endif
