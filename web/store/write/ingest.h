/* ingest.h: the one door to everything that changes the store. Each operation is checked, decoded and copied on the
 * calling thread, queued to the writer's thread, committed together with what else waits (group commit) and answered
 * after the commit: what was answered survives kill -9 and power loss, once. What kinds there are stands in the
 * changes.def of web/store/write and of the rooms above it; how one is made, in change.h. */
#ifndef DPT_STORE_INGEST_H
#define DPT_STORE_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	double value;     /* NaN (payload kept) and infinities included */
	int rank;         /* -1: the run as a whole */
};

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/write/changes.def"
#undef CHANGE

#define INGEST_NO_TIME INT64_MIN

/* Event files that others wrote: what the first record of our own journals says comes from the path instead. */
struct ingest_foreign {
	const char *experiment;
	const char *name;
	bool beside; /* words on the run, not from it: their end is not the run's */
};

struct ingest_op {
	const struct change_ops *kind;
	const char *run;        /* 32 hex digits */
	const char *experiment; /* by name; NULL or "": Default */
	const char *name;
	const char *move_to;    /* change_run_patch: the experiment that it goes to, by name; NULL: it stays */
	const char *status;     /* running finished failed killed preempted scheduled */
	const char *notes;
	int64_t start_ms;       /* change_run_new: 0 or INGEST_NO_TIME: now */
	int64_t end_ms;
	bool end_kept;          /* change_run_patch: a status alone neither sets nor clears the end, as MLflow has it */
	int64_t before_ms;      /* change_purge_* */
	const struct ingest_kv *params;
	size_t param_count;
	const struct ingest_kv *tags;
	size_t tag_count;
	const struct ingest_point *points;
	size_t point_count;
	const char *idempotency; /* a repeat within 7 days changes nothing and gives the first answer */
	/* journals */
	const char *writer;      /* 32 hex digits, as in the first record */
	uint64_t offset;         /* of bytes[0] in the uncompressed journal */
	const void *bytes;
	size_t len;
	const char *path;        /* below the followed folder; NULL: not from a file */
	const struct ingest_foreign *foreign; /* NULL: our own journal */
	const void *more;        /* what a kind of another room takes */
};

struct ingest_result {
	int code;            /* 0 or what failed; text in err */
	struct err err;
	uint64_t durable;    /* change_journal: the offset up to which this writer's bytes are stored. Also filled with
	                      * ERR_EXISTS, which says that offset lies beyond it (HTTP 409) */
	uint64_t accepted;   /* points stored (of a repeat: what the first answer said) */
	uint64_t rejected;   /* records kept but not applied; listed as the run's problems */
	char id[40];         /* run or experiment */
	bool existed;
	bool more;           /* change_purge_* */
	uint64_t removed;    /* change_purge_pages: pages; durable says how many are left */
	bool overtaken; /* change_journal with done: nothing was stored, because by now a part of the bytes had come
			 * by another way; what is behind durable (ingest_rest) is to be submitted again */
};

/* Called on the writer's thread after the commit (or the failure); must not block nor call ingest_* with done NULL. */
struct ingest_done {
	void (*fn)(void *arg, const struct ingest_result *res);
	void *arg;
};

/* Copies op and queues it. done NULL: waits, fills *ret, returns its code. Otherwise returns 0 and done->fn is
 * called exactly once (maybe before this returns), or returns a negative code at once and fn is never called.
 * Codes: ERR_USAGE bad ids, names, statuses or a first record that names another run or writer; ERR_NOENT no such
 * run; ERR_EXISTS see above; ERR_CORRUPT bytes that are not records (a checksum that fails: durable is before it);
 * ERR_NOSPC disk full; ERR_GONE the run was removed for good; ERR_LIMIT; ERR_IO, ERR_BUSY;
 * ERR_CANCELED when closing. A full queue makes callers wait. */
int ingest_submit(struct store *s, const struct ingest_op *op, const struct ingest_done *done,
		  struct ingest_result *ret, struct err *err);

/* The part of a journal's operation that lies behind durable; its bytes are still the caller's. */
struct ingest_op ingest_rest(const struct ingest_op *op, uint64_t durable);

/* The durable offset of a writer of a run: 0 when it never wrote. ERR_NOENT: no such run; ERR_GONE: removed
 * for good. */
int ingest_durable(struct store *s, const char *run, const char *writer, uint64_t *ret, struct err *err);

#endif
