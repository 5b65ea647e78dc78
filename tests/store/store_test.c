/* SPDX-License-Identifier: Apache-2.0 */
/* store_test.c: what is written can be read: journals by offset, JSON writes, segments, status, locks, changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/store/helper.h"
#include "tracker/base/clock.h"
#include "tracker/event/record.h"

static void json_writes(void **state);

static void make_journal(struct buf *b, int points)
{
	struct event_header header = helper_header(0, 0, 0);
	int i;

	buf_init(b, 1 << 24);
	encode_header(b, 1.7e9, &header);
	encode_param(b, 1.7e9,
		     &(struct encode_param){ .key = helper_text("lr"), .type = EVENT_TYPE_F64, .value = 0.1 });
	encode_param(b, 1.7e9, &(struct encode_param){ .key = helper_text("model"), .type = EVENT_TYPE_TEXT,
						       .text = helper_text("resnet20") });
	encode_tag(b, 1.7e9, helper_text("team"), helper_text("a"));
	encode_env(b, 1.7e9, helper_text("cpu"), helper_text("EPYC"));
	for (i = 1; i <= points; i++)
		helper_scalar(b, "train/loss", i, 1.0 / i);
	for (i = 1; i <= 3; i++)
		helper_scalar(b, "epoch/top1", i, 80 + i);
}

static void journal_becomes_a_run(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct query_run r;
	const struct query_metric *m;
	struct points_row rows[200];
	struct buf b;

	make_journal(&b, 100);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	assert_int_equal(res.durable, b.len);
	assert_int_equal(res.accepted, 103);
	r = helper_run(h, HELPER_RUN);
	assert_string_equal(r.name, "first");
	assert_string_equal(r.experiment, "exp");
	assert_string_equal(helper_param(&r, "lr"), "0.1");
	assert_string_equal(helper_param(&r, "model"), "resnet20");
	assert_int_equal(r.tag_count, 1);
	assert_int_equal(r.environment_count, 1);
	assert_int_equal(r.world_size, 2);
	assert_int_equal(r.last_step, 100);
	assert_int_equal(r.rank_count, 1);
	assert_string_equal(r.ranks[0].host, "host");
	m = helper_metric(&r, "train/loss");
	assert_non_null(m);
	assert_int_equal(m->count, 100);
	assert_true(m->first == 1.0 && m->last == 0.01 && m->min == 0.01 && m->max == 1.0);
	assert_int_equal(m->min_step, 100);
	assert_int_equal(r.series_count, 2);
	assert_int_equal(r.series[1].sum.count, 100);
	assert_int_equal(helper_rows(h, HELPER_RUN, NULL, -1, false, rows, 200), 103);
	assert_string_equal(rows[0].key, "epoch/top1");
	assert_true(rows[102].value == 0.01 && rows[102].step == 100 && rows[102].wall_time == 1.7e9 + 100);
	helper_reopen(h);
	assert_int_equal(helper_rows(h, HELPER_RUN, NULL, -1, false, rows, 200), 103);
	assert_true(rows[102].value == 0.01);
	assert_int_equal(helper_run(h, "0123").last_step, 100);
	buf_done(&b);
}

static void offsets_count_once(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct points_row rows[400];
	uint64_t durable;
	struct buf b;
	size_t cut;

	make_journal(&b, 100);
	cut = record_whole(b.data, b.len / 2);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 10, &b, 10, &res), ERR_EXISTS);
	assert_int_equal(res.durable, 0);
	b.len = cut + 5;
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	assert_int_equal(res.durable, cut);
	buf_done(&b);
	make_journal(&b, 100);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, b.len, &b, b.len, &res), ERR_EXISTS);
	assert_int_equal(res.durable, cut);
	/* the complete journal again: the stored part is skipped */
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	assert_int_equal(res.durable, b.len);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, cut, &b, cut, &res), 0);
	assert_int_equal(res.durable, b.len);
	assert_int_equal(ingest_durable(h->s, HELPER_RUN, HELPER_WRITER, &durable, NULL), 0);
	assert_int_equal(durable, b.len);
	assert_int_equal(helper_rows(h, HELPER_RUN, NULL, -1, false, rows, 400), 103);
	buf_done(&b);
}

