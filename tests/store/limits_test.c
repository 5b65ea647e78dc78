/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c: limits on the characters of a name and on the params and metric keys of a run. A client's request
 * beyond them is refused as a whole; a journal's surplus is listed and does not block it; a run's health is
 * unaffected. Journals truncated or damaged at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/helper.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"

static int submit(struct helper *h, struct ingest_op op, struct err *err)
{
	struct ingest_result res;

	err->text[0] = '\0';
	return ingest_submit(h->s, &op, NULL, &res, err);
}

static void begin_journal(struct buf *b)
{
	struct event_header header = helper_header(0, 0, 0);

	buf_init(b, 1 << 26);
	encode_header(b, 1.7e9, &header);
}

static void characters_of_a_name(void **state)
{
	struct helper *h = *state;
	char name[2 * LIMIT_name_chars + 2 + 1] = "";
	struct ingest_op op = { .kind = &change_run_new, .run = HELPER_RUN, .name = name };
	struct err err = ERR_INIT;

	for (int i = 0; i <= LIMIT_name_chars; i++)
		memcpy(name + strlen(name), "\xc3\xa9", 3);
	assert_int_equal(submit(h, op, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "500 characters"));
	name[2 * LIMIT_name_chars] = '\0';
	assert_int_equal(submit(h, op, &err), 0);
}

static void params_per_run(void **state)
{
	struct helper *h = *state;
	struct ingest_kv *kv = calloc(LIMIT_params_per_run + 1, sizeof *kv);
	char (*names)[16] = calloc(LIMIT_params_per_run + 1, sizeof *names);
	struct ingest_result res;
	struct store_stats stats;
	struct err err = ERR_INIT;
	struct buf journal;
	int i;

	for (i = 0; i <= LIMIT_params_per_run; i++) {
		snprintf(names[i], sizeof names[i], "p%d", i);
		kv[i] = (struct ingest_kv){ names[i], "1" };
	}
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_new, .run = HELPER_RUN, .name = "r" }, &err),
			 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_params, .run = HELPER_RUN,
						       .logged.params = kv,
						       .logged.param_count = LIMIT_params_per_run + 1 }, &err),
						       ERR_LIMIT);
	assert_int_equal(helper_run(h, HELPER_RUN).param_count, 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_params, .run = HELPER_RUN,
						       .logged.params = kv,
						       .logged.param_count = LIMIT_params_per_run }, &err), 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_params, .run = HELPER_RUN,
						       .logged.params = kv + LIMIT_params_per_run,
						       .logged.param_count = 1 }, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "params"));
	assert_int_equal(submit(h,
				(struct ingest_op){ .kind = &change_run_params, .run = HELPER_RUN, .logged.params = kv,
						    .logged.param_count = 5 },
				&err), 0);
	store_stats(h->s, &stats);
	assert_int_equal(stats.write_error, 0);
	begin_journal(&journal);
	encode_param(&journal, 1.7e9,
		     &(struct encode_param){ .key = helper_text("another"), .type = EVENT_TYPE_I64, .integer = 1 });
	helper_scalar(&journal, "loss", 1, 1);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &journal, 0, &res), 0);
	assert_int_equal(res.durable, journal.len);
	assert_int_equal(helper_run(h, HELPER_RUN).param_count, LIMIT_params_per_run);
	assert_int_equal(helper_run(h, HELPER_RUN).problem_count, 1);
	assert_int_equal(helper_metric(&(struct query_run[]){ helper_run(h, HELPER_RUN) }[0], "loss")->count, 1);
	buf_done(&journal);
	free(kv);
	free(names);
}

