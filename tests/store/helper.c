/* SPDX-License-Identifier: Apache-2.0 */
/* helper.c: folders, journals and shortcuts for the tests of web/store. */
#include "tests/store/helper.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool helper_in_database(void)
{
	const char *store = getenv("DPTRACK_TEST_STORE");

	return store && !strcmp(store, "postgresql");
}

void helper_needs_file(void)
{
	if (!helper_in_database())
		return;
	print_message("skipped: needs a store in a file, not in PostgreSQL\n");
	skip();
}

/* Runs psql in a database of the test cluster (tests/team/cluster.py); returns its output, or NULL. */
static char *psql(const char *database, const char *sql, char *ret, size_t room)
{
	const char *server = getenv("DPTRACK_TEST_SERVER"), *port = server ? strrchr(server, ':') : NULL;
	char command[4000];
	FILE *f;
	size_t n;

	assert_non_null(port);
	snprintf(command, sizeof command, "psql -h '%.*s' -p %s -U postgres -d %s -XAtq -v ON_ERROR_STOP=1 -c \"%s\"",
		 (int)(port - server), server, port + 1, database, sql);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(ret, 1, room - 1, f);
	ret[n] = '\0';
	return pclose(f) ? NULL : ret;
}

static void make_database(struct helper *h)
{
	const char *server = getenv("DPTRACK_TEST_SERVER"), *port = server ? strrchr(server, ':') : NULL;
	static int number;
	char sql[200], out[100];

	snprintf(h->database, sizeof h->database, "h%d_%d", (int)getpid(), number++);
	snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE dptrack", h->database);
	assert_non_null(psql("postgres", sql, out, sizeof out));
	snprintf(h->db, sizeof h->db, "postgresql://postgres@/%s?host=%.*s&port=%s", h->database, (int)(port - server),
		 server, port + 1);
}

int64_t helper_number(struct helper *h, const char *sql)
{
	sqlite3_stmt *q;
	int64_t n = -1;
	char out[100];
	sqlite3 *d;

	if (helper_in_database())
		return psql(h->database, sql, out, sizeof out) && *out ? strtoll(out, NULL, 10) : -1;
	assert_int_equal(sqlite3_open_v2(h->db, &d, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(d, sql, -1, &q, NULL), SQLITE_OK);
	if (sqlite3_step(q) == SQLITE_ROW)
		n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(d);
	return n;
}

void helper_execute(struct helper *h, const char *sql)
{
	char out[100];
	sqlite3 *d;

	if (helper_in_database()) {
		assert_non_null(psql(h->database, sql, out, sizeof out));
		return;
	}
	assert_int_equal(sqlite3_open(h->db, &d), SQLITE_OK);
	if (sqlite3_exec(d, sql, NULL, NULL, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(d));
	sqlite3_close(d);
}

void helper_reopen_with(struct helper *h, const struct store_opts *opts)
{
	struct store_opts o = *opts;
	char artifacts[PATH_MAX];
	struct err err = ERR_INIT;

	store_close(h->s);
	h->s = NULL;
	o.db_path = h->db;
	snprintf(artifacts, sizeof artifacts, "%s/dptrack.artifacts", h->folder);
	if (helper_in_database() && !o.artifacts)
		o.artifacts = artifacts;
	if (store_open(&h->s, &o, &err))
		fail_msg("%s", err.text);
}

void helper_reopen(struct helper *h)
{
	helper_reopen_with(h, &(struct store_opts){ 0 });
}

int helper_setup(void **state)
{
	struct helper *h = calloc(1, sizeof *h);
	const char *tmp = getenv("TMPDIR");

	assert_non_null(h);
	/* In memory where possible: these tests are about content, and commit thousands of times. */
	if (!tmp)
		tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	snprintf(h->folder, sizeof h->folder, "%s/dptrack-test-XXXXXX", tmp);
	assert_non_null(mkdtemp(h->folder));
	snprintf(h->db, sizeof h->db, "%s/dptrack.db", h->folder);
	if (helper_in_database())
		make_database(h);
	h->a = arena_new();
	helper_reopen(h);
	*state = h;
	return 0;
}

int helper_teardown(void **state)
{
	struct helper *h = *state;
	char command[PATH_MAX], sql[100], out[100];

	store_close(h->s);
	arena_free(h->a);
	snprintf(sql, sizeof sql, "DROP DATABASE %s WITH (FORCE)", h->database);
	if (helper_in_database())
		psql("postgres", sql, out, sizeof out);
	snprintf(command, sizeof command, "rm -rf '%s'", h->folder);
	if (system(command))
		return -1;
	free(h);
	return 0;
}

struct event_text helper_text(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

struct event_header helper_header(int rank, int segment, int64_t first_step)
{
	return (struct event_header){
		.format = 1, .run_id = helper_text(HELPER_RUN), .writer_id = helper_text(HELPER_WRITER), .rank = rank,
		.world_size = 2, .experiment = helper_text("exp"), .run_name = helper_text("first"), .segment = segment,
		.first_step = first_step, .first_epoch = segment ? 2 : 0, .host = helper_text("host"), .pid = 42,
		.version = helper_text("test"),
	};
}

void helper_scalar(struct buf *b, const char *key, int64_t step, double value)
{
	encode_scalar(b, &(struct encode_scalar){ .key = helper_text(key), .step = step,
						  .wall_time = 1.7e9 + (double)step, .value = value,
						  .rank = EVENT_RANK_RUN, .journal_rank = 0 });
}

int helper_post(struct helper *h, const char *run, const char *writer, uint64_t offset, const struct buf *b,
		size_t from, struct ingest_result *ret)
{
	struct err err = ERR_INIT;
	struct ingest_op op = { .kind = &change_journal, .run = run, .journal.writer = writer, .journal.offset = offset,
				.journal.bytes = b->data + from, .journal.len = b->len - from };

	memset(ret, 0, sizeof *ret);
	return ingest_submit(h->s, &op, NULL, ret, &err);
}

struct query_run helper_run(struct helper *h, const char *id)
{
	struct err err = ERR_INIT;
	struct query_run r;

	if (query_run_series(h->s, id, h->a, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

const struct query_metric *helper_metric(const struct query_run *r, const char *key)
{
	size_t i;

	for (i = 0; i < r->metric_count; i++)
		if (!strcmp(r->metrics[i].key, key))
			return &r->metrics[i];
	return NULL;
}

const char *helper_param(const struct query_run *r, const char *key)
{
	size_t i;

	for (i = 0; i < r->param_count; i++)
		if (!strcmp(r->params[i].key, key))
			return r->params[i].value;
	return NULL;
}

size_t helper_rows(struct helper *h, const char *run, const char *key, int rank, bool all_segments,
		   struct points_row *rows, size_t max)
{
	struct points_sel sel = { .runs = &run, .run_count = 1, .keys = key ? &key : NULL, .key_count = key ? 1 : 0,
				  .rank = rank, .from_step = INT64_MIN, .to_step = INT64_MAX,
				  .all_segments = all_segments };
	struct points_cursor *c;
	struct err err = ERR_INIT;
	size_t n = 0, got;

	if (points_open(&c, h->s, &sel, NULL, &err))
		fail_msg("%s", err.text);
	do {
		if (points_next(c, rows + n, max - n, &got, &err))
			fail_msg("%s", err.text);
		n += got;
	} while (got && n < max);
	/* The texts are freed with the cursor. */
	for (got = 0; got < n && got < 1000; got++)
		rows[got].key = arena_strdup(h->a, rows[got].key);
	points_close(c);
	return n;
}
