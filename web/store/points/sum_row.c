/* sum_row.c: reads a summary from columns. */
#include "web/store/points/sum_row.h"

void sum_row_read(struct db_rows *q, enum db_column count, struct sum *ret)
{
	ret->count = (uint64_t)db_i64(q, count);
	ret->nonfinite = (uint64_t)db_i64(q, count + 1);
	ret->first.value = db_f64(q, count + 2);
	ret->last.value = db_f64(q, count + 3);
	ret->min = db_f64(q, count + 4);
	ret->max = db_f64(q, count + 5);
	ret->first.step = db_i64(q, count + 6);
	ret->last.step = db_i64(q, count + 7);
	ret->min_step = db_i64(q, count + 8);
	ret->max_step = db_i64(q, count + 9);
	ret->first.time = db_f64(q, count + 10);
	ret->last.time = db_f64(q, count + 11);
	ret->nonfinite_step = db_i64(q, count + 12);
}