/* A journal is sent up to every byte, then the rest: nothing is lost or duplicated. */
static void torn_at_every_byte(void **state)
{
	struct helper *h = *state;
	struct points_row rows[64];
	struct ingest_result res;
	struct buf b, part;
	size_t cut, whole;

	make_journal(&b, 5);
	for (cut = 0; cut <= b.len; cut += cut < 400 || cut + 100 > b.len ? 1 : 7) {
		char run[40], writer[40];
		struct event_header header = helper_header(0, 0, 0);
		int i;

		snprintf(run, sizeof run, "%032zx", cut + 1);
		snprintf(writer, sizeof writer, "%032zx", cut + 77);
		header.run_id = helper_text(run);
		header.writer_id = helper_text(writer);
		buf_init(&part, 1 << 20);
		encode_header(&part, 1.7e9, &header);
		for (i = 1; i <= 5; i++)
			helper_scalar(&part, "a", i, i);
		if (cut > part.len) {
			buf_done(&part);
			break;
		}
		whole = record_whole(part.data, cut);
		{
			struct buf torn = part;

			torn.len = cut;
			assert_int_equal(helper_post(h, run, writer, 0, &torn, 0, &res), 0);
			assert_int_equal(res.durable, whole);
		}
		assert_int_equal(helper_post(h, run, writer, whole, &part, whole, &res), 0);
		assert_int_equal(res.durable, part.len);
		assert_int_equal(helper_rows(h, run, NULL, -1, false, rows, 64), 5);
		buf_done(&part);
	}
	buf_done(&b);
}

static void corrupt_at_every_byte(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct buf b;
	size_t at, number = 0;

	buf_init(&b, 1 << 20);
	for (at = 0;; at++) {
		char run[40], writer[40];
		struct event_header header = helper_header(0, 0, 0);
		int i, rc;

		snprintf(run, sizeof run, "%032zx", ++number + 5000);
		snprintf(writer, sizeof writer, "%032zx", number);
		header.run_id = helper_text(run);
		header.writer_id = helper_text(writer);
		buf_reset(&b);
		encode_header(&b, 1.7e9, &header);
		for (i = 1; i <= 3; i++)
			helper_scalar(&b, "a", i, i);
		if (at >= b.len)
			break;
		b.data[at] ^= 0x20;
		rc = helper_post(h, run, writer, 0, &b, 0, &res);
		if (rc != ERR_CORRUPT)
			fail_msg("byte %zu: %d %s", at, rc, res.err.text);
		assert_int_equal(res.durable, record_whole(b.data, b.len));
	}
	buf_done(&b);
}

