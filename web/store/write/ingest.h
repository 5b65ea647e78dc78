/* SPDX-License-Identifier: Apache-2.0 */
/* ingest.h: the one entry to everything that changes the store. An operation is checked, decoded and copied on the
 * calling thread, then queued to the writer's thread. That thread commits it with all that waits (group commit) and
 * answers after the commit. What was answered is stored exactly once and survives kill -9 and power loss.
 * The kinds are listed in the changes.def of web/store/write and of the rooms above it; change.h defines how to
 * write one. */
#ifndef DPT_STORE_INGEST_H
#define DPT_STORE_INGEST_H

#include "tracker/base/err.h"

struct change_ops;
struct store;

struct ingest_kv {
	const char *key;
	const char *value;
};

/* A data set that a run read. */
struct ingest_dataset {
	const char *name, *digest, *source_type, *source;
	const char *schema, *profile; /* NULL: none */
	const struct ingest_kv *tags;
	size_t tag_count;
};

struct ingest_point {
	const char *key;
	int64_t step;
	double wall_time; /* seconds since 1970; kept bit for bit */
	double value;	  /* NaN (payload kept) and infinities included */
	int rank;	  /* -1: run level */
};

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/write/changes.def"
#undef CHANGE

#define INGEST_NO_TIME INT64_MIN

/* The tag of a run whose event files no longer exist in the followed folder. */
#define INGEST_SOURCE_TAG "dptrack.source"
#define INGEST_SOURCE_GONE "gone"

#define INGEST_RENAME_TAG "dptrack.run_name" /* tag of a journal that renames the run and is not stored */

/* Event files of other programs: the path supplies what the header record of our own journals has. */
struct ingest_foreign {
	const char *experiment;
	const char *name;
	bool annotates; /* a file about the run in a folder of its own: its end is not the run's */
};

/* The members that a change_run_patch sets; those of a new run are its state at the start. */
struct ingest_state {
	const char *status; /* running finished failed killed preempted scheduled */
	const char *notes;
	const char *seen; /* with notes: the entity tags (etag.h) of what its author saw; NULL: whatever is there */
	const char
		*editing; /* with notes: a word that is the same for all texts of one edition; NULL: it is an edition */
	int64_t start_ms; /* change_run_new: 0 or INGEST_NO_TIME: now */
	int64_t end_ms;
	bool end_kept; /* change_run_patch: a status alone leaves the end as it is, as in MLflow */
};

#define INGEST_NO_STATE { .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME } /* changes nothing */

/* What a client logs. */
struct ingest_logged {
	const struct ingest_kv *params;
	size_t param_count;
	const struct ingest_kv *tags;
	size_t tag_count;
	const struct ingest_point *points;
	size_t point_count;
};

/* A part of a journal. */
struct ingest_journal {
	const char *writer; /* 32 hex digits, as in the header record */
	uint64_t offset;    /* of bytes[0] in the uncompressed journal */
	const void *bytes;
	size_t len;
	const char *path;		      /* below the followed folder; NULL: not from a file */
	const struct ingest_foreign *foreign; /* NULL: our own journal */
	int64_t changed_ms; /* of the file's last change: its records are not later; 0: they are not later than now */
	bool backlog;	    /* bytes that were there before: only their times tell whether their writer lives */
};

/* A line of the console in place of the one with its number in its rank and segment. */
struct ingest_line {
	int64_t number, time_ms;
	int stream; /* 1 standard output, 2 standard error */
	const char *text;
};

/* For change_records: texts of the run by name (query_run_texts reads them), lines that replace stored ones, and what
 * was left out, as problems of the run. */
struct ingest_texts {
	const struct ingest_kv *items;
	size_t count;
	const struct ingest_line *lines;
	size_t line_count;
	const char *const *problems;
	size_t problem_count;
};
/* Who asks for a change, for the audit log. Zero: the server itself. */
struct ingest_author {
	const char *via;  /* a word of struct audit_entry, borrowed for ever; NULL: server */
	const char *name; /* NULL: none; via command: the user of this process */
};
#define INGEST_VIA_COMMAND "command"

struct ingest_op {
	const struct change_ops *kind;
	struct ingest_author author;
	const char *run;	/* 32 hex digits */
	const char *experiment; /* name; NULL or "": Default */
	const char *name;
	const char *move_to;	 /* change_run_patch: name of the new experiment; NULL: unchanged */
	int64_t before_ms;	 /* change_purge_* */
	const char *idempotency; /* a repeat within 7 days changes nothing and returns the first answer */
	struct ingest_state state;
	struct ingest_logged logged;
	struct ingest_journal journal;
	const void *more; /* input of a kind of another room */
};

struct ingest_result {
	int code; /* 0 or an error code; text in err */
	struct err err;
	uint64_t durable;  /* change_journal: the offset up to which this writer's bytes are stored. Also set with
			    * ERR_EXISTS, which means that offset is beyond it (HTTP 409) */
	uint64_t accepted; /* points stored (for a repeat: of the first answer) */
	uint64_t rejected; /* records that were not applied; listed as problems of the run */
	char id[40];	   /* run or experiment */
	bool existed;
	bool more;	  /* change_purge_* */
	uint64_t removed; /* change_purge_pages: pages; durable is the number left */
	bool overtaken;	  /* change_journal with done: nothing was stored, because a part of the bytes arrived another
			   * way in the meantime; submit what follows durable again (ingest_rest) */
};

/* Called on the writer's thread after the commit or the failure. Must not block, nor call ingest_* with done NULL. */
struct ingest_done {
	void (*fn)(void *arg, const struct ingest_result *res);
	void *arg;
};

/* Copies op and queues it; a full queue blocks the caller. done NULL: waits, fills *ret, returns its code. Otherwise
 * returns 0 and calls done->fn exactly once (maybe before this returns), or returns a negative code and never calls
 * it.
 * ERR_USAGE: bad ids, names or statuses, or a header record of another run or writer; ERR_NOENT: no such run;
 * ERR_EXISTS: see above; ERR_CORRUPT: bytes that are not records (a bad checksum: durable is before it); ERR_NOSPC:
 * disk full; ERR_GONE: the run was removed for good; ERR_LIMIT; ERR_IO; ERR_BUSY; ERR_CANCELED: the store is
 * closing. */
int ingest_submit(struct store *s, const struct ingest_op *op, const struct ingest_done *done,
		  struct ingest_result *ret, struct err *err);

/* The part of a journal operation after durable; the caller still owns its bytes. */
struct ingest_op ingest_rest(const struct ingest_op *op, uint64_t durable);

/* Reads the durable offset of a writer of a run: 0 when it never wrote. ERR_NOENT: no such run; ERR_GONE: removed
 * for good. */
int ingest_durable(struct store *s, const char *run, const char *writer, uint64_t *ret, struct err *err);

#endif
