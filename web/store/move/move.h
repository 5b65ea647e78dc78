/* move.h: a whole store, rows and files, from one place to another: a file and a database in both directions, a folder
 * of files and an object store too. The source is only read (but brought to this version first); the target is nobody's
 * store until all of it is there and has proved to be equal. */
#ifndef DPT_STORE_MOVE_H
#define DPT_STORE_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct move_place {
	const char *store; /* a folder of runs, a file *.db, or postgresql://… */
	const char *files; /* their folder, or s3://BUCKET/PREFIX; NULL: where they lie by default */
};

struct move_result {
	uint64_t rows, files, bytes; /* bytes: of files */
	uint64_t kept;               /* files that an earlier try had brought already */
	char sha256[65];             /* of the canonical text of both */
	double seconds;
};

/* Nobody may hold a source or target that is a file; a target must be empty or not there yet, or be what an earlier
 * call from the same source left, which is finished then. ERR_EXISTS: it holds a store. ERR_CORRUPT: what arrived is
 * not what was sent (nothing becomes a store then). */
int move_store(const struct move_place *from, const struct move_place *to, struct move_result *ret, struct err *err);

/* The canonical text (see dump.h), every file read anew, to sink in pieces (NULL: to nobody); its SHA-256. */
int move_dump(const struct move_place *place, int (*sink)(void *arg, const char *text, size_t n, struct err *err),
	      void *arg, char ret_sha256[65], struct err *err);

#endif
