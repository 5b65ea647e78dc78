/* artifacts.h: files that clients keep with their runs, below one folder: <experiment>/<run>/artifacts/…, and
 * <experiment>/models/<model>/artifacts/…. Paths come from clients: every segment is checked and nothing outside the
 * folder can be reached, whatever lies in it. Any thread. Knows nothing of HTTP. */
#ifndef DPT_STORE_ARTIFACTS_H
#define DPT_STORE_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "web/store/write/ingest.h"

struct store;
struct artifacts;
struct artifact_upload;

/* root is made when first needed, the folder above it must exist then. max_bytes of one file; 0: 1 TiB. */
int artifacts_new(struct artifacts **ret, const char *root, uint64_t max_bytes, struct err *err);
void artifacts_free(struct artifacts *a); /* NULL is fine */
struct artifacts *store_artifacts(struct store *s); /* borrowed */

/* Names divided by single slashes; none is empty, "." or "..", holds a backslash or a control character, or would be
 * any of that after more decoding of percent signs. "" is not a path. */
bool artifact_path_ok(const char *path);

struct artifact_file {
	int fd;           /* the caller closes it */
	uint64_t bytes;
	int64_t time_ns;  /* of the last change */
	char sha256[65];  /* "" when it is not known */
};

/* ERR_NOENT; ERR_USAGE: it is a folder or no regular file. */
int artifact_open(struct store *s, const char *path, struct artifact_file *ret, struct err *err);

struct artifact_entry {
	const char *name;
	bool folder;
	uint64_t bytes;
};

/* One level, by name; what is missing or no folder has none. */
int artifact_list(struct artifacts *a, const char *path, struct arena *arena, struct artifact_entry **ret,
		  size_t *ret_count, struct err *err);

/* With everything below it; fine when it is missing. Not the digests: artifact_change_delete. */
int artifact_remove(struct artifacts *a, const char *path, struct err *err);

/* ERR_LIMIT: larger than a file may be. */
int artifact_fits(const struct artifacts *a, uint64_t bytes, struct err *err);

/* Bytes go to a temporary file; commit makes them the file, durably. ERR_NOSPC, ERR_LIMIT (larger than max_bytes),
 * ERR_EXISTS: a folder is there, or a file where the path wants a folder. */
int artifact_begin(struct artifact_upload **ret, struct artifacts *a, const char *path, struct err *err);
int artifact_write(struct artifact_upload *u, const void *bytes, size_t n, struct err *err);
int artifact_commit(struct artifact_upload *u, struct artifact_file *ret, struct err *err); /* ret->fd is -1 */
void artifact_end(struct artifact_upload *u); /* drops what was not committed; NULL is fine */

/* What the store keeps of a file: the digest holds for as long as size and time do. */
struct artifact_digest {
	const char *path, *sha256;
	int64_t bytes, time_ns;
};

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/files/changes.def"
#undef CHANGE

#endif