static void check_segments(struct helper *h, bool fold)
{
	struct event_header header = helper_header(0, 1, 51);
	struct ingest_result res;
	struct points_row rows[400];
	struct query_run r;
	struct buf b;
	int i;

	make_journal(&b, 100);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	buf_done(&b);
	if (fold)
		helper_reopen(h);
	header.writer_id = helper_text("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9 + 500, &header);
	encode_param(&b, 1.7e9, &(struct encode_param){ .key = helper_text("threads"), .type = EVENT_TYPE_I64,
							.integer = 2,
							.segment = true });
	for (i = 51; i <= 60; i++)
		helper_scalar(&b, "train/loss", i, 7);
	assert_int_equal(helper_post(h, HELPER_RUN, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 0, &b, 0, &res), 0);
	r = helper_run(h, HELPER_RUN);
	assert_int_equal(r.segment_count, 2);
	assert_string_equal(helper_param(&r, "threads"), "2");
	assert_int_equal(r.segments[1].param_count, 1);
	assert_int_equal(helper_metric(&r, "train/loss")->count, 60);
	assert_int_equal(helper_metric(&r, "train/loss")->last_step, 60);
	assert_true(helper_metric(&r, "train/loss")->max == 7);
	assert_true(helper_metric(&r, "train/loss")->min == 1.0 / 50);
	/* first_epoch 2 hides epochs 2 and 3 */
	assert_int_equal(helper_metric(&r, "epoch/top1")->count, 1);
	assert_int_equal(helper_rows(h, HELPER_RUN, "train/loss", -1, false, rows, 400), 60);
	assert_true(rows[49].step == 50 && rows[50].step == 51 && rows[50].segment == 1);
	assert_int_equal(helper_rows(h, HELPER_RUN, "train/loss", -1, true, rows, 400), 110);
	assert_int_equal(helper_rows(h, HELPER_RUN, "epoch/top1", -1, false, rows, 400), 1);
	buf_done(&b);
	/* the first segment's journal continues: hidden points stay hidden */
	make_journal(&b, 100);
	i = (int)b.len;
	helper_scalar(&b, "train/loss", 101, 99);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, (uint64_t)i, &b, (size_t)i, &res), 0);
	r = helper_run(h, HELPER_RUN);
	assert_int_equal(helper_metric(&r, "train/loss")->count, 60);
	buf_done(&b);
}

static void segments_hide_logged_points(void **state)
{
	check_segments(*state, false);
}

static void segments_hide_folded_points(void **state)
{
	check_segments(*state, true);
}

static void silent_run_counts_as_killed(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct query_run r;
	struct buf b;
	size_t before;

	make_journal(&b, 3);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	r = helper_run(h, HELPER_RUN);
	assert_string_equal(r.status, "killed");
	assert_true(r.status_inferred);
	assert_int_equal(r.end_ms, INT64_C(1700000003000));
	before = b.len;
	encode_heartbeat(&b, clock_wall_s(), 1);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, before, &b, before, &res), 0);
	r = helper_run(h, HELPER_RUN);
	assert_string_equal(r.status, "running");
	assert_false(r.status_inferred);
	assert_true(r.end_ms == INT64_MIN);
	buf_done(&b);
}

/* A spike is reported once its points are folded, and only the worst of a series. */
static void spikes_are_reported(void **state)
{
	struct helper *h = *state;
	struct event_header header = helper_header(0, 0, 0);
	struct ingest_result res;
	struct query_run r;
	struct buf b;
	int i;

	buf_init(&b, 1 << 24);
	encode_header(&b, 1.7e9, &header);
	for (i = 0; i < 5000; i++) {
		double v = 0.3 + 2 * exp(-i / 300.0) + 0.02 * (i * 7919 % 11);

		helper_scalar(&b, "train/loss", i, i == 337 ? 14.85 : i == 2048 ? 4 : v);
		helper_scalar(&b, "train/lr", i, i == 400 ? 100 : 1);
	}
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	store_fold(h->s, 10);
	helper_reopen(h);
	r = helper_run(h, HELPER_RUN);
	assert_int_equal(r.alert_count, 1);
	assert_string_equal(r.alerts[0].kind_name, "spike");
	assert_string_equal(r.alerts[0].key, "train/loss");
	assert_string_equal(r.alerts[0].text, "spike 14.85 at step 337");
	assert_int_equal(r.alerts[0].step, 337);
	buf_done(&b);
}

/* One connection may write; every other one is read-only, including its file descriptor. */
static void one_connection_writes(void **state)
{
	struct helper *h = *state;
	char link[64], target[PATH_MAX], line[128];
	int fd, writable = 0, seen = 0;
	struct query_runs runs;

	helper_needs_file();
	json_writes(state);
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ 0 }, h->a, &runs, NULL), 0);
	for (fd = 0; fd < 256; fd++) {
		unsigned int flags = 0;
		ssize_t n;
		FILE *info;

		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof target - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, h->db))
			continue;
		snprintf(link, sizeof link, "/proc/self/fdinfo/%d", fd);
		info = fopen(link, "r");
		assert_non_null(info);
		while (fgets(line, sizeof line, info))
			if (sscanf(line, "flags: %o", &flags) == 1)
				break;
		fclose(info);
		seen++;
		writable += (flags & O_ACCMODE) == O_RDWR;
	}
	assert_int_equal(writable, 1);
	assert_true(seen > 1);
}

