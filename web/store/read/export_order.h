/* export_order.h: all points of one part of a run (a rank's points of one segment) across its keys, hidden ones included,
 * every bit of them, in the order in which they came. Where a file was imported that is the order of its records; of
 * other writers the order across keys is not known, and wall times decide. */
#ifndef DPT_STORE_EXPORT_ORDER_H
#define DPT_STORE_EXPORT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

struct export_order_part {
	int rank, segment;
};

/* The parts that hold points, by rank and segment, in the arena. ERR_NOENT, ERR_GONE: no such run. */
int export_order_parts(struct store *s, const char *run, struct arena *a, struct export_order_part **ret, size_t *ret_count,
		  struct err *err);

struct export_order_row {
	const char *key; /* good until export_order_close */
	int64_t step;
	double wall_time, value;
};

/* The points that are stored now. Holds no read transaction between calls. One thread at a time. */
struct export_order;

/* ERR_BUSY: more of the part than fits into memory waits to be folded; try again. */
int export_order_open(struct export_order **ret, struct store *s, const char *run, struct export_order_part part, struct err *err);

/* Fills at most max rows; *ret_count 0 is the end. */
int export_order_next(struct export_order *a, struct export_order_row *rows, size_t max, size_t *ret_count, struct err *err);

void export_order_close(struct export_order *a); /* NULL is fine */

#endif
