/* maintenance.h: long work on an open store: removing for good what was deleted, backups. It goes in small steps that stand
 * in line with everybody's changes, so that writers never wait long; the caller waits, so servers give it a thread
 * (store_work). */
#ifndef DPT_STORE_MAINTENANCE_H
#define DPT_STORE_MAINTENANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct store;

struct store_gc_opts {
	int64_t older_than_ms; /* only what was deleted so long ago */
	bool journals;         /* also the journals below logdir that libdptrack wrote for those runs */
	bool dry_run;          /* only count */
	int64_t keep_objects_ms; /* objects that no file's row has named for so long go, too; see files/objects.h */
};

struct store_gc_result {
	uint64_t runs, points;
	uint64_t models, experiments;
	uint64_t artifacts, artifact_bytes;
	uint64_t objects;
	uint64_t journals, journal_bytes;
	uint64_t freed_bytes;  /* of the store's file */
};

/* Removes deleted runs for good: their rows, their artifacts, with journals their journals. Then logged models that
 * were deleted, or whose experiment was, and deleted experiments in which nothing is left. Then remnants in the object
 * store, which is kept for longer than a restore of the database goes back. What an earlier call left
 * half done (the process was killed) is finished first. */
int store_gc(struct store *s, const struct store_gc_opts *o, struct store_gc_result *ret, struct err *err);

struct store_backup_result {
	uint64_t bytes, artifacts, artifact_bytes;
	double seconds;
};

/* A copy that `dptrack serve` can serve as it is: path is a folder to be made, or a new file *.db whose artifacts go
 * beside it; absolute (or a name beside the store that begins with dptrack.db.). It holds everything that was
 * acknowledged before the call, and it is checked before it gets its name. */
int store_backup(struct store *s, const char *path, struct store_backup_result *ret, struct err *err);

struct store_paths;

/* Puts a backup in the place of a store that nobody holds; what was there gets ".before-restore-<ms>" behind its
 * names. */
int store_restore(const char *backup, const struct store_paths *to, struct err *err);

#endif
