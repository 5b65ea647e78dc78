/* SPDX-License-Identifier: Apache-2.0 */
/* change.h: what a kind of change consists of, and the steps that several kinds share.
 * A kind is one const struct change_ops and one line in the changes.def of its room. Rooms above this one define
 * kinds of their own; ingest.h accepts them all.
 * Refusals (an unknown run, a contradicting param) are found before anything is written. Any other failure undoes
 * the whole transaction. */
#ifndef DPT_STORE_CHANGE_H
#define DPT_STORE_CHANGE_H

#include "web/store/write/intake.h"
#include "web/store/state/state.h"

/* What a change did, for the audit log: its entry. Texts live as long as the change; NULL: "". */
struct change_about {
	const char *action;		    /* a verb; NULL: no entry */
	const char *object;		    /* a noun: what was changed */
	const char *id, *name, *experiment; /* of the object */
	const char *detail;
	const char *author; /* in place of that of the request; NULL: that one */
};

/* One change: copy fills it on the caller's thread, then the writer's thread owns it. */
struct change {
	struct ingest_op op; /* the copy: strings and arrays are in in.arena, decoded bytes and points in `in` */
	struct intake in;
	int intake_code; /* journals: why decoding stopped; what was decoded is stored */
	struct err intake_err;
	size_t text_bytes; /* held beyond its points and op.len */
	const struct grants *grants; /* of a restricted caller; NULL: everything is permitted */
	enum grant_level most;	     /* levels above it count as this one */
	struct store *store;
	struct ingest_author author; /* set after copy */
	struct ingest_result res;
	struct change_about about;   /* begins with action and object of the kind */
	const char *made_experiment; /* name of the experiment that apply created; it has an entry of its own */
	int64_t made_experiment_id;
	uint64_t log_rows_gone, log_points_gone; /* removed from the ingest log */
	bool waits; /* apply wrote nothing, because the run is archived; it runs again when that is restored */
};

struct change_ops {
	const char *name;
	bool never_waits; /* does not wait for room in the queue: queued operations may wait for this one */
	bool makes_run;
	bool judges;	/* apply asks change_may_*; others are refused to restricted callers */
	/* For the audit log: what apply does. It adds the rest to c->about, or clears the action if it changes nothing.
	 * A change that is refused or waits has no entry. NULL: no entry, unless apply sets an action. */
	const char *action, *object;
	bool after_all; /* a barrier: answered when all earlier changes are stored; nothing overtakes it */

	/* Caller's thread, before anything is copied: checks what the kind requires of op. NULL: nothing. Names,
	 * statuses and pairs are checked for every kind. */
	int (*check)(const struct ingest_op *op, struct err *err);

	/* Caller's thread: copies what apply needs into c->in.arena (NULL: change_copy), then decodes the bytes and
	 * points of op into c->in (NULL: it has none). */
	void (*copy)(struct change *c, const struct ingest_op *op);
	int (*decode)(struct change *c, const struct ingest_op *op, struct err *err);

	/* Writer's thread, inside its transaction: fills c->res. Returns 0 (also when res.code refuses the change),
	 * or a negative code that undoes the transaction. May run again after that; res is zero at first. */
	int (*apply)(struct state *st, struct change *c, struct err *err);

	/* Writer's thread, after the commit or the failure, before the caller gets the answer. NULL: nothing. */
	void (*settled)(struct store *s);
};

/* Defines a kind that judges, whose name is that of its variable. */
#define CHANGE_KIND(kind, copier, applier)                                                                             \
	const struct change_ops kind = { .name = #kind, .judges = true, .copy = (copier), .apply = (applier) }

/* The same with its action and object. */
#define CHANGE_AUDITED(kind, copier, applier, verb, noun)                                                              \
	const struct change_ops kind = { .name = #kind,                                                                \
					 .judges = true,                                                               \
					 .action = (verb),                                                             \
					 .object = (noun),                                                             \
					 .copy = (copier),                                                             \
					 .apply = (applier) }

/* --- caller's thread ---------------------------------------------------------------------------------------- */

bool change_is_id(const char *id);				   /* 32 lower-case hex digits */
int change_check_run(const struct ingest_op *op, struct err *err); /* requires a run id */
int change_check_name(const char *name, const char *what, const char *field, struct err *err);
int change_check_given(const struct ingest_op *op, struct err *err);

/* Copies all of op except bytes, points and more. */
void change_copy(struct change *c, const struct ingest_op *op);

/* Copies into the arena; NULL stays NULL. */
const char *change_dup(struct arena *a, const char *text);
const struct ingest_kv *change_dup_pairs(struct arena *a, const struct ingest_kv *kv, size_t n);

/* --- writer's thread ---------------------------------------------------------------------------------------- */

/* Refuses the change; returns 0. */
int change_refuse(struct change *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* True if the change adds points to a run whose points are in an archive: apply then returns 0, having written
 * nothing, and runs again when they are restored. */
bool change_awaits_points(struct change *c, const struct state_run *r);

/* Whether the caller may write: 1; 0 refused, because it may only read; ERR_NOENT, without a text: it must not learn
 * that this exists; other negative codes: failed. */
int change_may_write(struct state *st, struct change *c, int64_t experiment, struct err *err);
int change_may_admin(struct state *st, struct change *c, int64_t experiment, struct err *err); /* the same for admin */
/* The same for a name that need not be an experiment's. */
int change_may_write_name(struct change *c, const char *name);
/* 1: the caller may write to the experiment of this name, or create it; 0 refused, in the same words whether or not a
 * hidden experiment has the name. */
int change_may_use_name(struct state *st, struct change *c, const char *name, struct err *err);
bool change_may_create(const struct change *c, const char *name);
int change_refuse_name(struct change *c);

/* Fill c->about if an entry is due: with the run; with the name of an experiment. Return 0 or a negative code. */
int change_about_run(struct state *st, struct change *c, const struct state_run *r, struct err *err);
int change_about_experiment(struct state *st, struct change *c, int64_t id, struct err *err);

/* The keys of pairs for c->about.detail: "a, b". */
const char *change_keys(struct arena *a, const struct ingest_kv *kv, size_t n);

/* Finds the run of c->op, for c->about too, and writes its id to c->res: 1 found, 0 refused, negative: failed. */
int change_need_run(struct state *st, struct change *c, struct state_run **ret, struct err *err);

#endif
