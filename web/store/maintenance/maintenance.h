/* SPDX-License-Identifier: Apache-2.0 */
/* maintenance.h: maintenance of an open store: garbage collection and backups. Work is split into small steps in the
 * writer's queue, so writers never wait long. Calls block, so servers run them as background jobs (store_work). */
#ifndef DPT_STORE_MAINTENANCE_H
#define DPT_STORE_MAINTENANCE_H

#include "tracker/base/arena.h"
#include "web/store/write/ingest.h"

struct store;

struct store_gc_opts {
	int64_t older_than_ms;	 /* only what was deleted at least this long ago */
	bool journals;		 /* also journals of those runs below logdir, written by libdptrack */
	bool dry_run;		 /* only counts */
	int64_t keep_objects_ms; /* also objects that no row has named for this long; see files/objects.h */
	struct ingest_author author;
};

struct store_gc_result {
	uint64_t runs, points;
	uint64_t models, experiments;
	uint64_t artifacts, artifact_bytes;
	uint64_t objects;
	uint64_t journals, journal_bytes;
	uint64_t freed_bytes; /* bytes freed in the store's file */
};

/* Removes for good, in order: runs removed incompletely by an earlier call; deleted runs with their rows and
 * artifacts, and their journals if requested; logged models that were deleted, or whose experiment was; empty
 * deleted experiments; unused objects, which are kept long enough for a restored backup. */
int store_gc(struct store *s, const struct store_gc_opts *o, struct store_gc_result *ret, struct err *err);

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
