/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h: the names of a run's series, each stored once. Looking up a known key takes no lock. Keys are valid until
 * keys_free. */
#ifndef DPT_RUN_KEYS_H
#define DPT_RUN_KEYS_H

#include <stdint.h>

#include "tracker/event/event.h"

struct key {
	uint64_t hash;
	struct event_text text;
};

struct keys;

struct keys *keys_new(void);    /* NULL: out of memory */
void keys_free(struct keys *k); /* NULL is fine */

/* Returns the key of a text, adding it if new. Any thread. 0; ERR_USAGE (*ret_why has the reason), ERR_LIMIT or
 * ERR_NOMEM. */
int keys_get(struct keys *k, const char *text, const struct key **ret, const char **ret_why);

#endif
