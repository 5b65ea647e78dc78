/* archive_inside.h: what the files of this room share. */
#ifndef DPT_STORE_ARCHIVE_INSIDE_H
#define DPT_STORE_ARCHIVE_INSIDE_H

#include "web/store/files/orphan_blobs.h"
#include "web/store/points/archive.h"
#include "web/store/write/ingest.h"

struct archive_totals {
	int64_t chunks, points, logged, series;
};

/* A run's points as an object. */
struct archive {
	char run[33];
	int64_t run_id;
	struct archive_totals totals; /* of the rows that went into it */
	struct orphan_blobs_object object;
	/* To become rows again. */
	struct archive_list list;
	const unsigned char *bytes; /* the whole object */
};

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/archive/changes.def"
#undef CHANGE

int archive_read_totals(struct db *d, int64_t run_id, struct archive_totals *ret, struct err *err);

/* Writes the run's chunks into a new object: fills in all but list and bytes. goes_on (NULL: always) is asked between
 * pieces. ERR_LIMIT: too much for an archive; ERR_EXISTS: the run is being written to. */
int archive_pack(struct archive *a, struct store *s, bool (*goes_on)(void *arg), void *arg, struct err *err);

#endif
