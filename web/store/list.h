/* list.h: room for one more item in an array of an arena. Private to web/store. */
#ifndef DPT_STORE_LIST_H
#define DPT_STORE_LIST_H

#include <string.h>

#include "tracker/base/arena.h"

/* items, or a copy of it twice as large when count items fill it; NULL when out of memory. */
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

#endif
