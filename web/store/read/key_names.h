/* key_names.h: the names of keys by their ids. Private to web/store. */
#ifndef DPT_STORE_KEY_NAMES_H
#define DPT_STORE_KEY_NAMES_H

#include <stddef.h>

#include "web/store/db/db.h"

/* Whether to go on: 0, or what key_names_read returns. name is borrowed. */
typedef int key_names_fn(void *arg, size_t at, const char *name);

/* Calls fn for each of n ids that has a name, in any order. */
int key_names_read(struct db *d, const int64_t *ids, size_t n, key_names_fn *fn, void *arg, struct err *err);

#endif
