/* SPDX-License-Identifier: Apache-2.0 */
/* move.h: moves a whole store, rows and files, between a file and a database in both directions, and between a
 * folder of files and an object store. The source is only read, after an upgrade to this version. The target becomes
 * a store only when it is complete and proved equal. */
#ifndef DPT_STORE_MOVE_H
#define DPT_STORE_MOVE_H

#include "tracker/base/err.h"

struct move_place {
	const char *store; /* a folder of runs, a file *.db, or postgresql://… */
	const char *files; /* a folder, or s3://BUCKET/PREFIX; NULL: the default place */
};

struct move_result {
	uint64_t rows, files, bytes; /* bytes: of files */
	uint64_t kept;		     /* files that an earlier try had copied */
	char sha256[65];	     /* checksum of the canonical text of both */
	double seconds;
};

/* A source or target file must not be in use. The target must be empty or missing, or left by an earlier call with
 * the same source, which is then continued. ERR_EXISTS: it has a store. ERR_CORRUPT: the copy differs from the
 * source; it does not become a store. */
int move_store(const struct move_place *from, const struct move_place *to, struct move_result *ret, struct err *err);

/* Writes the canonical text (see walk.h) to sink in pieces (NULL: nowhere), reading every file; returns its SHA-256. */
int move_dump(const struct move_place *place, int (*sink)(void *arg, const char *text, size_t n, struct err *err),
	      void *arg, char ret_sha256[65], struct err *err);

#endif
