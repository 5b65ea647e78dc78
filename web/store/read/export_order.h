/* SPDX-License-Identifier: Apache-2.0 */
/* export_order.h: all points of one part of a run (one rank, one segment) across its keys, bit for bit and including
 * hidden ones, in order of arrival. For an imported file that is the order of its records. For other writers the
 * order across keys is unknown, and wall times decide. */
#ifndef DPT_STORE_EXPORT_ORDER_H
#define DPT_STORE_EXPORT_ORDER_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

struct export_order_part {
	int rank, segment;
};

struct export_order_parts {
	struct export_order_part *items; /* by rank and segment */
	size_t count;
};

/* The parts that have points, in the arena. ERR_NOENT, ERR_GONE: no such run. */
int export_order_parts(struct store *s, const char *run, struct arena *a, struct export_order_parts *ret,
		       struct err *err);

struct export_order_row {
	const char *key; /* valid until export_order_close */
	int64_t step;
	double wall_time, value;
};

/* A cursor over the points stored at export_order_open. Holds no read transaction between calls. One thread at a time.
 */
struct export_order;

/* ERR_BUSY: more points of the part wait to be folded than fit into memory: retry later. */
int export_order_open(struct export_order **ret, struct store *s, const char *run, struct export_order_part part,
		      struct err *err);

/* Fills at most max rows; *ret_count 0: the end. */
int export_order_next(struct export_order *a, struct export_order_row *rows, size_t max, size_t *ret_count,
		      struct err *err);

void export_order_close(struct export_order *a); /* NULL is fine */

#endif
