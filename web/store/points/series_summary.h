/* series_summary.h: a series in numbers: how many points, the first, last, smallest and largest one. Adding is independent of
 * order. */
#ifndef DPT_STORE_SERIES_SUMMARY_H
#define DPT_STORE_SERIES_SUMMARY_H

#include <stdint.h>

struct sum_point {
	int64_t step;
	double time; /* wall, seconds since 1970 */
	double value;
};

/* first and last by (step, time, value), NaN after every number; min and max leave NaN out and keep the infinities
 * (both NaN without any); the earliest step wins a tie. */
struct sum {
	uint64_t count;
	uint64_t nonfinite;
	struct sum_point first, last;
	double min, max;
	int64_t min_step, max_step;
	int64_t nonfinite_step; /* smallest one; valid when nonfinite > 0 */
};

void sum_init(struct sum *s);
void sum_add(struct sum *s, const struct sum_point *p);

/* By step, time, value; NaN after every number. */
int sum_order(const struct sum_point *a, const struct sum_point *b);

#endif
