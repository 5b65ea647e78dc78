/* list.h: arrays sorted by id: room for one more item in an arena, and binary search. Private to web/store. */
#ifndef DPT_STORE_LIST_H
#define DPT_STORE_LIST_H

#include <stdint.h>
#include <string.h>

#include "tracker/base/arena.h"

/* Returns items, or a copy twice as large if count items fill it; NULL when out of memory. */
static inline void *list_room(struct arena *a, void *items, size_t count, size_t bytes_each)
{
	void *grown;

	if (count & (count - 1) || (count && count < 4))
		return items;
	grown = arena_array(a, count ? count * 2 : 4, bytes_each);
	if (grown && count)
		memcpy(grown, items, count * bytes_each);
	return grown;
}

/* The position of the first of count items whose id (first member) is at least id; count: none. */
static inline size_t list_find(const void *items, size_t count, size_t bytes_each, int64_t id)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int64_t there;

		memcpy(&there, (const char *)items + mid * bytes_each, sizeof there);
		if (there < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