static void other_files_are_refused(void **state)
{
	struct helper *h = *state;
	struct store *s = NULL;
	struct err err = ERR_INIT;
	char path[PATH_MAX];
	FILE *out;
	int i;

	snprintf(path, sizeof path, "%.2000s/other.db", h->folder);
	out = fopen(path, "w");
	assert_non_null(out);
	for (i = 0; i < 1000; i++)
		fputs("this is not a database at all\n", out);
	fclose(out);
	assert_int_equal(store_open(&s, &(struct store_opts){ .db_path = path }, &err), ERR_DAMAGED);
	assert_non_null(strstr(err.text, "other.db"));
	snprintf(path, sizeof path, "%.2000s/missing/other.db", h->folder);
	assert_int_equal(store_open(&s, &(struct store_opts){ .db_path = path }, &err), ERR_NOENT);
}

static struct ingest_result submit(struct helper *h, struct ingest_op op)
{
	struct ingest_result res;
	struct err err;

	ingest_submit(h->s, &op, NULL, &res, &err);
	return res;
}

static void launcher_status_wins(void **state)
{
	struct helper *h = *state;
	struct event_header header = helper_header(EVENT_RANK_LAUNCHER, 0, 0);
	const char *w = "cccccccccccccccccccccccccccccccc";
	struct ingest_result res;
	struct ingest_point elsewhere = { .key = "samples", .step = 60000, .value = 1, .rank = -1, .wall_time = 1.7e9 };
	struct query_run r;
	struct buf b;

	make_journal(&b, 3);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	buf_done(&b);
	header.writer_id = helper_text(w);
	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9, &header);
	encode_status(&b, 1.7e9 + 10, EVENT_FAILED, helper_text("rank 1: signal 9"));
	assert_int_equal(helper_post(h, HELPER_RUN, w, 0, &b, 0, &res), 0);
	buf_done(&b);
	make_journal(&b, 3);
	encode_status(&b, 1.7e9 + 11, EVENT_FINISHED, helper_text(""));
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	r = helper_run(h, HELPER_RUN);
	assert_string_equal(r.status, "failed");
	assert_int_equal(r.end_ms, INT64_C(1700000010000));
	assert_int_equal(r.alert_count, 1);
	assert_string_equal(r.alerts[0].text, "failed after step 3");
	submit(h, (struct ingest_op){ .kind = &change_points, .run = HELPER_RUN, .logged.points = &elsewhere,
				      .logged.point_count = 1 });
	r = helper_run(h, HELPER_RUN);
	assert_string_equal(r.alerts[0].text, "failed after step 3"); /* a series with other steps does not change it */
	buf_done(&b);
}

/* A batch with very many series is one change, but is folded in pieces. */
static void many_series_at_once(void **state)
{
	struct helper *h = *state;
	enum { SERIES = 4500 };
	static struct ingest_point points[SERIES];
	struct points_row row;
	struct store_stats stats;
	struct ingest_result res;
	int i;

	helper_reopen_with(h, &(struct store_opts){ .db_path = h->db, .no_fold = true });
	for (i = 0; i < SERIES; i++)
		points[i] = (struct ingest_point){ "a", 7, 1.7e9, i, i };
	res = submit(h, (struct ingest_op){ .kind = &change_run_new, .name = "n" });
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = res.id, .logged.points = points,
						       .logged.point_count = SERIES }).accepted, SERIES);
	store_stats(h->s, &stats);
	assert_int_equal(stats.log_rows, 3);
	assert_int_equal(stats.log_points, SERIES);
	for (i = 0; i < 2; i++) {
		assert_int_equal(helper_rows(h, res.id, "a", SERIES - 1, false, &row, 1), 1);
		assert_true(row.step == 7 && row.value == SERIES - 1);
		assert_int_equal(helper_run(h, res.id).series_count, SERIES);
		helper_reopen(h); /* folds it at the end */
	}
	store_fold(h->s, 30);
	store_stats(h->s, &stats);
	assert_int_equal(stats.log_rows, 0);
	assert_int_equal(stats.log_points, 0);
}

