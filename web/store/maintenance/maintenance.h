/* SPDX-License-Identifier: Apache-2.0 */
/* maintenance.h: maintenance of an open store: garbage collection and backups. Work is split into small steps in the
 * writer's queue, so writers never wait long. Calls block, so servers run them as background jobs (store_work). */
#ifndef DPT_STORE_MAINTENANCE_H
#define DPT_STORE_MAINTENANCE_H

#include "tracker/base/arena.h"
#include "web/store/write/ingest.h"

struct store;

/* GC_ALL: the trash, and what the rules of retention.h say. */
enum gc_what { GC_ALL, GC_RULES, GC_TRASH };

struct store_gc_opts {
	enum gc_what what;
	const char *experiment;	 /* only of this one, which the caller administers; NULL: all */
	const char *const *runs; /* only these deleted runs, of experiments that the caller administers; NULL: all */
	size_t run_count;
	int64_t older_than_ms;	 /* only what was deleted at least this long ago; not for GC_RULES */
	bool journals;		 /* also journals of those runs below logdir, written by libdptrack */
	bool dry_run;		 /* only counts */
	int64_t keep_objects_ms; /* also objects that no row has named for this long; see files/objects.h */
	struct ingest_author author;
	bool (*stop)(void *arg); /* NULL: the store is closing */
	void *arg;
};

struct store_gc_result {
	uint64_t runs, points;
	uint64_t models, experiments;
	uint64_t kept; /* runs and models in the trash that versions of registered models name: they stay */
	uint64_t artifacts, artifact_bytes;
	uint64_t objects;
	uint64_t journals, journal_bytes;
	uint64_t freed_bytes; /* bytes freed in the store's file */
	bool reused;	      /* freed space is used again by the database, not given to the disk: PostgreSQL */
};

/* Removes for good, in order: runs removed incompletely by an earlier call; deleted runs with their rows and
 * artifacts, and their journals if requested; logged models that were deleted, or whose experiment was; empty
 * deleted experiments; artifacts by the rules; unused objects, which are kept long enough for a restored backup.
 * Of a restricted store it needs experiment or runs. ERR_NOENT, ERR_GONE: no such experiment or run; ERR_DENIED: it is
 * not administered; ERR_EXISTS: a run is not deleted, or a version of a registered model names it. */
int store_gc(struct store *s, const struct store_gc_opts *o, struct store_gc_result *ret, struct err *err);

/* Applies the rules from time to time, on a thread of its own; of several processes one does. */
struct retention_keeper;
int retention_keeper_start(struct retention_keeper **ret, struct store *s, double every_s, struct err *err);
void retention_keeper_stop(struct retention_keeper *k); /* NULL is fine */

struct store_backup_result {
	uint64_t bytes, artifacts, artifact_bytes;
	double seconds;
};

/* Makes a backup that `dptrack serve` can serve: path is a new folder, or a new file *.db with its artifacts next to
 * it. It must be absolute, or a name next to the store that begins with dptrack.db. The backup has everything
 * acknowledged before the call, and is verified before it gets its name. */
int store_backup(struct store *s, const char *path, struct store_backup_result *ret, struct err *err);

struct store_paths;

/* Replaces a store that is not in use by a backup; the old files get the suffix ".before-restore-<ms>". */
int store_restore(const char *backup, const struct store_paths *to, struct err *err);

/* --- check.c -------------------------------------------------------------------------------------------------- */

/* Checks a store: the SQLite version, the place of the file, its structure, points against their summaries.
 * Reads only, in many short snapshots, so it can run during normal operation. Any thread. */

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_WARNING, CHECK_ERROR };

struct check_finding {
	enum check_level level;
	/* of the check: "sqlite", "place", "schema", "structure", "points", "rows", "log", "writes",
	 * "files" */
	const char *name;
	const char *text; /* the finding, and what to do if it is a problem */
};

struct check_report {
	struct check_finding *items;
	size_t count;
	enum check_level worst;
	int64_t time_ms; /* end of the check; 0: never */
};

const char *check_level_name(enum check_level level); /* "ok" "note" "warning" "error" */

/* full: every series and all indexes, instead of samples. Negative: the check failed; problems of the store are in
 * the report, whose texts live in the arena. */
int check_store(struct store *s, bool full, struct arena *a, struct check_report *ret, struct err *err);

/* For a store that cannot be opened: checks what is possible of the file at db_path. */
int check_file(const char *db_path, struct arena *a, struct check_report *ret, struct err *err);

/* Runs check_store(full false) once in the background; check_last copies its report to the arena; before the first
 * one it is empty. */
int check_background(struct store *s, struct err *err);
struct check_report check_last(struct store *s, struct arena *a);

#endif
