/* series_summary.h: the summary of a series: number of points, the first, last, smallest and largest. The result does
 * not depend on the order of adding. */
#ifndef DPT_STORE_SERIES_SUMMARY_H
#define DPT_STORE_SERIES_SUMMARY_H

#include <stdint.h>

struct sum_point {
	int64_t step;
	double time; /* wall, seconds since 1970 */
	double value;
};

/* first and last are by (step, time, value), with NaN last. min and max ignore NaN and include infinities (NaN if
 * all values are); the earliest step wins a tie. */
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

/* Compares by step, time, value; NaN last. */
int sum_order(const struct sum_point *a, const struct sum_point *b);

#endif