/* Writes to a deleted file are lost, so they must not be acknowledged. As long as the log remains, stored data are
 * safe. */
static void deleted_while_open(void **state)
{
	static const char *const endings[] = { "-wal", "" };
	struct helper *h = *state;
	struct ingest_point p = { "a", 1, 1.7e9, 1, -1 };
	struct ingest_op op = { .kind = &change_points, .logged.points = &p, .logged.point_count = 1 };
	struct points_row row;
	char path[PATH_MAX + 16];
	struct ingest_result res;
	struct store_stats stats;
	size_t i;

	helper_needs_file();
	for (i = 0; i < 2; i++) {
		res = submit(h, (struct ingest_op){ .kind = &change_run_new, .name = "n" });
		op.run = res.id;
		assert_int_equal(submit(h, op).code, 0);
		snprintf(path, sizeof path, "%s%s", h->db, endings[i]);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(ingest_submit(h->s, &op, NULL, &(struct ingest_result){ 0 }, NULL), ERR_IO);
		store_stats(h->s, &stats);
		assert_int_equal(stats.write_error, ERR_IO);
		assert_non_null(strstr(stats.write_error_text, "was deleted"));
		helper_reopen(h); /* closing checkpoints the log into the file */
		assert_int_equal(helper_rows(h, res.id, "a", -1, false, &row, 1), i == 0 ? 1 : 0);
	}
}

static void replaced_while_open(void **state)
{
	struct helper *h = *state;
	struct ingest_point p = { "a", 1, 1.7e9, 1, -1 };
	struct ingest_op op = { .kind = &change_points, .logged.points = &p, .logged.point_count = 1 };
	char other[PATH_MAX + 16];
	struct ingest_result res;
	struct store_stats stats;
	FILE *f;

	helper_needs_file();
	res = submit(h, (struct ingest_op){ .kind = &change_run_new, .name = "n" });
	op.run = res.id;
	assert_int_equal(submit(h, op).code, 0);
	snprintf(other, sizeof other, "%s.other", h->db);
	f = fopen(other, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(rename(other, h->db), 0);
	assert_int_equal(ingest_submit(h->s, &op, NULL, &(struct ingest_result){ 0 }, NULL), ERR_IO);
	store_stats(h->s, &stats);
	assert_non_null(strstr(stats.write_error_text, "was replaced"));
	helper_reopen(h);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_new, .name = "n" }).code, 0);
}

/* The text of an alert about a non-finite loss is true of every point. */
static void nonfinite_alert_text(void **state)
{
	static const struct {
		double values[4]; /* of steps 1 to 4 */
		const char *text;
	} cases[] = {
		{ { 1, INFINITY, 1, 1 }, "not finite at step 2" },
		{ { 1, NAN, 1, INFINITY }, "first not finite at step 2, infinite at step 4" },
		{ { 1, NAN, 1, NAN }, "first not finite at step 2, NaN at step 4" },
		{ { 1, INFINITY, NAN, NAN }, "not finite from step 2" },
		{ { NAN, NAN, NAN, NAN }, "NaN from step 1" },
		{ { 1, 1, NAN, NAN }, "NaN from step 3" },
		{ { 1, 1, 1, -INFINITY }, "minus infinite from step 4" },
	};
	struct helper *h = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ingest_point points[4];
		struct ingest_result res;
		struct query_run r;

		for (int k = 0; k < 4; k++)
			points[k] = (struct ingest_point){ "loss", k + 1, 1.7e9 + k, cases[i].values[k], -1 };
		res = submit(h, (struct ingest_op){ .kind = &change_run_new, .name = "words" });
		assert_int_equal(res.code, 0);
		assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = res.id,
							       .logged.points = points,
							       .logged.point_count = 4 }).code, 0);
		r = helper_run(h, res.id);
		assert_int_equal(r.alert_count, 1);
		assert_string_equal(r.alerts[0].text, cases[i].text);
	}
}

