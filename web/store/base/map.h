/* SPDX-License-Identifier: Apache-2.0 */
/* map.h: a hash table from short byte keys (copied) to values of one fixed size (stored inside), and lists in
 * arenas. One thread. */
#ifndef DPT_STORE_MAP_H
#define DPT_STORE_MAP_H

#include <stdint.h>
#include <string.h>

#include "tracker/base/arena.h"

struct map;

struct map *map_new(size_t value_bytes);
void map_free(struct map *m); /* NULL is fine */
void map_clear(struct map *m);
size_t map_count(const struct map *m);

/* The value, or NULL. Addresses are valid until map_clear or map_free. */
void *map_get(const struct map *m, const void *key, size_t len);

/* The value of key, zeroed if new. */
void *map_put(struct map *m, const void *key, size_t len);

/* A copy of the text, valid as long as values are; equal texts share one copy. */
const char *map_text(struct map *m, const char *text);

/* Values in order of insertion: 0 .. count-1. */
void *map_at(const struct map *m, size_t i);
const void *map_key_at(const struct map *m, size_t i, size_t *ret_len);

size_t map_longest_probe(const struct map *m); /* places that the slowest look-up visits, at most */

/* --- lists ---------------------------------------------------------------------------------------------------- */

/* Returns items, or a copy twice as large if count items fill it. */
static inline void *list_room(struct arena *a, void *items, size_t count, size_t bytes_each)
{
	void *grown;

	if (count & (count - 1) || (count && count < 4))
		return items;
	grown = arena_array(a, count ? count * 2 : 4, bytes_each);
	if (count)
		memcpy(grown, items, count * bytes_each);
	return grown;
}

/* Appends an item to a list in the arena; items and n are the addresses of the list and its length. */
#define list_push(a, items, n, ...)                                                                                    \
	do {                                                                                                           \
		*(items) = list_room(a, *(items), *(n), sizeof(**(items)));                                            \
		(*(items))[(*(n))++] = (__VA_ARGS__);                                                                  \
	} while (0)

/* Returns the position of the first of count items whose id (first member) is at least id; count: none. */
static inline size_t list_find(const void *items, size_t count, size_t bytes_each, int64_t id)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int64_t there;

		memcpy(&there, (const char *)items + mid * bytes_each, sizeof(there));
		if (there < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
