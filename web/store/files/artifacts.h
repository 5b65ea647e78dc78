/* artifacts.h: files that clients keep with their runs, below one folder: <experiment>/<run>/artifacts/…, and
 * <experiment>/models/<model>/artifacts/…. Paths come from clients: every segment is checked and nothing outside the
 * folder can be reached, whatever lies in it. Or they are objects of an S3 store (objects.h), and the paths are rows.
 * Any thread. Knows nothing of HTTP. */
#ifndef DPT_STORE_ARTIFACTS_H
#define DPT_STORE_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "web/store/write/ingest.h"

struct store;
struct artifacts;
struct artifact_upload;
struct artifact_read;
struct objects;

struct artifacts_opts {
	const char *root;   /* a folder, or s3://BUCKET/PREFIX */
	bool by_default;    /* nobody named it: where rows say that objects lie elsewhere, they do */
	uint64_t max_bytes; /* of one file; 0: 1 TiB */
};

/* Of an open store. A folder is made when first needed, the one above it must exist then. ERR_USAGE: the store's files
 * lie in another object store. */
int artifacts_new(struct artifacts **ret, struct store *s, const struct artifacts_opts *opts, struct err *err);
void artifacts_free(struct artifacts *a); /* transfers under way fail soon; NULL is fine */
struct artifacts *store_artifacts(struct store *s); /* borrowed */

/* For servers, before the first thread that may connect to nothing. ERR_USAGE: the object store refuses us; when it
 * cannot be reached, a warning is printed and files are ERR_BUSY until it can. */
int artifacts_connect(struct artifacts *a, struct err *err);

const char *artifacts_folder(const struct artifacts *a);     /* NULL: files are objects */
struct objects *artifacts_objects(const struct artifacts *a); /* NULL: files lie in a folder. For this room */

/* Names divided by single slashes; none is empty, "." or "..", holds a backslash or a control character, or would be
 * any of that after more decoding of percent signs. "" is not a path. */
bool artifact_path_ok(const char *path);

struct artifact_file {
	int fd;           /* the caller closes it; -1: an object, see artifact_read_begin */
	char object[33];  /* its name; "": no object */
	uint64_t bytes;
	int64_t time_ns;  /* of the last change */
	char sha256[65];  /* "" when it is not known */
};

/* ERR_NOENT; ERR_USAGE: it is a folder or no regular file; both in MLflow's words. */
int artifact_open(struct store *s, const char *path, struct artifact_file *ret, struct err *err);

struct artifact_entry {
	const char *name;
	bool folder;
	uint64_t bytes;
	const char *sha256; /* NULL: not asked for; "" when it is not known */
};

/* Fills the digests of a folder's entries, as far as they are known. */
int artifact_digests(struct store *s, const char *folder, struct artifact_entry *list, size_t n, struct arena *a,
		     struct err *err);

/* One level, by name; what is missing or no folder has none. */
int artifact_list(struct artifacts *a, const char *path, struct arena *arena, struct artifact_entry **ret,
		  size_t *ret_count, struct err *err);

/* With everything below it; fine when it is missing. Not the digests: artifact_change_delete. */
int artifact_remove(struct artifacts *a, const char *path, struct err *err);

/* Of an object: bytes from `from` on. */
struct artifact_read_opts {
	const struct artifact_file *file;
	uint64_t from, n;
};

enum artifact_next { ARTIFACT_END, ARTIFACT_MORE, ARTIFACT_WAIT };

/* Nothing here waits: the store is asked elsewhere. ERR_BUSY: it gives nothing now, or too much is under way. */
int artifact_read_begin(struct artifact_read **ret, struct artifacts *a, const struct artifact_read_opts *opts,
			struct err *err);
int artifact_read_next(struct artifact_read *r, struct buf *to, struct err *err); /* adds 64 KiB at most */
int artifact_read_result(struct artifact_read *r, struct err *err);		  /* 0, or why it has failed */

/* Behind ARTIFACT_WAIT: wake is called once, on any thread, when artifact_read_next has something; maybe at once. */
void artifact_read_wait(struct artifact_read *r, void (*wake)(void *arg), void *arg);
void artifact_read_end(struct artifact_read *r); /* no wake comes any more; NULL is fine */

/* ERR_LIMIT: larger than a file may be. */
int artifact_fits(const struct artifacts *a, uint64_t bytes, struct err *err);

/* Who is told that there is room again after ARTIFACT_WAIT; any thread, once. */
struct artifact_room {
	void (*wake)(void *arg);
	void *arg;
};

/* Bytes go to a temporary file, which commit makes the file, durably; or to an object, which becomes the file by
 * artifact_change_put. ERR_NOSPC, ERR_LIMIT (larger than max_bytes), ERR_EXISTS: a folder is there, or a file where the
 * path wants a folder. ERR_BUSY: the object store takes nothing now. */
int artifact_begin(struct artifact_upload **ret, struct artifacts *a, const char *path,
		   const struct artifact_room *room, struct err *err);
/* ARTIFACT_WAIT: room->wake tells when to come again, with the same bytes; more may stand behind them. */
int artifact_write(struct artifact_upload *u, const void *bytes, size_t n, struct err *err);
int artifact_commit(struct artifact_upload *u, struct artifact_file *ret, struct err *err); /* waits; ret->fd is -1 */
void artifact_end(struct artifact_upload *u); /* drops what was not committed; NULL is fine */

/* What the store keeps of a file: the digest holds for as long as size and time do. */
struct artifact_digest {
	const char *path, *sha256;
	const char *object; /* NULL: a file */
	int64_t bytes, time_ns;
	const void *content; /* of a picture (artifact_picture_room); NULL: not at hand */
};

/* A file of this path is a picture of MLflow's log_image: up to so many bytes belong into its digest's content, and it
 * becomes the run's media, too. 0: it is none. */
size_t artifact_picture_room(const char *path);

/* For gc. Objects that no row names since before_ms; and what rows name below a path. Both nothing with a folder. */
int artifact_sweep(struct store *s, int64_t before_ms, bool dry, uint64_t *ret_objects, struct err *err);
int artifact_sum(struct store *s, const char *path, uint64_t *io_files, uint64_t *io_bytes, struct err *err);

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/files/changes.def"
#undef CHANGE

#endif
