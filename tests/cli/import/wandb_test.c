/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_test.c: a .wandb file cut at every byte, as a killed process leaves it. The complete records before the cut
 * are read; the run exists from its own record on, with the points of the rows, as make_wandb.py counted them with
 * W&B's own classes. A run is built from complete records only, so the long file is imported at the cuts around each
 * record's end and at every 97th byte; at every byte if DPTRACK_LONG is set. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tracker/base/file.h"
#include "web/cli/import/wandb_file.h"

#define SAMPLE "tests/cli/import/"

static const char *source(const char *path, char to[4096])
{
	const char *top = getenv("srcdir");

	snprintf(to, 4096, "%s/" SAMPLE "%s", top ? top : ".", path);
	return to;
}

/* The number of points in the complete records of the first n bytes. */
static int64_t points_until(json_t *counts, size_t n, bool *ret_edge)
{
	int64_t points = 0;
	json_t *row;
	size_t i;

	*ret_edge = false;
	json_array_foreach(counts, i, row) {
		size_t end = (size_t)json_integer_value(json_array_get(row, 0));

		if (end <= n)
			points = json_integer_value(json_array_get(row, 1));
		*ret_edge = *ret_edge || (n + 9 > end && n < end + 9);
	}
	return points;
}

static void cut_at(const struct file_map *map, size_t n, json_t *want)
{
	const struct importer_target nowhere = { 0 };
	struct wandb_file file = { .bytes = map->bytes, .n = n, .session = "cut" };
	json_int_t whole = json_integer_value(json_object_get(want, "whole"));
	bool edge;
	int64_t points = points_until(json_object_get(want, "counts"), n, &edge), got;
	struct importer b;
	int rc;

	assert_int_equal(importer_init(&b, &nowhere, NULL), 0);
	rc = wandb_take(&b, &file, NULL);
	got = (int64_t)b.points;
	assert_int_equal(rc, n < (size_t)whole ? ERR_CORRUPT : 0);
	/* one more at the end: a value of the summary that is in no row */
	if (got != points && (got != points + 1 || n < map->n - 200))
		fail_msg("cut at byte %zu: %lld points, want %lld", n, (long long)got, (long long)points);
	assert_int_equal(map_count(b.left_out) > 4, 0); /* nothing is damaged: the end is incomplete */
	importer_done(&b);
}

#define RECORDS_MAX 4000

/* The end offsets of the records of a complete file, and their content. */
struct records {
	struct buf bytes;              /* concatenated */
	size_t end[RECORDS_MAX];       /* in the file */
	size_t bytes_end[RECORDS_MAX]; /* in bytes */
	size_t n;
};

static void read_records(struct records *r, const struct file_map *map)
{
	struct event_span record;
	struct blocks b;

	r->n = 0;
	buf_init(&r->bytes, 1 << 24);
	assert_int_equal(blocks_init(&b, map->bytes, map->n), 0);
	while (blocks_next(&b, &record) > 0) {
		assert_true(r->n < RECORDS_MAX);
		buf_add(&r->bytes, record.at, (size_t)(record.end - record.at));
		r->end[r->n] = b.at;
		r->bytes_end[r->n++] = r->bytes.len;
	}
	assert_int_equal(b.damaged, 0);
	assert_false(buf_failed(&r->bytes));
	blocks_done(&b);
}

/* The first n bytes contain exactly the records that end there, and no damage. */
static void records_until(const struct file_map *map, size_t n, const struct records *r)
{
	struct event_span record;
	struct blocks b;
	size_t i = 0, at = 0;

	if (blocks_init(&b, map->bytes, n))
		assert_true(n < BLOCKS_HEAD_BYTES);
	else
		while (blocks_next(&b, &record) > 0) {
			assert_true(i < r->n && r->end[i] <= n);
			assert_int_equal(record.end - record.at, r->bytes_end[i] - at);
			assert_memory_equal(record.at, r->bytes.data + at, r->bytes_end[i] - at);
			at = r->bytes_end[i++];
		}
	assert_true(i == r->n || r->end[i] > n);
	assert_int_equal(b.damaged, 0);
	blocks_done(&b);
}

static void test_cuts(void **state)
{
	static struct records records;
	size_t stride = getenv("DPTRACK_LONG") ? 1 : 97, i;
	char path[4096];
	json_t *files = json_load_file(source("wandb.json", path), 0, NULL), *f;

	(void)state;
	assert_non_null(files);
	json_array_foreach(files, i, f) {
		struct file_map map;
		struct err err = ERR_INIT;

		if (file_map_open(&map, source(json_string_value(json_object_get(f, "file")), path), &err))
			fail_msg("%s", err.text);
		read_records(&records, &map);
		for (size_t n = 0; n <= map.n; n++) {
			bool edge;

			records_until(&map, n, &records);
			points_until(json_object_get(f, "counts"), n, &edge);
			if (map.n < 2000 || n % stride == 0 || (edge && n % 16 == 0) || n == map.n)
				cut_at(&map, n, f);
		}
		buf_done(&records.bytes);
		file_map_close(&map);
	}
	json_decref(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cuts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
