/* store.h: opens and closes the one SQLite file that holds every run, and says who holds it.
 * One process holds a store at a time (flock on the 0600 file PATH.lock). Inside it one thread owns the only
 * read-write connection and does every write and every checkpoint; reads use a pool of read-only connections.
 * All functions of web/store may be called from any thread. Knows nothing of HTTP or JSON. */
#ifndef DPT_STORE_STORE_H
#define DPT_STORE_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct store;

#define STORE_CACHE_MIB 256

struct store_opts {
	/* required; file and lock are made when absent, the folder must exist; or postgresql://…, the address of a
	 * database where several processes keep one store */
	const char *db_path;
	const char *logdir;    /* the folder of runs, for gc and backup; NULL: none */
	/* their folder, or s3://BUCKET/PREFIX; NULL: dptrack.artifacts beside the file, which gc and backup leave
	 * alone */
	const char *artifacts;
	bool artifacts_by_default; /* nobody named it: an object store that the store's rows name goes before it */
	int64_t archive_after_ms; /* points of runs that ended so long ago move to the object store; 0: none do */
	uint64_t artifact_max; /* bytes of one; 0: 1 TiB */
	int max_readers;       /* read-only connections kept; 0: 4 */
	int wal_limit_bytes;   /* checkpoint when the log file is longer; 0: 8 MiB */
	/* about what is remembered of the rows of an address, and half as much again of the points that its charts
	 * show; 0: STORE_CACHE_MIB */
	int cache_mib;
	size_t queue_bytes;    /* of operations that wait for the disk; beyond it callers wait too; 0: 32 MiB */
	bool read_when_full;   /* when the disk has no room to open it, only read: changes are ERR_NOSPC */
	bool no_fold;          /* tests only: leave the ingest log unfolded */
};

/* ERR_BUSY: another process holds it (the text names its address where it published one).
 * ERR_DAMAGED: not a store, or damaged; ERR_CORRUPT: made by a newer version. */
int store_open(struct store **ret, const struct store_opts *opts, struct err *err);

bool store_only_reads(const struct store *s); /* see read_when_full */

/* Finishes what was submitted, folds and checkpoints, then releases the lock. NULL is fine. No other call may be
 * running, and follow_stop has been called. */
void store_close(struct store *s);

/* --- where things lie ------------------------------------------------------------------------------------- */

struct store_paths {
	char db[PATH_MAX];        /* LOGDIR/dptrack.db, or below $XDG_STATE_HOME/dptrack/<hash of LOGDIR>/ */
	char artifacts[PATH_MAX]; /* the folder dptrack.artifacts beside it */
	bool elsewhere;           /* LOGDIR is read-only or on a network filesystem: say so in one line */
	bool poll;                /* changes below LOGDIR cannot be watched there: follow_start polls */
};

/* Makes LOGDIR when absent, and the state folder when it is needed. db (NULL is fine) overrides the file's place; where
 * it is an address, logdir may be NULL. */
int store_locate(struct store_paths *ret, const char *logdir, const char *db, struct err *err);

/* --- stores in a database ---------------------------------------------------------------------------------- */

bool store_is_address(const char *db); /* NULL is fine */
void store_shown(char *ret, size_t room, const char *db); /* without its password */

/* ERR_USAGE: it cannot be understood. */
int store_address_check(const char *address, bool *ret_password, struct err *err);

/* *ret 0: there are no tables yet, store_address_init makes them (ERR_EXISTS: there are). store_open wants a certain
 * version. */
int store_address_version(const char *address, int *ret, struct err *err);
int store_address_init(const char *address, struct err *err);
/* Brings the tables to this version. *ret_from: theirs before; ERR_NOENT, ERR_CORRUPT: none, of a newer program. */
int store_address_upgrade(const char *address, int *ret_from, struct err *err);
int store_address_wants(void);

/* --- who holds it ----------------------------------------------------------------------------------------- */

struct store_holder {
	int pid;
	char address[256]; /* "" until published */
	char token[128];
};

/* Writes address and owner-only token into the lock file that this process holds. */
int store_publish(struct store *s, const char *address, const char *token, struct err *err);

/* Who holds the store of db_path now. ERR_NOENT: nobody (then store_open will succeed). */
int store_holder(struct store_holder *ret, const char *db_path, struct err *err);

/* Before store_close, where somebody still waits for a change: it is done or fails soon, even if the database is away;
 * no further one is taken. */
void store_hurry(struct store *s);

/* Only the lock of a store, for those who work on its file; store_close releases it. */
int store_lock(struct store **ret, const char *db_path, struct err *err);

/* --- change notices --------------------------------------------------------------------------------------- */

/* fn runs on the writer's thread after each commit that changed something; it must only signal. rev grows with
 * every change. Returns a handle >= 0 for store_unwatch, or ERR_LIMIT (64 watchers). */
int store_watch(struct store *s, void (*fn)(void *arg, uint64_t rev), void *arg);
void store_unwatch(struct store *s, int handle); /* when it returns, fn is not running and never will again */

/* --- long work -------------------------------------------------------------------------------------------- */

/* Runs fn, then (NULL: nothing) when other work may begin, on a thread of the store's. ERR_BUSY: other work is under
 * way. ERR_CANCELED: closing. */
int store_work(struct store *s, void (*fn)(void *arg), void (*then)(void *arg), void *arg, struct err *err);

/* Ends the work that runs (it returns ERR_CANCELED, what it did so far stays done) and waits; no other begins. */
void store_work_stop(struct store *s);

/* --- health ----------------------------------------------------------------------------------------------- */

struct store_stats {
	uint64_t commits, batches, points;   /* since open */
	uint64_t log_rows, log_points;       /* accepted, not folded yet */
	uint64_t db_bytes, wal_bytes;
	uint64_t sqlite_bytes, outline_bytes; /* of memory: connections and their pages; what charts keep */
	uint64_t records_bad;                /* well framed but not applied, since open */
	bool archives; /* points of ended runs may move to an object store; what follows is since open */
	uint64_t archived_runs, archived_series, archived_points, archived_bytes; /* bytes: of their objects */
	uint64_t archive_returns, archive_failures; /* runs that became rows again; moves that failed, either way */
	int64_t archived_last_ms; /* 0: none was */
	int write_error;                     /* enum err_code of the last failed commit; 0 after one that succeeded */
	char write_error_text[256];
	int rw_handles;                      /* always 1 */
	const char *sqlite_version;
};

void store_stats(struct store *s, struct store_stats *ret);

/* Folds what is logged without waiting for a quiet moment, so that alerts found while folding (spikes) are there; for
 * commands that open a folder, look once and leave. At most wait_s seconds; what is not folded by then shows later. */
void store_fold(struct store *s, double wait_s);

/* The store's own 32-digit id, drawn when the file was made; borrowed from s. */
const char *store_id(const struct store *s);

#endif
