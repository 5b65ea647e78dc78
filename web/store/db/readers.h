/* readers.h: the pool of read-only connections. A reader is taken with an open read transaction, so all its reads
 * see one snapshot. Give it back soon: meanwhile the log file cannot shrink. */
#ifndef DPT_STORE_READERS_H
#define DPT_STORE_READERS_H

#include "web/store/db/db.h"

struct readers;
struct store;

int readers_new(struct readers **ret, const char *path, int max, struct err *err);
/* One reader, for a file that no other process has open; needs no disk space. */
int readers_new_alone(struct readers **ret, const char *path, struct err *err);
void readers_free(struct readers *p); /* after all were given back; NULL is fine */

/* Waits while all are taken. */
int readers_take(struct store *s, struct db **ret, struct err *err);

/* The same, with the number of a run; on failure no reader is taken. ERR_NOENT, ERR_GONE: no such run. */
int readers_take_run(struct store *s, struct db **ret, const char *uuid, int64_t *ret_id, struct err *err);
void readers_give(struct store *s, struct db *d);

/* Reports why a run was not found: ERR_GONE or ERR_NOENT. */
int readers_missing(struct db *d, const char *uuid, struct err *err);

#endif
