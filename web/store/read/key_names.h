/* key_names.h: looks up the names of keys by id. Private to web/store. */
#ifndef DPT_STORE_KEY_NAMES_H
#define DPT_STORE_KEY_NAMES_H

#include <stddef.h>

#include "web/store/db/db.h"

/* Returns 0 to continue; anything else ends key_names_read and is its result. name is borrowed. */
typedef int key_names_fn(void *arg, size_t at, const char *name);

struct key_names {
	const int64_t *ids;
	size_t n;
	key_names_fn *fn;
	void *arg;
};

/* Calls k->fn for each id that has a name, in any order. */
int key_names_read(struct db *d, const struct key_names *k, struct err *err);

#endif
