/* apply.h: steps that several kinds of changes take, on the writer's thread inside its transaction. */
#ifndef DPT_STORE_APPLY_H
#define DPT_STORE_APPLY_H

#include <stdbool.h>

#include "web/store/write/ingest.h"
#include "web/store/write/intake.h"
#include "web/store/state/state.h"

/* How long the name of a repeatable request is kept. */
#define APPLY_IDEMPOTENCY_MS (INT64_C(7) * 24 * 3600 * 1000)
int apply_expire(struct db *d, struct err *err); /* forgets those that are older */

/* A batch of more series takes several rows of the ingest log: folding a row costs about as much as its series. */
#define APPLY_ROW_SERIES 2000

struct apply_points {
	int rank;    /* of the journal: decides what a series without a rank belongs to */
	int segment;
	bool tolerant; /* what goes beyond a limit becomes a problem of the run instead of a refusal */
};

/* Stores the batch's points: log row and visible summaries. */
int apply_points(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err);

/* Says what apply_points will ask for: once is enough, and the earlier the better. */
int apply_expect(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err);

uint64_t apply_log_rows(const struct intake *in); /* that its points take */

int apply_problem(struct state *st, struct state_run *r, const char *text, uint64_t count, struct err *err);

void apply_draw_id(char to[33]); /* 32 random hex digits */

/* Says which keys of params or tags will be asked for. */
int apply_expect_keys(struct state *st, const struct ingest_kv *kv, size_t n, struct err *err);
int apply_tags(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

/* name, status, end_ms and notes of op, where given. */
int apply_patch(struct state *st, struct state_run *r, const struct ingest_op *op, struct err *err);

/* 1 when it was there, 0, or negative. */
int apply_untag(struct state *st, struct state_run *r, const char *key, struct err *err);

#endif
