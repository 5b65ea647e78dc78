/* SPDX-License-Identifier: Apache-2.0 */
/* run_test.c: the parts of tracker/run that threads share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/err.h"
#include "tracker/dptrack.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "tracker/run/log_queue.h"
#include "tracker/run/run_folder.h"
#include "tracker/run/run_inside.h"

#define THREADS 8
#define POINTS 50000

static void lanes_hold_their_capacity(void **state)
{
	struct log_queue *l = log_queue_new(4096);
	const struct point *p;
	int64_t want = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4096; i++)
			assert_true(log_queue_push(l, &(struct point){ .step = i }));
		assert_false(log_queue_push(l, &(struct point){ .step = 4096 }));
		log_queue_take(l);
		for (want = 0; (p = log_queue_next(l)); want++)
			assert_int_equal(p->step, want);
		assert_int_equal(want, 4096);
	}
	log_queue_free(l);
}

struct pusher {
	struct log_queue *lanes;
	int who;
	uint64_t refused;
};

static void *push_points(void *arg)
{
	struct pusher *p = arg;

	for (int i = 0; i < POINTS; i++)
		if (!log_queue_push(p->lanes, &(struct point){ .step = i, .rank = p->who, .wall_time = i }))
			p->refused++;
	return NULL;
}

static void lanes_keep_each_threads_order(void **state)
{
	struct log_queue *l = log_queue_new(64 * 1024);
	struct pusher pushers[THREADS];
	pthread_t threads[THREADS];
	int64_t last[THREADS];
	uint64_t got = 0, refused = 0;
	const struct point *p;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		pushers[i] = (struct pusher){ l, i, 0 };
		last[i] = -1;
		assert_int_equal(pthread_create(&threads[i], NULL, push_points, &pushers[i]), 0);
	}
	for (int round = 0; round < 1000; round++) {
		if (round == 990)
			for (int i = 0; i < THREADS; i++) {
				pthread_join(threads[i], NULL);
				refused += pushers[i].refused;
			}
		log_queue_wait(l, 0);
		log_queue_take(l);
		for (; (p = log_queue_next(l)); got++) {
			assert_true(p->step > last[p->rank]);
			last[p->rank] = p->step;
		}
	}
	assert_int_equal(got + refused, THREADS * POINTS);
	log_queue_free(l);
}

static void *push_two(void *arg)
{
	struct log_queue *l = arg;

	log_queue_push(l, &(struct point){ .wall_time = 1, .step = 1 });
	log_queue_push(l, &(struct point){ .wall_time = 4, .step = 4 });
	return NULL;
}

static void lanes_merge_by_time(void **state)
{
	struct log_queue *l = log_queue_new(4096);
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, push_two, l), 0);
	log_queue_push(l, &(struct point){ .wall_time = 2, .step = 2 });
	log_queue_push(l, &(struct point){ .wall_time = 3, .step = 3 });
	pthread_join(other, NULL);
	log_queue_take(l);
	for (int64_t want = 1; want <= 4; want++)
		assert_int_equal(log_queue_next(l)->step, want);
	assert_null(log_queue_next(l));
	log_queue_free(l);
}

static void *get_keys(void *arg)
{
	const struct key *key;
	const char *why;
	char text[32];

	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "series/%d", i * 7 % 5000);
		if (keys_get(arg, text, &key, &why) || !event_text_equal(key->text, text))
			return "wrong";
	}
	return NULL;
}

static void keys_are_stored_once(void **state)
{
	struct keys *k = keys_new();
	const struct key *a, *b;
	const char *why = NULL;
	pthread_t threads[THREADS];
	void *wrong;

	(void)state;
	assert_int_equal(keys_get(k, "first", &a, &why), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, get_keys, k), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(keys_get(k, "first", &b, &why), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(keys_get(k, "a\tb", &a, &why), ERR_USAGE);
	assert_string_equal(why, "contains a control character");
	assert_int_equal(keys_get(k, NULL, &a, &why), ERR_USAGE);
	keys_free(k);
}

static void keys_end_at_their_limit(void **state)
{
	struct keys *k = keys_new();
	const struct key *key;
	const char *why = NULL;
	char text[32];

	(void)state;
	for (int i = 0; i < LIMIT_keys_per_run; i++) {
		snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(keys_get(k, text, &key, &why), 0);
	}
	assert_int_equal(keys_get(k, "one more", &key, &why), ERR_LIMIT);
	assert_int_equal(keys_get(k, "7", &key, &why), 0);
	keys_free(k);
}

static size_t count_records(const struct buf *b)
{
	struct record rec;
	size_t at = 0, n = 0;

	while (record_next(b->data, b->len, &at, &rec) == RECORD_OK)
		n++;
	assert_int_equal(at, b->len);
	return n;
}

static void the_first_value_of_a_param_wins(void **state)
{
	const struct encode_param lr = { .key = { "lr", 2 }, .type = EVENT_TYPE_F64, .value = 0.1 };
	const struct encode_param other = { .key = { "lr", 2 }, .type = EVENT_TYPE_F64, .value = 0.2 };
	const struct encode_param text = { .key = { "lr", 2 }, .text = { "0.1", 3 } };
	struct records *r = records_new(true);
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	records_take(r, &b, true);
	assert_int_equal(b.len, 0); /* no session without params */
	assert_int_equal(records_param(r, &lr), 0);
	assert_int_equal(records_param(r, &lr), 0);
	assert_int_equal(records_param(r, &other), ERR_EXISTS);
	assert_int_equal(records_param(r, &text), ERR_EXISTS);
	records_take(r, &b, false);
	assert_int_equal(count_records(&b), 1);
	records_end(r, &b, EVENT_FINISHED);
	assert_int_equal(count_records(&b), 1); /* nothing ends that was not started */
	records_take(r, &b, true);
	records_end(r, &b, EVENT_FINISHED);
	assert_int_equal(count_records(&b), 3);
	buf_done(&b);
	records_free(r);
}

