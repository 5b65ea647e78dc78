/* SPDX-License-Identifier: Apache-2.0 */
/* helper.h: shared by the tests of web/store: a store in a fresh folder, journals made by the encoder. */
#ifndef DPT_TESTS_STORE_HELPER_H
#define DPT_TESTS_STORE_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/event/event_encode.h"
#include "web/store/read/points.h"
#include "web/store/read/query.h"
#include "web/store/store.h"
#include "web/store/write/ingest.h"

struct helper {
	char folder[PATH_MAX / 2];
	char db[PATH_MAX];     /* or the address of a private database */
	char database[64];
	struct store *s;
	struct arena *a;
};

int helper_setup(void **state);    /* *state: a struct helper with an open store */
int helper_teardown(void **state);
void helper_reopen(struct helper *h);
bool helper_in_database(void); /* DPTRACK_TEST_STORE=postgresql, see tests/team/cluster.py */
void helper_needs_file(void);  /* skips the test if the store is not a file */

/* The first column of the first row as a number, -1 without a row. And a direct change of rows, without the store. */
int64_t helper_number(struct helper *h, const char *sql);
void helper_execute(struct helper *h, const char *sql);
void helper_reopen_with(struct helper *h, const struct store_opts *opts);

#define HELPER_RUN "0123456789abcdef0123456789abcdef"
#define HELPER_WRITER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct event_text helper_text(const char *s);

/* The header record of a journal of HELPER_RUN. */
struct event_header helper_header(int rank, int segment, int64_t first_step);
void helper_scalar(struct buf *b, const char *key, int64_t step, double value);

/* Submits bytes; returns the code and fills *ret. */
int helper_post(struct helper *h, const char *run, const char *writer, uint64_t offset, const struct buf *b,
		size_t from, struct ingest_result *ret);

struct query_run helper_run(struct helper *h, const char *id);
const struct query_metric *helper_metric(const struct query_run *r, const char *key); /* NULL when absent */
const char *helper_param(const struct query_run *r, const char *key);

/* All rows of the run, or of one key. */
size_t helper_rows(struct helper *h, const char *run, const char *key, int rank, bool all_segments,
		   struct points_row *rows, size_t max);

#endif