static void json_writes(void **state)
{
	struct helper *h = *state;
	struct ingest_kv params[] = { { "lr", "0.1" }, { "opt", "sgd" } }, tag = { "t", "v" }, other = { "lr", "0.2" };
	struct ingest_point points[] = { { "loss", 1, 1.7e9, 2.5, -1 }, { "loss", 2, 1.7e9, NAN, -1 },
					 { "r", 1, 1, 1, 3 } };
	struct ingest_result res;
	struct query_run r;
	char id[40];

	res = submit(h, (struct ingest_op){ .kind = &change_experiment, .name = "new" });
	assert_int_equal(res.code, 0);
	assert_string_equal(res.id, "1");
	assert_false(res.existed);
	assert_true(submit(h, (struct ingest_op){ .kind = &change_experiment, .name = "new" }).existed);
	res = submit(h, (struct ingest_op){ .kind = &change_run_new, .experiment = "new", .name = "n",
					    .logged.params = params,
					    .logged.param_count = 2, .logged.tags = &tag, .logged.tag_count = 1,
					    .state.start_ms = 5 });
	assert_int_equal(res.code, 0);
	memcpy(id, res.id, sizeof id);
	res = submit(h, (struct ingest_op){ .kind = &change_points, .run = id, .logged.points = points,
					    .logged.point_count = 3,
					    .idempotency = "once" });
	assert_int_equal(res.accepted, 3);
	res = submit(h, (struct ingest_op){ .kind = &change_points, .run = id, .logged.points = points,
					    .logged.point_count = 3,
					    .idempotency = "once" });
	assert_int_equal(res.accepted, 3);
	assert_true(res.existed);
	res = submit(h,
		     (struct ingest_op){ .kind = &change_run_params, .run = id, .logged.params = &other,
					 .logged.param_count = 1 });
	assert_int_equal(res.code, ERR_EXISTS);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_params, .run = id, .logged.params = params,
						       .logged.param_count = 2 }).code, 0);
	res = submit(h, (struct ingest_op){ .kind = &change_run_patch, .run = id, .state.status = "finished",
					    .state.notes = "# hi",
					    .state.end_ms = 99, .name = "renamed" });
	assert_int_equal(res.code, 0);
	r = helper_run(h, id);
	assert_string_equal(r.status, "finished");
	assert_string_equal(r.name, "renamed");
	assert_string_equal(r.notes, "# hi");
	assert_int_equal(r.end_ms, 99);
	assert_int_equal(r.start_ms, 5);
	assert_int_equal(r.param_count, 2);
	assert_string_equal(helper_param(&r, "lr"), "0.1");
	assert_int_equal(helper_metric(&r, "loss")->count, 2);
	assert_int_equal(helper_metric(&r, "loss")->nonfinite, 1);
	assert_int_equal(r.series_count, 2);
	assert_int_equal(r.alert_count, 1);
	assert_string_equal(r.alerts[0].text, "NaN from step 2");
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_untag, .run = id, .name = "t" }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_untag, .run = id, .name = "t" }).code,
			 ERR_NOENT);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_delete, .run = id }).code, 0);
	assert_true(helper_run(h, id).deleted);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_restore, .run = id }).code, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_patch, .run = HELPER_RUN, .name = "x",
						       .state.end_ms = INGEST_NO_TIME }).code, ERR_NOENT);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_patch, .run = "zz" }).code, ERR_USAGE);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_patch, .run = id,
						       .state.status = "good" }).code,
			 ERR_USAGE);
}

