/* SPDX-License-Identifier: Apache-2.0 */
/* artifacts.h: files that clients store with their runs, below one folder: <experiment>/<run>/artifacts/…, and
 * <experiment>/models/<model>/artifacts/…. Paths come from clients: every segment is checked, and nothing outside
 * the folder can be reached, whatever it has in it. Alternatively files are objects of an S3 store (objects.h) and
 * paths are rows. Any thread. Independent of HTTP. */
#ifndef DPT_STORE_ARTIFACTS_H
#define DPT_STORE_ARTIFACTS_H

#include <limits.h>

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "web/store/write/ingest.h"

struct db;
struct store;
struct artifacts;
struct artifact_upload;
struct artifact_read;
struct objects;

struct artifacts_opts {
	const char *root;   /* a folder, or s3://BUCKET/PREFIX */
	bool by_default;    /* root is a default: if rows name an object store, that is used */
	uint64_t max_bytes; /* limit for one file; 0: 1 TiB */
};

/* Needs an open store. The folder is created when first needed; its parent must exist then. ERR_USAGE: the files of
 * the store are in another object store. */
int artifacts_new(struct artifacts **ret, struct store *s, const struct artifacts_opts *opts, struct err *err);
void artifacts_free(struct artifacts *a);	    /* running transfers fail soon; NULL is fine */
struct artifacts *store_artifacts(struct store *s); /* borrowed */

/* For servers; call it before starting threads that must not connect. ERR_USAGE: the object store denies access. If
 * it cannot be reached, a warning is printed and files are ERR_BUSY until it can. */
int artifacts_connect(struct artifacts *a, struct err *err);

/* A store remembers a folder for its files that is not the default. A record counts only for the store at the same
 * place: a copy of the store has its own folder. Makes the text of a record. */
int artifacts_record(char *ret, size_t room, const char *store_path, const char *folder, struct err *err);

/* Reads the folder of a store's record: 1, or 0: without a record, or if the folder does not exist. */
int artifacts_recorded(struct db *d, const char *store_path, char ret[PATH_MAX], struct err *err);

const char *artifacts_folder(const struct artifacts *a);      /* NULL: files are objects */
struct objects *artifacts_objects(const struct artifacts *a); /* NULL: files are in a folder. For this room */

/* Valid paths are names separated by single slashes. No name is empty, "." or "..", or has a backslash or control
 * character, even after repeated decoding of percent signs. "" is not a path. */
bool artifact_path_ok(const char *path);

struct artifact_file {
	int fd;		 /* the caller closes it; -1: an object, use artifact_read_begin */
	char object[33]; /* its name; "": not an object */
	uint64_t bytes;
	int64_t time_ns; /* time of the last change */
	char sha256[65]; /* "": unknown */
};

/* ERR_NOENT; ERR_USAGE: a folder or another special file; both in MLflow's words. */
int artifact_open(struct store *s, const char *path, struct artifact_file *ret, struct err *err);

struct artifact_entry {
	const char *name;
	bool folder;
	uint64_t bytes;
	const char *sha256; /* NULL: not requested; "": unknown */
};

struct artifact_entries {
	struct artifact_entry *items; /* by name */
	size_t count;
};

/* Fills the known digests of a folder's entries. */
int artifact_digests(struct store *s, const char *folder, struct artifact_entries *io, struct arena *a,
		     struct err *err);

/* Lists one level; empty if path is missing or not a folder. */
int artifact_list(struct store *s, const char *path, struct arena *arena, struct artifact_entries *ret,
		  struct err *err);

/* Before a transfer: ERR_DENIED unless the caller of a restricted store may write this path. */
int artifact_may_write(struct store *s, const char *path, struct err *err);
#define ARTIFACT_DENIED "this token may not write '%.200s'"

/* A file as it is stored: size and time tell whether an upload has replaced it since. */
struct artifact_item {
	const char *path;
	int64_t bytes, time_ns;
};

struct artifact_files {
	struct artifact_item *items;
	size_t count;
};

/* A copy in the arena; of NULL: none. */
struct artifact_files artifact_files_copy(struct arena *a, const struct artifact_files *from);

/* Adds the file at path, or all files below it, to the list. ERR_IO, also for another filesystem below it. */
int artifact_files(struct store *s, const char *path, struct arena *a, struct artifact_files *io, struct err *err);

/* Files on disk are deleted in two steps, so that none is without its entry in the audit log: a change records that
 * they leave, then this removes those at path or below it ("": all), and forgets them. What a killed process did not
 * reach is removed by the next call for all. A file that an upload has replaced stays. Does nothing for objects. */
int artifact_leave(struct store *s, const char *path, struct err *err);

/* Of an object: n bytes starting at `from`. */
struct artifact_read_opts {
	const struct artifact_file *file;
	uint64_t from, n;
};

enum artifact_next { ARTIFACT_END, ARTIFACT_MORE, ARTIFACT_WAIT };

/* Reading never blocks: other threads request the bytes. ERR_BUSY: the object store is not available, or there are
 * too many transfers. */
int artifact_read_begin(struct artifact_read **ret, struct artifacts *a, const struct artifact_read_opts *opts,
			struct err *err);
