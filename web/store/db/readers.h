/* readers.h: the pool of read-only connections. A reader is taken with a read transaction open, so that everything it
 * reads is one snapshot, and given back soon: while it is out the log file cannot shrink. */
#ifndef DPT_STORE_READERS_H
#define DPT_STORE_READERS_H

#include "web/store/db/db.h"

struct readers;
struct store;

int readers_new(struct readers **ret, const char *path, int max, struct err *err);
/* One reader, of a file that nobody else has open; needs no room on the disk. */
int readers_new_alone(struct readers **ret, const char *path, struct err *err);
void readers_free(struct readers *p); /* all must have been given back; NULL is fine */

/* Waits for a free one when all are out. */
int readers_take(struct store *s, struct db **ret, struct err *err);

/* The same, with the number of a run; none is out when it fails. ERR_NOENT, ERR_GONE: no such run. */
int readers_take_run(struct store *s, struct db **ret, const char *uuid, int64_t *ret_id, struct err *err);
void readers_give(struct store *s, struct db *d);

/* Why a run is not found: ERR_GONE or ERR_NOENT. */
int readers_missing(struct db *d, const char *uuid, struct err *err);

#endif
