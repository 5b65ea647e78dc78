/* archiver.h: moves points of ended runs to the object store, and restores them when the run is written again. The
 * object is written and verified first; then one transaction names it and deletes the rows. After a crash in
 * between, gc removes the object. A thread of its own; only writers to an archived run wait for it. */
#ifndef DPT_STORE_ARCHIVER_H
#define DPT_STORE_ARCHIVER_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "web/store/points/archive.h"

struct archiver;
struct store;

/* Since the start. */
struct archiver_stats {
	uint64_t runs, series, points, bytes; /* moved to objects */
	uint64_t returns;		      /* runs whose points were restored */
	uint64_t failures;		      /* of the object store or the database, in either direction */
	int64_t last_ms;		      /* of the last move; 0: none */
};

/* after_ms: time since the end of a run; 0: moves nothing, only restores. *ret NULL: files are in a folder. */
int archiver_start(struct archiver **ret, struct store *s, int64_t after_ms, struct err *err);
void archiver_stop(struct archiver *a); /* before the writer stops; NULL is fine */
void archiver_stats(struct archiver *a, struct archiver_stats *ret); /* NULL: all zeros */

/* The objects of a store, for archives_new. */
struct archives_source archiver_source(struct store *s);

#endif
