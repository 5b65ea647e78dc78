/* chunks.h: the folded chunks of a series, wherever they lie: rows of the table, or a part of the archive of an ended
 * run. One walk of a kind at a time on a connection, inside one snapshot. Private to web/store. */
#ifndef DPT_STORE_CHUNKS_H
#define DPT_STORE_CHUNKS_H

#include <stdbool.h>

#include "web/store/points/archive.h"

enum chunks_what {
	CHUNKS_HEADS, /* all but data */
	CHUNKS_DATA,  /* id and data */
};

struct chunks {
	int64_t id;
	int64_t points, min_step, max_step;
	double min_time, max_time; /* NaN: unknown */
	const void *data;	   /* good until the next step */
	size_t bytes;
	/* the walk's own */
	struct db *d;
	struct db_rows *rows; /* NULL: the archive's */
	struct db_rows *body; /* of the bytes asked for by chunks_load, where they are a row's */
	enum chunks_what what;
	int64_t series, first, last;
	bool any; /* there was a row */
	size_t at;
	struct archived archived;
	unsigned char *room;
};

/* Those of the series whose numbers lie from first to last. 0, or negative: then there is nothing to stop. */
int chunks_start(struct chunks *c, struct db *d, enum chunks_what what, int64_t series, int64_t first, int64_t last,
		 struct err *err);

/* With data, from the first on whose highest step is not below; n are folded, by ascending steps. */
int chunks_start_step(struct chunks *c, struct db *d, int64_t series, int64_t n, int64_t step, struct err *err);

int chunks_next(struct chunks *c, struct err *err); /* 1 there is one, 0 the end, or negative */
int chunks_load(struct chunks *c, struct err *err); /* the data of the one that a walk of heads stands at */

/* Always, also behind the end. rc, err: how it went; damage in an archive names the object (archived_outcome). */
void chunks_stop(struct chunks *c, int rc, struct err *err);

#define CHUNKS_LAST (((int64_t)1 << 20) - 1)

#endif