static void bad_records_are_listed(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct query_run r;
	char long_key[300];
	struct buf b;

	memset(long_key, 'k', sizeof long_key);
	long_key[299] = '\0';
	make_journal(&b, 2);
	helper_scalar(&b, long_key, 1, 1);
	encode_param(&b, 1.7e9,
		     &(struct encode_param){ .key = helper_text("lr"), .type = EVENT_TYPE_F64, .value = 0.3 });
	helper_scalar(&b, "train/loss", 3, 3);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	assert_int_equal(res.durable, b.len);
	assert_int_equal(res.rejected, 1);
	r = helper_run(h, HELPER_RUN);
	assert_int_equal(r.problem_count, 2);
	assert_string_equal(helper_param(&r, "lr"), "0.1");
	assert_int_equal(helper_metric(&r, "train/loss")->count, 3);
	buf_done(&b);
}

static void changes_are_reported_once(void **state)
{
	struct helper *h = *state;
	struct query_changes c;
	struct ingest_result res;
	const char *token;
	struct buf b;

	assert_int_equal(query_changes(h->s, NULL, h->a, &c, NULL), 0);
	assert_true(c.reset);
	token = c.token;
	make_journal(&b, 3);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &b, 0, &res), 0);
	assert_int_equal(query_changes(h->s, token, h->a, &c, NULL), 0);
	assert_false(c.reset);
	assert_int_equal(c.run_count, 1);
	assert_string_equal(c.runs[0], HELPER_RUN);
	assert_int_equal(query_changes(h->s, c.token, h->a, &c, NULL), 0);
	assert_int_equal(c.run_count, 0);
	assert_int_equal(query_changes(h->s, "nonsense", h->a, &c, NULL), ERR_USAGE);
	assert_int_equal(query_changes(h->s, "00000000-0", h->a, &c, NULL), 0);
	assert_true(c.reset);
	buf_done(&b);
}

/* Counter in the file's header (sqlite.org/fileformat2.html, 1.3.6), incremented by each write. */
static uint32_t times_written(const char *path)
{
	unsigned char count[4] = { 0 };
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	assert_int_equal(fseek(f, 24, SEEK_SET), 0);
	assert_int_equal(fread(count, 1, sizeof(count), f), sizeof(count));
	fclose(f);
	return (uint32_t)count[0] << 24 | (uint32_t)count[1] << 16 | (uint32_t)count[2] << 8 | count[3];
}

static void opening_writes_nothing(void **state)
{
	struct helper *h = *state;
	uint32_t first;

	helper_needs_file();
	helper_reopen(h); /* the writes of its creation are in the file */
	first = times_written(h->db);
	helper_reopen(h);
	helper_reopen(h);
	assert_int_equal(times_written(h->db), first);
}

static void one_process_opens_it(void **state)
{
	struct helper *h = *state;
	struct store_holder holder;
	struct store *second = NULL;
	struct err err = ERR_INIT;

	helper_needs_file();
	assert_int_equal(store_publish(h->s, "http://127.0.0.1:1", "secret", &err), 0);
	assert_int_equal(store_holder(&holder, h->db, &err), 0);
	assert_string_equal(holder.address, "http://127.0.0.1:1");
	assert_string_equal(holder.token, "secret");
	assert_int_equal(store_open(&second, &(struct store_opts){ .db_path = h->db }, &err), ERR_BUSY);
	assert_non_null(strstr(err.text, "http://127.0.0.1:1"));
	assert_null(second);
	store_close(h->s);
	h->s = NULL;
	assert_int_equal(store_holder(&holder, h->db, &err), ERR_NOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(journal_becomes_a_run, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(offsets_count_once, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(torn_at_every_byte, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(corrupt_at_every_byte, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(segments_hide_logged_points, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(segments_hide_folded_points, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(silent_run_counts_as_killed, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(spikes_are_reported, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(one_connection_writes, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(other_files_are_refused, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(launcher_status_wins, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(many_series_at_once, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(deleted_while_open, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(replaced_while_open, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(json_writes, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(nonfinite_alert_text, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(bad_records_are_listed, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(changes_are_reported_once, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(opening_writes_nothing, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(one_process_opens_it, helper_setup, helper_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
