/* heads.h: heads of full chunks (which never change) kept in memory, so that a chart of a long series reads few pages.
 * Bounded; any thread. Private to web/store. */
#ifndef DPT_STORE_HEADS_H
#define DPT_STORE_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heads;

struct heads *heads_new(void);      /* NULL when out of memory */
void heads_free(struct heads *h);   /* NULL is fine */

/* Ids of series may be given anew after a removal: rev is that of the newest removal in the caller's snapshot. Heads of
 * another rev are not given, and not kept. */
struct heads_key {
	int64_t rev, chunk;
};

/* Copies a chunk's head to ret (CHUNK_HEAD_MAX bytes) and its whole length to *ret_len. */
bool heads_get(struct heads *h, const struct heads_key *k, void *ret, size_t *ret_len);
void heads_put(struct heads *h, const struct heads_key *k, const void *head, size_t len);

#endif
