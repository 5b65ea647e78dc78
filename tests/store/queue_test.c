/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's queue: the order in which groups are formed, compared with the guarantees in queue.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "tracker/base/clock.h"
#include "web/store/write/queue.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "0000000000000000000000000000000b"

/* Jobs are identified by their offsets. */
static void put(struct queue *q, uint64_t number, const char *run, size_t points, size_t series)
{
	struct queue_job *j = calloc(1, sizeof *j);

	j->change.op = (struct ingest_op){ .kind = &change_points, .run = run, .journal.offset = number };
	j->change.in.point_count = points;
	j->change.in.series_count = series;
	j->bytes = 1;
	assert_int_equal(queue_put(q, j, NULL), 0);
}

static int no_step(void *arg, struct db *d, struct err *err)
{
	(void)arg;
	(void)d;
	(void)err;
	return 0;
}

static void put_other(struct queue *q, uint64_t number, bool step)
{
	struct queue_job *j = calloc(1, sizeof *j);

	j->change.op = (struct ingest_op){ .kind = &change_sync, .journal.offset = number };
	j->step = step ? no_step : NULL;
	assert_int_equal(queue_put(q, j, NULL), 0);
}

/* Checks the numbers of the next group, given as "1 2 3 ". */
static void expect(struct queue *q, const char *want)
{
	char have[200] = "";
	struct queue_job *j, *next;
	bool end;

	for (j = queue_take(q, 0.001, &end); j; j = next) {
		next = j->next;
		snprintf(have + strlen(have), sizeof have - strlen(have), "%d ", (int)j->change.op.journal.offset);
		free(j);
	}
	assert_string_equal(have, want);
}

static void in_order(void **state)
{
	struct queue *q = queue_new(100);

	(void)state;
	expect(q, "");
	put(q, 1, RUN_A, 10, 1);
	put(q, 2, RUN_B, 10, 1);
	put(q, 3, RUN_A, 10, 1);
	put_other(q, 4, false);
	put(q, 5, RUN_A, 10, 1);
	expect(q, "1 2 3 4 5 ");
	expect(q, "");
	queue_free(q);
}

static void small_goes_ahead(void **state)
{
	struct queue *q = queue_new(100);

	(void)state;
	put(q, 1, RUN_A, 150000, 1);
	put(q, 2, RUN_A, 150000, 1); /* larger than a group */
	put(q, 3, RUN_B, 1, 1);      /* small, of another run */
	put(q, 4, RUN_A, 1, 1);      /* small, but its run is queued */
	put(q, 5, RUN_B, 2000, 2000); /* many new series are not small */
	put(q, 6, NULL, 0, 0);       /* without a run */
	expect(q, "1 3 6 ");
	expect(q, "2 4 ");
	expect(q, "5 ");
	/* A single job is never too large. */
	put(q, 1, RUN_A, 1000000, 1);
	expect(q, "1 ");
	queue_free(q);
}

/* Long jobs: small ones do not wait for two of them. */
static void small_waits_for_one_large(void **state)
{
	struct queue *q = queue_new(100);

	(void)state;
	put(q, 1, RUN_A, 20000, 20000);
	expect(q, "1 ");
	put(q, 2, RUN_A, 20000, 20000);
	put(q, 3, RUN_B, 1, 1);
	put(q, 4, RUN_A, 1, 1); /* its run is queued */
	put(q, 5, RUN_B, 20000, 20000);
	put(q, 6, NULL, 0, 0);
	expect(q, "3 6 ");
	put(q, 7, NULL, 0, 0);
	expect(q, "2 4 7 "); /* they are not starved */
	put_other(q, 8, true);
	put(q, 9, NULL, 0, 0);
	expect(q, "5 ");
	expect(q, "8 ");
	expect(q, "9 ");
	queue_free(q);
}

/* Small jobs run between the pieces of a long one. */
static void small_between_pieces(void **state)
{
	struct queue *q = queue_new(100);
	struct queue_job *j;

	(void)state;
	assert_null(queue_take_small(q));
	put(q, 1, RUN_A, 20000, 20000);
	put(q, 2, RUN_A, 1, 1);
	assert_null(queue_take_small(q));
	put(q, 3, RUN_B, 1, 1);
	j = queue_take_small(q);
	assert_true(j && j->change.op.journal.offset == 3 && !j->next);
	free(j);
	put_other(q, 4, true);
	put(q, 5, RUN_B, 1, 1); /* after a step */
	assert_null(queue_take_small(q));
	expect(q, "1 2 ");
	assert_null(queue_take_small(q));
	expect(q, "4 ");
	expect(q, "5 ");
	queue_free(q);
}

static void nothing_passes_a_barrier(void **state)
{
	struct queue *q = queue_new(100);

	(void)state;
	put(q, 1, RUN_A, 150000, 1);
	put(q, 2, RUN_A, 150000, 1);
	put_other(q, 3, false);
	put(q, 4, RUN_B, 1, 1);
	put_other(q, 5, true);
	put(q, 6, RUN_B, 1, 1);
	expect(q, "1 ");
	expect(q, "2 3 4 ");
	expect(q, "5 ");
	expect(q, "6 ");
	queue_free(q);
}

static void *put_late(void *arg)
{
	put(arg, 2, RUN_A, 1, 1);
	return NULL;
}

static void full_queue_blocks(void **state)
{
	struct queue *q = queue_new(0);
	struct queue_job late = { .bytes = 1 };
	struct err err = ERR_INIT;
	pthread_t thread;
	bool end = false;

	(void)state;
	put(q, 1, RUN_A, 1, 1);
	assert_int_equal(pthread_create(&thread, NULL, put_late, q), 0);
	expect(q, "1 ");
	pthread_join(thread, NULL);
	queue_stop(q);
	assert_int_equal(queue_put(q, &late, &err), ERR_CANCELED);
	expect(q, "2 "); /* queued jobs are still taken */
	assert_null(queue_take(q, 10, &end));
	assert_true(end);
	queue_free(q);
}

static void held_runs_wait(void **state)
{
	struct queue *q = queue_new(100);
	struct queue_job *j, *next;
	bool end;

	(void)state;
	put(q, 1, RUN_A, 10, 1);
	put(q, 2, RUN_B, 10, 1);
	put(q, 3, RUN_A, 10, 1);
	assert_true(queue_hold(q, RUN_A));
	expect(q, "2 ");
	expect(q, "");
	put_other(q, 4, true);
	expect(q, "4 ");
	queue_release(q, RUN_A);
	for (j = queue_take(q, 0.001, &end); j; j = next) { /* returned in the order taken, ahead of new jobs */
		next = j->next;
		queue_give_back(q, j);
	}
	put(q, 5, RUN_A, 10, 1);
	expect(q, "1 3 5 ");
	put(q, 6, RUN_A, 10, 1);
	assert_true(queue_hold(q, RUN_A));
	expect(q, "");
	queue_stop(q);
	expect(q, "6 ");
	assert_false(queue_hold(q, RUN_A));
	queue_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(small_goes_ahead),
		cmocka_unit_test(small_waits_for_one_large),
		cmocka_unit_test(small_between_pieces),
		cmocka_unit_test(nothing_passes_a_barrier),
		cmocka_unit_test(full_queue_blocks),
		cmocka_unit_test(held_runs_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
