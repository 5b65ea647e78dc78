/* archive_inside.h: shared by the files of this room. */
#ifndef DPT_STORE_ARCHIVE_INSIDE_H
#define DPT_STORE_ARCHIVE_INSIDE_H

#include "web/store/files/orphan_blobs.h"
#include "web/store/points/archive.h"
#include "web/store/write/ingest.h"

struct archive_totals {
	int64_t chunks, points, logged, series;
};

/* The points of a run as an object. */
struct archive {
	char run[33];
	int64_t run_id;
	struct archive_totals totals; /* of the rows packed */
	struct orphan_blobs_object object;
	/* for restoring */
	struct archive_list list;
	const unsigned char *bytes; /* the whole object */
};

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/archive/changes.def"
#undef CHANGE

int archive_read_totals(struct db *d, int64_t run_id, struct archive_totals *ret, struct err *err);

/* Writes the chunks of the run to a new object; fills all but list and bytes. goes_on (NULL: always) is called
 * between pieces; false cancels. ERR_LIMIT: too much for an archive; ERR_EXISTS: the run is being written. */
int archive_pack(struct archive *a, struct store *s, bool (*goes_on)(void *arg), void *arg, struct err *err);

#endif
