/* arrival.h: all points of one part of a run (a rank's points of one segment) across its keys, hidden ones included,
 * every bit of them, in the order in which they came. Where a file was imported that is the order of its records; of
 * other writers the order across keys is not known, and wall times decide. */
#ifndef DPT_STORE_ARRIVAL_H
#define DPT_STORE_ARRIVAL_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

struct arrival_part {
	int rank, segment;
};

/* The parts that hold points, by rank and segment, in the arena. ERR_NOENT, ERR_GONE: no such run. */
int arrival_parts(struct store *s, const char *run, struct arena *a, struct arrival_part **ret, size_t *ret_count,
		  struct err *err);

struct arrival_row {
	const char *key; /* good until arrival_close */
	int64_t step;
	double wall_time, value;
};

/* The points that are stored now. Holds no read transaction between calls. One thread at a time. */
struct arrival;

/* ERR_BUSY: more of the part than fits into memory waits to be folded; try again. */
int arrival_open(struct arrival **ret, struct store *s, const char *run, struct arrival_part part, struct err *err);

/* Fills at most max rows; *ret_count 0 is the end. */
int arrival_next(struct arrival *a, struct arrival_row *rows, size_t max, size_t *ret_count, struct err *err);

void arrival_close(struct arrival *a); /* NULL is fine */

#endif
