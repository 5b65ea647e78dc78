/* SPDX-License-Identifier: Apache-2.0 */
/* apply.h: steps that several kinds of changes share. Writer's thread, inside its transaction. */
#ifndef DPT_STORE_APPLY_H
#define DPT_STORE_APPLY_H

#include "web/store/state/state.h"
#include "web/store/write/intake.h"

/* How long the key of a repeatable request is stored. */
#define APPLY_IDEMPOTENCY_MS (INT64_C(7) * 24 * 3600 * 1000)
int apply_expire(struct db *d, struct err *err); /* deletes older ones */

/* A batch of more series takes several rows of the ingest log: folding a row costs about as much as its series. */
#define APPLY_ROW_SERIES 2000

struct apply_points {
	int rank; /* the journal's rank, for series that have none */
	int segment;
	bool tolerant; /* a limit that is exceeded becomes a problem of the run instead of a refusal */
};

/* Stores the points of the batch: log rows and visible summaries. */
int apply_points(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err);

/* Prefetches what apply_points will look up: call it once, as early as possible. */
int apply_expect(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err);

uint64_t apply_log_rows(const struct intake *in); /* rows of the ingest log that its points need */

int apply_problem(struct state *st, struct state_run *r, const char *text, uint64_t count, struct err *err);

void apply_draw_id(char to[33]); /* 32 random hex digits */

/* Prefetches keys of params or tags. */
int apply_expect_keys(struct state *st, const struct ingest_kv *kv, size_t n, struct err *err);
int apply_tags(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

/* Sets the notes, but not the tag of them. What they replace becomes an edition, unless it was written under the same
 * word; NULL: no word. */
int apply_note(struct state *st, const struct state_run *r, const char *text, const char *editing, struct err *err);

/* Sets name, status, end_ms and notes, where op has them. */
int apply_patch(struct state *st, struct state_run *r, const struct ingest_op *op, struct err *err);

/* Removes a tag: 1 removed, 0 it was not set, negative: failed. */
int apply_untag(struct state *st, struct state_run *r, const char *key, struct err *err);

/* Records that the run used the data set, which experiment, name and digest identify. The first description of a
 * data set and the tags of the first use are final. */
int input_put(struct state *st, struct state_run *r, const struct ingest_dataset *d, struct err *err);

/* --- records of a run besides numbers and settings ------------------------------------------------------------- */

/* Stores an EVENT_CONSOLE, EVENT_CODE, EVENT_ALERT, EVENT_FILE or EVENT_OTHER (media) of a journal with this rank
 * and segment. */
int told_put(struct state *st, const struct state_run *r, const struct state_writer *w, const struct intake_item *it,
	     struct err *err);

/* Replaces a line of the console in the journal's rank and segment; a number that is not there changes nothing. */
int told_line(struct state *st, const struct state_run *r, const struct state_writer *w, const struct ingest_line *line,
	      struct err *err);

/* An image, table, sound or other media item of a run. */
struct told_media {
	const char *key;
	int64_t kind; /* enum media_kind */
	int rank, segment;
	int64_t step;
	double wall_time;
	const void *bytes; /* the content (run_records.h) */
	size_t len;
	const char *digest; /* digest of the content; NULL: computed here */
};

int told_media(struct state *st, const struct state_run *r, const struct told_media *m, struct err *err);

/* --- params ----------------------------------------------------------------------------------------------------- */

/* The params to find by the names of kv, and the values found. */
struct params_lookup {
	const struct state_run *run;
	const struct ingest_kv *kv;
	size_t count;
	struct arena *arena; /* memory of the values */
	const char **values; /* set by params_find: of each name; NULL: the run has no such param */
};

int params_find(struct state *st, struct params_lookup *l, struct err *err);

/* Adds those that are new; the first value of a param is final. ERR_LIMIT: the run would have too many. */
int params_add(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

#endif