static void records_stay_within_their_limit(void **state)
{
	struct records *r = records_new(false);
	static char note[LIMIT_note_bytes];
	struct buf b;
	size_t n = 0;

	(void)state;
	memset(note, 'n', sizeof(note));
	while (!records_note(r, (struct event_text){ note, sizeof(note) }))
		n++;
	assert_in_range(n, 50, LIMIT_records_queued_bytes / LIMIT_note_bytes);
	buf_init(&b, SIZE_MAX / 2);
	records_take(r, &b, true);
	assert_int_equal(count_records(&b), n);
	assert_int_equal(records_note(r, (struct event_text){ note, 1 }), 0);
	buf_done(&b);
	records_free(r);
}

static void count_text(void *user, const char *text)
{
	assert_null(strchr(text, '\n'));
	++*(int *)user;
}

static void warnings_are_printed_once(void **state)
{
	int said = 0;
	struct warn *w = warn_new(count_text, &said);

	(void)state;
	for (int i = 0; i < 3; i++) {
		warn_post(w, WARN_DISK, "full %d", i);
		warn_deliver(w, false);
	}
	assert_int_equal(said, 1);
	warn_post(w, WARN_KEY, "another kind");
	warn_deliver(w, false);
	assert_int_equal(said, 2);
	warn_deliver(w, true);
	warn_deliver(w, true);
	assert_int_equal(said, 3);
	warn_free(w);
}

static void keep_last_text(void *user, const char *text)
{
	snprintf(user, 100, "%s", text);
}

static void a_warning_mentions_those_it_replaced(void **state)
{
	char last[100];
	struct warn *w = warn_new(keep_last_text, last);

	(void)state;
	for (int i = 0; i < 3; i++)
		warn_post(w, WARN_PARAM, "tag %d is lost", i);
	warn_deliver(w, true);
	assert_string_equal(last, "tag 2 is lost (and others)");
	for (int i = 0; i < 3; i++)
		warn_post(w, WARN_PARAM, "the same");
	warn_deliver(w, true);
	assert_string_equal(last, "the same");
	for (int i = 0; i < 3; i++)
		warn_post(w, WARN_QUEUE, "%d points were lost", i);
	warn_deliver(w, true);
	assert_string_equal(last, "2 points were lost");
	warn_free(w);
}

/* Replaces the library's wall clock by one that jumps. */
static long wall_behind_s;

int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	if (!rc && id == CLOCK_REALTIME)
		t->tv_sec -= wall_behind_s;
	return rc;
}

static void run_survives_a_jumping_clock(void **state)
{
	char dir[] = "/tmp/dptrack-test.XXXXXX", remove[64];
	struct dptrack_run *run;
	struct dptrack_error error;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (long leap = -3600; leap <= 3600; leap += 3600) {
		wall_behind_s = leap;
		assert_int_equal(dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = dir }, &error), 0);
		assert_int_equal(dptrack_log(run, 1, "loss", 1), 0);
		assert_int_equal(dptrack_run_close(run, DPTRACK_FINISHED), 0);
	}
	wall_behind_s = 0;
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	assert_int_equal(system(remove), 0);
}

static void names_are_safe(void **state)
{
	char name[FILE_NAME_BYTES], again[FILE_NAME_BYTES], id[NAMES_ID_BYTES];

	(void)state;
	file_name_of(name, "");
	assert_string_equal(name, "_");
	file_name_of(name, "../etc/passwd");
	assert_string_equal(name, "_._etc_passwd");
	for (int i = 0; i < 200; i++) {
		assert_int_equal(names_draw_id(id), 0);
		assert_true(names_is_id(id));
		names_from_id(name, id);
		file_name_of(again, name);
		assert_string_equal(name, again);
	}
	assert_false(names_is_id("0123456789abcdef0123456789abcdeF"));
	assert_false(names_is_id("0123456789abcdef0123456789abcde"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_hold_their_capacity),
		cmocka_unit_test(lanes_keep_each_threads_order),
		cmocka_unit_test(lanes_merge_by_time),
		cmocka_unit_test(keys_are_stored_once),
		cmocka_unit_test(keys_end_at_their_limit),
		cmocka_unit_test(the_first_value_of_a_param_wins),
		cmocka_unit_test(records_stay_within_their_limit),
		cmocka_unit_test(warnings_are_printed_once),
		cmocka_unit_test(a_warning_mentions_those_it_replaced),
		cmocka_unit_test(names_are_safe),
		cmocka_unit_test(run_survives_a_jumping_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
