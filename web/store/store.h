/* SPDX-License-Identifier: Apache-2.0 */
/* store.h: opens and closes the SQLite file with all runs, and reports who holds it. One process holds a store at a
 * time (flock on PATH.lock, mode 0600). One thread owns the only read-write connection and does every write and
 * checkpoint; reads use a pool of read-only connections. All functions of web/store may be called from any thread.
 * Independent of HTTP or JSON. */
#ifndef DPT_STORE_STORE_H
#define DPT_STORE_STORE_H

#include <limits.h>

#include "web/store/base/grants.h"

struct store;

#define STORE_CACHE_MIB 256

struct store_opts {
	/* required: a file (created with its lock; the folder must exist), or postgresql://…, the address of a
	 * database that several processes share */
	const char *db_path;
	const char *logdir; /* the folder of runs, for gc and backup; NULL: none */
	/* a folder, or s3://BUCKET/PREFIX; NULL: dptrack.artifacts next to the file, which gc and backup ignore */
	const char *artifacts;
	bool artifacts_by_default; /* artifacts is a default: an object store named in the store's rows takes
				    * precedence */
	int64_t archive_after_ms;  /* points of runs that ended this long ago move to the object store; 0: never */
	uint64_t artifact_max;	   /* bytes of one artifact; 0: 1 TiB */
	int max_readers;	   /* read-only connections kept; 0: 4 */
	int wal_limit_bytes;	   /* checkpoint when the log file is larger; 0: 8 MiB */
	/* approximate cache for rows of an address, plus half as much for points of its charts; 0: STORE_CACHE_MIB */
	int cache_mib;
	size_t queue_bytes;  /* limit for operations waiting for the disk; then callers block; 0: 32 MiB */
	bool read_when_full; /* when the disk is too full to open it, open read-only: changes are ERR_NOSPC */
	bool no_fold;	     /* for tests: no folding */
};

/* ERR_BUSY: another process holds it (the text has its address if published). ERR_DAMAGED: damaged, or not a store;
 * ERR_CORRUPT: made by a newer version. */
int store_open(struct store **ret, const struct store_opts *opts, struct err *err);

bool store_only_reads(const struct store *s); /* see read_when_full */

/* The store as a caller sees it who has grants (grants.h) and no level above `most`: other experiments, and what
 * belongs to them, do not exist in it. What has not been made for such callers is ERR_DENIED: other reads than those of
 * readers_take_permitted, other kinds of changes than those that judge. One user; all must end before the store does.
 * grants "=ID": reads the experiment with this id, whatever its name. */
struct store *store_restrict(struct store *s, const char *grants, enum grant_level most);
struct store *store_hold(struct store *s); /* one more user; returns s. A whole store does not count its users */
void store_release(struct store *s);

/* Finishes submitted operations, folds, checkpoints and releases the lock. NULL is fine. No other call may be
 * running; call follow_stop first. */
void store_close(struct store *s);

/* --- places --------------------------------------------------------------------------------------------------- */

struct store_paths {
	char db[PATH_MAX];	  /* LOGDIR/dptrack.db, or below $XDG_STATE_HOME/dptrack/<hash of LOGDIR>/ */
	char artifacts[PATH_MAX]; /* the folder dptrack.artifacts next to it */
	bool elsewhere;		  /* LOGDIR is read-only or on a network filesystem; print a line about it */
	bool poll;		  /* changes below LOGDIR cannot be watched: follow_start polls */
};

/* Creates LOGDIR, and the state folder if the store's file is there. db (NULL is fine) overrides the place of the
 * file; if it is an address, logdir may be NULL. */
int store_locate(struct store_paths *ret, const char *logdir, const char *db, struct err *err);

/* --- stores in a database ---------------------------------------------------------------------------------- */

bool store_is_address(const char *db);			  /* NULL is fine */
void store_shown(char *ret, size_t room, const char *db); /* without its password */

/* ERR_USAGE: the address is malformed. */
int store_address_check(const char *address, bool *ret_password, struct err *err);

/* *ret 0: there are no tables; store_address_init creates them (ERR_EXISTS: they exist). store_open requires the
 * version store_address_wants. */
int store_address_version(const char *address, int *ret, struct err *err);
int store_address_init(const char *address, struct err *err);
/* Upgrades the tables to this version. *ret_from: the previous version. ERR_NOENT: no tables; ERR_CORRUPT: of a
 * newer program. */
int store_address_upgrade(const char *address, int *ret_from, struct err *err);
int store_address_wants(void);

/* --- holder --------------------------------------------------------------------------------------------------- */

struct store_holder {
	int pid;
	char address[256]; /* "" until published */
	char token[128];
};

/* Writes address and owner-only token to the lock file of this process. */
int store_publish(struct store *s, const char *address, const char *token, struct err *err);

/* The process that holds the store at db_path. ERR_NOENT: none (store_open will succeed). */
int store_holder(struct store_holder *ret, const char *db_path, struct err *err);

/* Before store_close, if threads wait for changes: these are done or fail soon, even if the database is away; new
 * ones are refused. */
void store_hurry(struct store *s);

/* Takes only the lock of a store, for work on its file; store_close releases it. */
int store_lock(struct store **ret, const char *db_path, struct err *err);

/* --- change notices --------------------------------------------------------------------------------------- */

/* Calls fn on the writer's thread after each commit with changes; it must only signal. rev grows with every change.
 * Returns a handle >= 0 for store_unwatch, or ERR_LIMIT (64 watchers). */
int store_watch(struct store *s, void (*fn)(void *arg, uint64_t rev), void *arg);
void store_unwatch(struct store *s, int handle); /* when it returns, fn is not running and is not called again */

/* --- background jobs ------------------------------------------------------------------------------------------ */

/* Runs fn, then `then` (NULL: nothing) once another job may start, on a thread of the store. ERR_BUSY: a job is
 * running. ERR_CANCELED: closing. */
int store_work(struct store *s, void (*fn)(void *arg), void (*then)(void *arg), void *arg, struct err *err);

/* Ends the running job (ERR_CANCELED; its completed steps stay) and waits; no other job starts. */
void store_work_stop(struct store *s);

/* --- health ----------------------------------------------------------------------------------------------- */

struct store_stats {
	uint64_t commits, batches, points; /* since the store was opened */
	uint64_t log_rows, log_points;	   /* accepted, not folded yet */
	uint64_t db_bytes, wal_bytes;
	uint64_t sqlite_bytes, outline_bytes; /* memory of connections and their pages; of chart outlines */
	uint64_t records_bad;		      /* intact records that could not be applied, since opening */
	bool archives; /* points of ended runs may move to an object store; counters below are since opening */
	uint64_t archived_runs, archived_series, archived_points, archived_bytes; /* bytes: of the objects */
	uint64_t archive_returns, archive_failures; /* restored runs; failed moves in either direction */
	int64_t archived_last_ms;		    /* 0: none yet */
	int write_error; /* enum err_code of the last failed commit; 0 after a successful one */
	char write_error_text[256];
	int rw_handles; /* always 1 */
	const char *sqlite_version;
};

void store_stats(struct store *s, struct store_stats *ret);

/* Marks runs that fell silent, and folds what is logged now, so that alerts found by folding (spikes) are stored. For
 * commands that open a folder and read it once. Takes at most wait_s seconds; the rest is folded later. */
void store_fold(struct store *s, double wait_s);

/* The store's 32-digit id, drawn at its creation; borrowed from s. */
const char *store_id(const struct store *s);

/* The secret key of addresses that hold their own right; all processes of the store have the same. Borrowed from s. */
const char *store_address_key(const struct store *s);

#endif
