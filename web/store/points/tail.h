/* tail.h: a growing array of points of one series in order of arrival, for points that are not folded. Caller's
 * storage, initially all zero. Private to web/store. */
#ifndef DPT_STORE_TAIL_H
#define DPT_STORE_TAIL_H

#include <stddef.h>

#include "web/store/points/series_summary.h"

struct point_tail {
	struct sum_point *points;
	size_t count, cap;
};

int tail_add(struct point_tail *t, const struct sum_point *points, size_t n); /* 0 or ERR_NOMEM */
void tail_done(struct point_tail *t);

#endif
