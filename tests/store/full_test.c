/* SPDX-License-Identifier: Apache-2.0 */
/* full_test.c: a full disk (a small tmpfs, so it needs root): writes are refused with that reason, reads work, nothing
 * acknowledged is lost, and writing resumes once there is space, without a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/store/helper.h"

#define BATCH 500

static char folder[] = "/tmp/dptrack-full-XXXXXX";

static int log_batch(struct helper *h, const char *run, int64_t from)
{
	static struct ingest_point points[BATCH];
	struct ingest_result res;
	struct err err = ERR_INIT;
	int i;

	for (i = 0; i < BATCH; i++)
		points[i] = (struct ingest_point){ i & 1 ? "a" : "b", from + i, (double)i, (double)rand(), -1 };
	return ingest_submit(h->s, &(struct ingest_op){ .kind = &change_points, .run = run, .logged.points = points,
							.logged.point_count = BATCH }, NULL, &res, &err);
}

static void check(struct helper *h, const char *run, size_t want)
{
	struct query_run r = helper_run(h, run);
	static struct points_row rows[400000];

	assert_true(want < 400000);
	assert_int_equal(helper_metric(&r, "a")->count + helper_metric(&r, "b")->count, want);
	assert_int_equal(helper_rows(h, run, NULL, -1, false, rows, 400000), want);
}

/* A store that cannot be opened for writing, for lack of space, can still be read. */
static void read_when_full(struct helper *h, const char *run, size_t stored)
{
	struct store_opts o = { .db_path = h->db };
	struct err err = ERR_INIT;
	char path[PATH_MAX + 8];
	ssize_t n = 1;
	int fd;

	store_close(h->s);
	/* The WAL index remains if the close could not checkpoint the complete log; connections share it, and it
	 * needs space. */
	snprintf(path, sizeof path, "%s-shm", h->db);
	unlink(path);
	snprintf(path, sizeof path, "%s/rest", folder);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	while (n > 0)
		n = write(fd, path, 1);
	close(fd);
	assert_int_equal(store_open(&h->s, &o, &err), ERR_NOSPC);
	o.read_when_full = true;
	assert_int_equal(store_open(&h->s, &o, &err), 0);
	assert_true(store_only_reads(h->s));
	check(h, run, stored);
	assert_int_equal(log_batch(h, run, (int64_t)stored), ERR_NOSPC);
	check(h, run, stored);
	assert_int_equal(unlink(path), 0);
	helper_reopen(h);
	assert_false(store_only_reads(h->s));
	check(h, run, stored);
}

static void fills_and_recovers(void **state)
{
	struct helper h = { .a = arena_new() };
	char ballast[PATH_MAX];
	struct ingest_result res;
	struct store_stats stats;
	struct err err = ERR_INIT;
	size_t stored = 0;
	int round, rc, fd;

	(void)state;
	snprintf(h.db, sizeof h.db, "%s/dptrack.db", folder);
	helper_reopen(&h);
	if (ingest_submit(h.s, &(struct ingest_op){ .kind = &change_run_new, .name = "r" }, NULL, &res, &err))
		fail_msg("%s", err.text);
	for (round = 0; round < 3; round++) {
		snprintf(ballast, sizeof ballast, "%s/ballast%d", folder, round);
		fd = open(ballast, O_CREAT | O_WRONLY, 0600);
		assert_true(fd >= 0);
		assert_int_equal(posix_fallocate(fd, 0, 1 << 20), 0);
		close(fd);
	}
	for (round = 0; round < 3; round++) {
		snprintf(ballast, sizeof ballast, "%s/ballast%d", folder, round);
		while (!(rc = log_batch(&h, res.id, (int64_t)stored)))
			stored += BATCH;
		assert_int_equal(rc, ERR_NOSPC);
		assert_int_equal(log_batch(&h, res.id, (int64_t)stored), ERR_NOSPC);
		store_stats(h.s, &stats);
		assert_int_equal(stats.write_error, ERR_NOSPC);
		check(&h, res.id, stored);
		assert_int_equal(unlink(ballast), 0);
		assert_int_equal(log_batch(&h, res.id, (int64_t)stored), 0);
		stored += BATCH;
		store_stats(h.s, &stats);
		assert_int_equal(stats.write_error, 0);
		check(&h, res.id, stored);
		read_when_full(&h, res.id, stored);
		helper_reopen(&h);
		check(&h, res.id, stored);
	}
	store_close(h.s);
	arena_free(h.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fills_and_recovers) };
	int rc;

	if (!mkdtemp(folder))
		return 1;
	if (mount("tmpfs", folder, "tmpfs", 0, "size=8m")) {
		printf("full_test: cannot mount a tmpfs (needs root): %s\n", strerror(errno));
		rmdir(folder);
		return 77;
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	return rc;
}
