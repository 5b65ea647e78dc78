/* sum_row.h: a summary as the 13 columns `count` to `nonfinite_step` of the tables series and metric. */
#ifndef DPT_STORE_SUM_ROW_H
#define DPT_STORE_SUM_ROW_H

#include "web/store/db/db.h"
#include "web/store/points/series_summary.h"

/* count: the column of that name; schema/gen/sql.awk ensures the order of the other 12. */
void sum_row_read(struct db_rows *q, enum db_column count, struct sum *ret);

/* For binding. */
#define SUM_ROW_FMT "iiddddiiiiddi"
#define SUM_ROW_ARGS(s)                                                                                           \
	(int64_t)(s)->count, (int64_t)(s)->nonfinite, (s)->first.value, (s)->last.value, (s)->min, (s)->max,        \
		(s)->first.step, (s)->last.step, (s)->min_step, (s)->max_step, (s)->first.time, (s)->last.time,    \
		(s)->nonfinite_step

#endif
