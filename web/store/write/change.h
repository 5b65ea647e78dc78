/* change.h: what a kind of change is made of, and the steps that several kinds share. A kind is one const struct
 * change_ops and one line in the changes.def of its room; rooms above this one bring kinds of their own, which the one
 * door (ingest.h) takes as it takes ours. Refusals (a run that does not exist, a param that contradicts) are found
 * before anything is written; any other failure means that the whole transaction is undone. */
#ifndef DPT_STORE_CHANGE_H
#define DPT_STORE_CHANGE_H

#include <stdbool.h>

#include "web/store/write/ingest.h"
#include "web/store/write/intake.h"
#include "web/store/state/state.h"

/* One change on its way: filled by copy on the caller's thread, then the writer's thread's. */
struct change {
	struct ingest_op op;   /* the copy: texts and arrays live in in.arena; what was in bytes and points is in in */
	struct intake in;
	int intake_code;       /* journals: why not all bytes were taken; the rest is stored */
	struct err intake_err;
	size_t text_bytes;     /* that it holds beyond its points and op.len */
	struct store *store;
	struct ingest_result res;
	uint64_t log_rows_gone, log_points_gone; /* of the ingest log */
};

struct change_ops {
	const char *name;
	bool never_waits; /* for room in the queue: what waits there may wait for it */
	bool makes_run;
	bool after_all; /* answered when all that was put before it is stored: nothing goes ahead of it */

	/* Caller's thread, before anything is copied: what the kind itself requires of op. NULL: nothing; what is given
	 * at all (names, statuses, pairs) is checked for every kind. */
	int (*check)(const struct ingest_op *op, struct err *err);

	/* Caller's thread: decodes, and copies what apply needs into c->in.arena, as op is the caller's. NULL:
	 * change_copy. */
	int (*copy)(struct change *c, const struct ingest_op *op, struct err *err);

	/* Writer's thread, inside its transaction: fills c->res. 0 (res.code may say that it was refused), or negative:
	 * undo the transaction. It may run again then, with res as new. */
	int (*apply)(struct state *st, struct change *c, struct err *err);

	/* Writer's thread, after the commit or the failure, before the caller is told. NULL: nothing to do. */
	void (*settled)(struct store *s);
};

/* --- caller's thread ---------------------------------------------------------------------------------------- */

bool change_is_id(const char *id); /* 32 lower-case hex digits */
int change_check_run(const struct ingest_op *op, struct err *err); /* names a run */
int change_check_name(const char *name, const char *what, const char *field, struct err *err);
int change_check_given(const struct ingest_op *op, struct err *err);

/* All of op but bytes, points and more. */
int change_copy(struct change *c, const struct ingest_op *op, struct err *err);

/* Copies into the arena; NULL stays NULL. *failed becomes true when memory is short. */
const char *change_dup(struct arena *a, const char *text, bool *failed);
const struct ingest_kv *change_dup_pairs(struct arena *a, const struct ingest_kv *kv, size_t n, bool *failed);

/* --- writer's thread ---------------------------------------------------------------------------------------- */

/* Refuses the change; returns 0. */
int change_refuse(struct change *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Whether it adds to the points of its run, for which these are looked at. */
bool change_wants_points(const struct change *c);

/* The run of c->op, its id in c->res: 1 found, 0 refused, negative failed. */
int change_need_run(struct state *st, struct change *c, struct state_run **ret, struct err *err);

#endif
