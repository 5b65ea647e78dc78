/* archiver.h: the points of runs that ended some time ago move into the object store, and come back to rows when the
 * run goes on. In order: the object is written and read back, then one transaction names it and deletes the rows; what
 * is left between the two is a remnant for gc. A thread of its own, which neither readers nor writers wait for but who
 * adds to an archived run. */
#ifndef DPT_STORE_ARCHIVER_H
#define DPT_STORE_ARCHIVER_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "web/store/points/archive.h"

struct archiver;
struct store;

/* Since it was started. */
struct archiver_stats {
	uint64_t runs, series, points, bytes; /* that went into objects */
	uint64_t returns;		      /* runs whose points became rows again */
	uint64_t failures;		      /* of the object store or the database, on either way */
	int64_t last_ms;		      /* when a run went; 0: none has */
};

/* after_ms: since the run's end; 0: nothing moves there, but comes back. *ret NULL: files lie in a folder. */
int archiver_start(struct archiver **ret, struct store *s, int64_t after_ms, struct err *err);
void archiver_stop(struct archiver *a); /* while the writer still runs; NULL is fine */
void archiver_stats(struct archiver *a, struct archiver_stats *ret); /* NULL: all zeros */

/* For archives_new, of a store: its objects. */
struct archives_source archiver_source(struct store *s);

#endif
