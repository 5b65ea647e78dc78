/* helper.c: folders, journals and shortcuts for the tests of web/store. */
#include "tests/store/helper.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void helper_reopen_with(struct helper *h, const struct store_opts *opts)
{
	struct store_opts o = *opts;
	struct err err = ERR_INIT;

	store_close(h->s);
	h->s = NULL;
	o.db_path = h->db;
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
	/* In memory where that is possible: these tests are about content, and commit thousands of times. */
	if (!tmp)
		tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	snprintf(h->folder, sizeof h->folder, "%s/dptrack-test-XXXXXX", tmp);
	assert_non_null(mkdtemp(h->folder));
	snprintf(h->db, sizeof h->db, "%s/dptrack.db", h->folder);
	h->a = arena_new();
	helper_reopen(h);
	*state = h;
	return 0;
}

int helper_teardown(void **state)
{
	struct helper *h = *state;
	char command[PATH_MAX];

	store_close(h->s);
	arena_free(h->a);
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
	struct ingest_op op = { .kind = &change_journal, .run = run, .writer = writer, .offset = offset,
				.bytes = b->data + from, .len = b->len - from };

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
	/* The texts go with the cursor. */
	for (got = 0; got < n && got < 1000; got++)
		rows[got].key = arena_strdup(h->a, rows[got].key);
	points_close(c);
	return n;
}
