/* SPDX-License-Identifier: Apache-2.0 */
/* batch_test.c: batch sizes on machines of known speed: when the search stops, its advice, the use of the noise scale.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tracker/insight/tuning.h"

/* A step takes fixed seconds, plus some per sample. Returns how many sizes were tried. */
static int search(struct batch_search *s, double fixed, double each, int64_t largest)
{
	*s = (struct batch_search){ .ranks = 2, .largest = largest, .noise = NAN };
	for (int64_t size = 1; size <= largest; size *= 2)
		if (batch_add(s, size, 2 * (double)size / (fixed + each * (double)size)))
			break;
	return s->n;
}

static void expect(const struct batch_search *s, const char *words)
{
	struct buf text;

	buf_init(&text, 4096);
	batch_sentence(&text, s);
	buf_addc(&text, '\0');
	assert_false(buf_failed(&text));
	if (!strstr(text.data, words))
		fail_msg("no '%s' in: %s", words, text.data);
	buf_done(&text);
}

static void stops_when_flat(void **state)
{
	struct batch_search s;

	(void)state;
	/* 64 samples cost as much as the fixed part: at 2,048 all but 3 % of the limit's rate is reached */
	search(&s, 0.064, 0.001, 1 << 20);
	assert_true(s.size[s.n - 1] < 1 << 14);
	assert_int_equal(s.size[batch_fastest(&s)], 2048);
	expect(&s, "--batch-size 2048: 1939 samples/s; larger sizes are less than 3 % faster; up to 1048576 fit into "
		   "memory");
	expect(&s, "the critical batch size is unknown");
	/* no fixed cost: any size is as good as 1, and two more are tried */
	assert_int_equal(search(&s, 0, 0.001, 1 << 20), 3);
	assert_int_equal(s.size[batch_fastest(&s)], 1);
}

static void is_bounded(void **state)
{
	struct batch_search s;

	(void)state;
	search(&s, 1, 0.001, 16);
	assert_int_equal(s.size[batch_fastest(&s)], 16);
	expect(&s, "the largest that fits");
	search(&s, 1, 0.001, 0);
	assert_int_equal(batch_fastest(&s), -1);
	expect(&s, "no batch size fits");
}

/* A larger size that is slower (caches) neither ends the search at once nor wins. */
static void ignores_a_dip(void **state)
{
	struct batch_search s = { .ranks = 1, .largest = 64, .noise = NAN };

	(void)state;
	assert_false(batch_add(&s, 4, 100));
	assert_false(batch_add(&s, 8, 180));
	assert_false(batch_add(&s, 16, 150));
	assert_false(batch_add(&s, 32, 250));
	assert_false(batch_add(&s, 64, 240));
	assert_true(batch_add(&s, 128, 251));
	assert_int_equal(s.size[batch_fastest(&s)], 32);
}

static void uses_the_noise_scale(void **state)
{
	struct batch_search s;

	(void)state;
	search(&s, 1, 0.001, 64);
	s.noise = 20;
	expect(&s, "the critical batch size is 20 samples, so a step of 128 samples is inefficient: --batch-size 10");
	s.noise = 1;
	expect(&s, "--batch-size 1 ");
	s.noise = 100;
	expect(&s, "close to the 128 of a step");
	s.noise = 1e4;
	expect(&s, "so more than 128 samples a step (more ranks, --grad-accum-steps) would help");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stops_when_flat),
		cmocka_unit_test(is_bounded),
		cmocka_unit_test(ignores_a_dip),
		cmocka_unit_test(uses_the_noise_scale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
