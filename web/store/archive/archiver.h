/* SPDX-License-Identifier: Apache-2.0 */
/* archiver.h: moves points of ended runs to the object store, and restores them when the run is written again. The
 * object is written and verified first; then one transaction names it and deletes the rows. After a crash in
 * between, gc removes the object. A thread of its own; only writers to an archived run wait for it. */
#ifndef DPT_STORE_ARCHIVER_H
#define DPT_STORE_ARCHIVER_H

#include "web/store/files/artifacts.h"
#include "web/store/points/archive.h"

struct archiver;
struct store;

/* Since the start. */
struct archiver_stats {
	uint64_t runs, series, points, bytes; /* moved to objects */
	uint64_t returns;		      /* runs whose points were restored */
	uint64_t failures;		      /* failures of the object store or the database, in either direction */
	int64_t last_ms;		      /* time of the last move; 0: none */
};

/* after_ms: time since the end of a run; 0: moves nothing, only restores. *ret NULL: files are in a folder. */
int archiver_start(struct archiver **ret, struct store *s, int64_t after_ms, struct err *err);
void archiver_stop(struct archiver *a);				     /* before the writer stops; NULL is fine */
void archiver_stats(struct archiver *a, struct archiver_stats *ret); /* NULL: all zeros */

/* The objects of a store, for archives_new. */
struct archives_source archiver_source(struct store *s);

/* --- shared by the files of this room ---------------------------------------------------------------------------- */

struct archive_totals {
	int64_t chunks, points, logged, series;
};

/* The points of a run as an object. */
struct archive {
	char run[33];
	int64_t run_id;
	struct archive_totals totals; /* totals of the packed rows */
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