static void keys_per_run(void **state)
{
	struct helper *h = *state;
	struct ingest_point *points = calloc(LIMIT_keys_per_run + 1, sizeof *points);
	char (*names)[16] = calloc(LIMIT_keys_per_run + 1, sizeof *names);
	struct ingest_result res;
	struct err err = ERR_INIT;
	struct buf journal;
	int i;

	for (i = 0; i <= LIMIT_keys_per_run; i++) {
		snprintf(names[i], sizeof names[i], "k%d", i);
		points[i] = (struct ingest_point){ names[i], 1, 1, 1, 0 };
	}
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_run_new, .run = HELPER_RUN, .name = "r" }, &err),
			 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = HELPER_RUN,
						       .logged.points = points,
						       .logged.point_count = LIMIT_keys_per_run }, &err), 0);
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = HELPER_RUN,
						       .logged.points = points + LIMIT_keys_per_run,
						       .logged.point_count = 1 }, &err),
						       ERR_LIMIT);
	points[0].rank = 5; /* another rank of an existing key */
	assert_int_equal(submit(h, (struct ingest_op){ .kind = &change_points, .run = HELPER_RUN,
						       .logged.points = points,
						       .logged.point_count = 1 }, &err), 0);
	begin_journal(&journal);
	helper_scalar(&journal, "one more", 1, 1);
	helper_scalar(&journal, "k7", 1, 1);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &journal, 0, &res), 0);
	assert_int_equal(res.durable, journal.len);
	assert_int_equal(helper_run(h, HELPER_RUN).problem_count, 1);
	assert_non_null(helper_metric(&(struct query_run[]){ helper_run(h, HELPER_RUN) }[0], "k7"));
	buf_done(&journal);
	free(points);
	free(names);
}

/* One run and writer per trial: the ids in the header differ in their last digits. */
static void make_journal(struct buf *b, int trial, char run[33])
{
	struct event_header header = helper_header(0, 0, 0);
	int i;

	snprintf(run, 33, "0123456789abcdef%016x", (unsigned)trial);
	header.run_id = helper_text(run);
	buf_init(b, 1 << 20);
	encode_header(b, 1.7e9, &header);
	for (i = 1; i <= 6; i++)
		helper_scalar(b, "a", i, i);
}

static size_t whole_before(const struct buf *b, size_t n, int64_t *ret_points)
{
	struct record rec;
	size_t at = 0;

	for (*ret_points = -1; record_next(b->data, n, &at, &rec) == RECORD_OK;)
		++*ret_points;
	*ret_points = *ret_points < 0 ? 0 : *ret_points;
	return at;
}

static void cut_at_every_byte(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct points_row rows[20];
	int64_t points;
	char run[33];
	size_t n, whole, i;

	for (n = 0;; n++) {
		struct buf b, part;

		make_journal(&b, (int)n, run);
		part = (struct buf){ .data = b.data, .len = n };
		whole = whole_before(&b, n, &points);
		if (n) {
			assert_int_equal(helper_post(h, run, HELPER_WRITER, 0, &part, 0, &res), 0);
			assert_int_equal(res.durable, whole);
			assert_int_equal(helper_rows(h, run, NULL, -1, false, rows, 20), points);
		}
		assert_int_equal(helper_post(h, run, HELPER_WRITER, whole, &b, whole, &res), 0);
		assert_int_equal(helper_rows(h, run, NULL, -1, false, rows, 20), 6);
		for (i = 0; i < 6; i++)
			assert_int_equal(rows[i].step, i + 1);
		if (n == b.len) {
			buf_done(&b);
			break;
		}
		buf_done(&b);
	}
	assert_true(n > 300);
}

/* A POST with a damaged byte is accepted up to that record; the rest, sent undamaged, follows. */
static void damaged_at_every_byte(void **state)
{
	struct helper *h = *state;
	struct ingest_result res;
	struct points_row rows[20];
	int64_t points;
	char run[33];
	size_t n, len = 1, whole;
	int rc;

	for (n = 0; n < len; n++) {
		struct buf b;

		make_journal(&b, 1000000 + (int)n, run);
		len = b.len;
		whole = whole_before(&b, n, &points);
		b.data[n] ^= 0x40;
		rc = helper_post(h, run, HELPER_WRITER, 0, &b, 0, &res);
		assert_true(rc == ERR_CORRUPT || (rc == 0 && res.durable <= whole));
		assert_true(res.durable <= whole);
		b.data[n] ^= 0x40;
		assert_int_equal(helper_post(h, run, HELPER_WRITER, res.durable, &b, (size_t)res.durable, &res), 0);
		assert_int_equal(helper_rows(h, run, NULL, -1, false, rows, 20), 6);
		buf_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(characters_of_a_name, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(params_per_run, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(keys_per_run, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(cut_at_every_byte, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(damaged_at_every_byte, helper_setup, helper_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
