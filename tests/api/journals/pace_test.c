/* SPDX-License-Identifier: Apache-2.0 */
/* pace_test.c: the interval at which senders of journals are told to send, compared with simulated senders that obey
 * it, on a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "web/api/api.h"

#define SENDERS_MAX 20000

static uint64_t due_ms[SENDERS_MAX];
static uint64_t drawn = 1;

/* 0 .. 999 */
static uint64_t draw(void)
{
	drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (drawn >> 33) % 1000;
}

/* Simulates the senders, each a random quarter of the interval early or late; returns the posts of the last 60 s. */
static unsigned run(struct journal_pace *p, uint64_t *now_ms, unsigned senders, unsigned seconds, uint64_t wait_ms)
{
	uint64_t end = *now_ms + seconds * UINT64_C(1000);
	unsigned i, posts = 0;

	for (i = 0; i < senders; i++)
		due_ms[i] = *now_ms + draw();
	for (; *now_ms < end; *now_ms += 10) {
		for (i = 0; i < senders; i++) {
			if (due_ms[i] > *now_ms)
				continue;
			journal_pace_note(p, *now_ms, wait_ms);
			posts += *now_ms + 60000 >= end;
			due_ms[i] = *now_ms + (uint64_t)(journal_pace_interval_s(p) * (double)(750 + draw() / 2));
		}
	}
	return posts;
}

static void test_few_send_every_half_second(void **state)
{
	struct journal_pace p = { 0 };
	uint64_t now = 1000000;

	(void)state;
	assert_true(journal_pace_interval_s(&p) == 0.5);
	run(&p, &now, 50, 90, 5);
	assert_true(journal_pace_interval_s(&p) == 0.5);
}

/* Holds for any number of senders, up to the longest interval; the interval falls when they leave. */
static void test_many_share_the_capacity(void **state)
{
	static const unsigned counts[] = { 300, 2000, 7000 };
	uint64_t now = 1000000;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		struct journal_pace p = { 0 };
		unsigned posts = run(&p, &now, counts[i], 300, 5);

		assert_in_range(posts, JOURNAL_PACE_POSTS_PER_S * 60 / 2, JOURNAL_PACE_POSTS_PER_S * 60 * 3 / 2);
		run(&p, &now, 20, 300, 5);
		assert_true(journal_pace_interval_s(&p) == 0.5);
	}
}

static void test_slow_storing_slows_senders(void **state)
{
	struct journal_pace p = { 0 };
	uint64_t now = 1000000;

	(void)state;
	run(&p, &now, 50, 60, 2000);
	assert_true(journal_pace_interval_s(&p) == 8);
	run(&p, &now, 50, 60, 60000);
	assert_true(journal_pace_interval_s(&p) == JOURNAL_PACE_MOST_MS / 1000.0);
	run(&p, &now, 50, 300, 5);
	assert_true(journal_pace_interval_s(&p) == 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_send_every_half_second),
		cmocka_unit_test(test_many_share_the_capacity),
		cmocka_unit_test(test_slow_storing_slows_senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