int artifact_read_next(struct artifact_read *r, struct buf *to, struct err *err); /* appends at most 64 KiB */
int artifact_read_result(struct artifact_read *r, struct err *err);		  /* 0, or the error */

/* After ARTIFACT_WAIT: calls wake once, on any thread, when artifact_read_next has more; maybe at once. */
void artifact_read_wait(struct artifact_read *r, void (*wake)(void *arg), void *arg);
void artifact_read_end(struct artifact_read *r); /* wake is not called afterwards; NULL is fine */

/* ERR_LIMIT: larger than the largest file allowed. */
int artifact_fits(const struct artifacts *a, uint64_t bytes, struct err *err);

/* Called once, on any thread, when there is room again after ARTIFACT_WAIT. */
struct artifact_room {
	void (*wake)(void *arg);
	void *arg;
};

/* Bytes go to a temporary file that commit renames durably, or to an object that artifact_change_put makes the file.
 * ERR_NOSPC; ERR_LIMIT: larger than max_bytes; ERR_EXISTS: path is a folder, or a part of it is a file; ERR_BUSY:
 * the object store is not available. */
int artifact_begin(struct artifact_upload **ret, struct artifacts *a, const char *path,
		   const struct artifact_room *room, struct err *err);
/* ARTIFACT_WAIT: call it again after room->wake, with the same bytes, optionally followed by more. */
int artifact_write(struct artifact_upload *u, const void *bytes, size_t n, struct err *err);
int artifact_commit(struct artifact_upload *u, struct artifact_file *ret, struct err *err); /* waits; ret->fd is -1 */
void artifact_end(struct artifact_upload *u); /* discards what is not committed; NULL is fine */

/* What the store keeps of a file; the digest is valid while size and time are unchanged. */
struct artifact_digest {
	const char *path, *sha256;
	const char *object; /* NULL: a file on disk */
	int64_t bytes, time_ns;
	const void *content; /* content of an image (artifact_picture_room); NULL: not available */
};

/* If the path is an image of MLflow's log_image: the most bytes of it to pass as content of its digest, so that it
 * becomes media of the run. 0: it is not. */
size_t artifact_picture_room(const char *path);

/* For gc: removes objects that no row names since before_ms. Does nothing for a folder. */
int artifact_sweep(struct store *s, int64_t before_ms, bool dry, uint64_t *ret_objects, struct err *err);

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/files/changes.def"
#undef CHANGE

/* The entries of one level of artifacts. Private to web/store/files. */
struct entries {
	struct arena *arena;
	struct artifact_entry *list;
	size_t n;
};

void entries_add(struct entries *e, struct artifact_entry entry);
void entries_sort(struct entries *e);				 /* by name */

/* --- folder_files.c ------------------------------------------------------------------------------------------- */

/* Lists files in the folder of a run below the followed folder, next to its journals: weights, checkpoints and other
 * output. Files are never opened, and nothing about them is stored. */
struct folder_files {
	const char *folder; /* folder of the run below the followed one; NULL: none of its journals is a file here */
	struct artifact_entry *list; /* by name */
	size_t count;
};

#define FOLDER_FILES_MAX 10000 /* most entries of one folder */

struct folder_files_place {
	const char *run, *path;
};

/* Lists one level: the run's folder, or path inside it ("": the run's folder; otherwise checked by
 * artifact_path_ok). Skips journals and hidden files. In a foreign run's folder it lists only files and folders
 * named like weights or checkpoints. A missing folder is empty. ERR_NOENT: no such run. */
int folder_files_list(struct store *s, const struct folder_files_place *p, struct arena *a, struct folder_files *ret,
		      struct err *err);

/* ---- orphan_blobs.c ----
 * Objects that are not files of a path (orphan blobs until named). Their creator names one in a row of its own, in a
 * change that takes it off the list of unnamed objects (DB_object_named). Before that gc may remove it. */

struct orphan_blobs;

struct orphan_blobs_object {
	char name[33];
	uint64_t bytes;
	char sha256[65];
};

/* Writing needs a thread that may connect and block. ERR_BUSY: the object store is not available. */
int orphan_blobs_begin(struct orphan_blobs **ret, struct artifacts *a, struct err *err);
int orphan_blobs_add(struct orphan_blobs *l, const void *bytes, size_t n, struct err *err);
int orphan_blobs_end(struct orphan_blobs *l, struct orphan_blobs_object *ret,
		     struct err *err);		/* reads it back and compares */
void orphan_blobs_free(struct orphan_blobs *l); /* NULL is fine */

/* Any thread: another thread sends the request. Waits at most some seconds; fails at once if the store just failed.
 * ERR_BUSY; ERR_DAMAGED: the object is missing. */
struct orphan_blobs_range {
	const char *object;
	uint64_t from;
	size_t n;
};
int orphan_blobs_read(struct artifacts *a, const struct orphan_blobs_range *r, void *to, struct err *err);

/* Its key in the object store; the name itself if none is configured. */
void orphan_blobs_key(struct artifacts *a, const char *object, char *ret, size_t room);

void orphan_blobs_stop(struct artifacts *a); /* current and later waits end soon */

#endif
