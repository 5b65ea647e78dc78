/* tail.c: doubles its room. Most series get few points at a time, so it starts small. */
#include "web/store/points/tail.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/err.h"

int tail_add(struct point_tail *t, const struct sum_point *points, size_t n)
{
	size_t cap = t->cap ? t->cap : 2;
	struct sum_point *grown;

	while (cap < t->count + n)
		cap *= 2;
	if (cap != t->cap) {
		grown = realloc(t->points, cap * sizeof *grown);
		if (!grown)
			return ERR_NOMEM;
		t->points = grown;
		t->cap = cap;
	}
	memcpy(t->points + t->count, points, n * sizeof *points);
	t->count += n;
	return 0;
}

void tail_done(struct point_tail *t)
{
	free(t->points);
	*t = (struct point_tail){ 0 };
}
