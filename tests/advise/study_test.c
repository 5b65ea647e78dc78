/* SPDX-License-Identifier: Apache-2.0 */
/* study_test.c: the rules and limits that a published study of data parallelism found on machines of 8 A100 40 GB
 * (study.h) must follow from the formulas. Its rules describe two stages. By its own memory rules four stages would
 * fit 13 and 16 B too, and be faster there than FSDP at small batches, which it does not mention (test_four_stages). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/advise/study.h"

#define LOW 256 /* a batch per GPU at which communication is hidden */

static struct hardware ethernet, nvlink;

static const char *const names[] = { "DDP", "FSDP", "PDP-2", "PDP-4" };

static void expect(const struct study_run *r, const struct hardware *h, unsigned allowed)
{
	const int best = study_best(r, h);

	if (best < 0 || !(allowed >> best & 1))
		fail_msg("%s, %d GPUs, batch %lld: best is %s", study_sizes[r->size].name, r->ranks,
			 (long long)r->batch, best < 0 ? "none" : names[best]);
}

static bool fits(int size, int64_t batch, enum study_kind kind, bool offload)
{
	const struct study_run r = { .size = size, .ranks = 32, .batch = batch, .offload = offload };

	return study_cost(&r, kind, &ethernet).fits;
}

static double seconds(int size, int ranks, int64_t batch, enum study_kind kind, const struct hardware *h)
{
	const struct study_run r = { .size = size, .ranks = ranks, .batch = batch };

	return study_cost(&r, kind, h).seconds;
}

enum { DDP = 1 << STUDY_DDP, FSDP = 1 << STUDY_FSDP, PDP = 1 << STUDY_PDP2 | 1 << STUDY_PDP4 };

static void test_winners(void **state)
{
	(void)state;
	for (int s = STUDY_125M; s <= STUDY_6_7B; s++)
		expect(&(struct study_run){ s, 32, 8, 0, false }, &ethernet, PDP);
	for (int s = STUDY_350M; s <= STUDY_2_7B; s++)
		for (int b = 64; b <= 128; b *= 2)
			expect(&(struct study_run){ s, 32, b, 0, false }, &ethernet, DDP);
	for (int s = STUDY_125M; s <= STUDY_2_7B; s++)
		expect(&(struct study_run){ s, 32, 8, 0, false }, &nvlink, DDP);
	for (int b = 64; b <= 128; b *= 2)
		expect(&(struct study_run){ STUDY_6_7B, 32, b, 0, false }, &ethernet, FSDP);
	for (int s = STUDY_13B; s <= STUDY_175B; s++)
		for (int b = 8; b <= 16; b *= 2)
			expect(&(struct study_run){ s, 32, b, 0, false }, &ethernet, FSDP);
	for (int s = STUDY_6_7B; s <= STUDY_34B; s++)
		expect(&(struct study_run){ s, 32, 64, 0, false }, &nvlink, FSDP);
}

/* Our formulas say more than the study here. */
static void test_four_stages(void **state)
{
	(void)state;
	for (int s = STUDY_13B; s <= STUDY_16B; s++) {
		const struct study_run r = { s, 32, 8, 0, false };
		const struct study_result four = study_cost(&r, STUDY_PDP4, &ethernet);

		assert_true(four.fits);
		assert_true(four.seconds < study_cost(&r, STUDY_FSDP, &ethernet).seconds);
	}
}

/* Exposed milliseconds per sample at the batch from which on DDP is faster. */
static double boundary(int size)
{
	for (int64_t b = 8; b <= LOW; b++) {
		const struct study_run r = { size, 32, b, 0, false };

		if (study_best(&r, &ethernet) == STUDY_DDP)
			return 1e3 * study_cost(&r, STUDY_DDP, &ethernet).exposed_s / (double)b;
	}
	return 0;
}

static void test_boundary(void **state)
{
	(void)state;
	for (int s = STUDY_760M; s <= STUDY_2_7B; s++)
		if (boundary(s) < 10 || boundary(s) > 45)
			fail_msg("%s: PDP loses to DDP at %.1f ms per sample", study_sizes[s].name, boundary(s));
}

static void test_one_machine(void **state)
{
	(void)state;
	for (int s = STUDY_125M; s <= STUDY_2_7B; s++)
		for (int b = 8; b <= 16; b *= 2)
			expect(&(struct study_run){ s, 8, b, 0, false }, &ethernet, DDP);
	expect(&(struct study_run){ STUDY_6_7B, 8, 8, 0, false }, &ethernet, FSDP);
}

/* Samples per GPU and second fall with a second machine, and rise with the batch, for every strategy. */
static void test_scaling(void **state)
{
	(void)state;
	for (int s = STUDY_125M; s <= STUDY_1_3B; s++) {
		for (int k = 0; k < STUDY_KINDS; k++) {
			assert_true(seconds(s, 16, 8, k, &ethernet) > 1.2 * seconds(s, 8, 8, k, &ethernet));
			assert_true(seconds(s, 32, 20, k, &ethernet) / 20 < seconds(s, 32, 8, k, &ethernet) / 8);
		}
	}
}

/* Bytes per parameter in the study: 6 if ranks hold it completely, 4 if they hold ranges. */
static void test_memory(void **state)
{
	const double each[STUDY_KINDS] = { 6, 4.0 / 32, 6.0 / 2, 6.0 / 4 };

	(void)state;
	for (int k = 0; k < STUDY_KINDS; k++) {
		const struct study_run small = { STUDY_13B, 32, 1, 0, false }, large = { STUDY_175B, 32, 1, 0, false };
		const double more = study_cost(&large, k, &ethernet).bytes - study_cost(&small, k, &ethernet).bytes;

		/* Gathered, recomputed and queued data grow as well, by far less. */
		assert_true(more >= 0.99 * each[k] * 162e9);
		assert_true(more < 1.2 * each[k] * 162e9);
	}
}

static void test_chunks(void **state)
{
	double bytes = INFINITY, first_s = 0, least_s = INFINITY, last_s = 0;

	(void)state;
	for (int chunks = 4; chunks <= 64; chunks *= 2) {
		const struct study_run r = { STUDY_2_7B, 8, 16, chunks, false };
		const struct study_result c = study_cost(&r, STUDY_PDP4, &ethernet);

		assert_true(c.bytes < bytes);
		bytes = c.bytes;
		first_s = first_s > 0 ? first_s : c.seconds;
		least_s = fmin(least_s, c.seconds);
		last_s = c.seconds;
	}
	assert_true(least_s < first_s);
	assert_true(last_s > 1.02 * least_s);
}

static void test_limits(void **state)
{
	const struct study_run huge = { STUDY_1T, 32, 1, 0, true };

	(void)state;
	assert_true(fits(STUDY_2_7B, 16, STUDY_DDP, false));
	assert_false(fits(STUDY_6_7B, 16, STUDY_DDP, false));
	assert_false(fits(STUDY_16B, 16, STUDY_PDP2, false));
	assert_false(fits(STUDY_34B, 16, STUDY_PDP4, false));
	assert_true(fits(STUDY_175B, 16, STUDY_FSDP, false));
	for (int k = 0; k < STUDY_KINDS; k++) {
		assert_false(fits(STUDY_13B, 256, k, false));
		assert_int_equal(fits(STUDY_1T, 1, k, true), k == STUDY_FSDP);
		assert_false(fits(STUDY_1T, 1, k, false));
	}
	assert_true(study_cost(&huge, STUDY_FSDP, &ethernet).seconds > 1000);
}

static double ratio(int size, int64_t batch, enum study_kind kind, bool offload)
{
	const struct study_run r = { size, 32, batch, 0, offload };

	return study_cost(&r, kind, &ethernet).seconds / study_cost(&r, kind, &nvlink).seconds;
}

static void test_links(void **state)
{
	(void)state;
	for (int s = STUDY_350M; s <= STUDY_2_7B; s++) {
		for (int k = STUDY_DDP; k <= STUDY_FSDP; k++) {
			assert_true(ratio(s, 8, STUDY_PDP2, false) < ratio(s, 8, k, false));
			assert_true(ratio(s, 8, STUDY_PDP4, false) < ratio(s, 8, k, false));
		}
		for (int k = 0; k < STUDY_KINDS; k++) {
			assert_true(ratio(s, 64, k, false) < ratio(s, 8, k, false));
			assert_true(ratio(s, 8, k, false) > ratio(s - 1, 8, k, false));
		}
	}
	for (int s = STUDY_13B; s <= STUDY_81B; s++) /* offloaded from this size on, as in the study */
		assert_true(ratio(s, 8, STUDY_FSDP, true) < ratio(STUDY_6_7B, 8, STUDY_FSDP, false));
	for (int s = STUDY_13B; s <= STUDY_16B; s++) /* both without recomputation */
		assert_true(ratio(s, 8, STUDY_FSDP, true) < ratio(s, 8, STUDY_FSDP, false));
}

static double gain(int size, enum study_kind kind)
{
	struct hardware faster = ethernet;
	double before = seconds(size, 32, 8, kind, &ethernet);

	faster.between.rate *= 1.45;
	return before / seconds(size, 32, 8, kind, &faster);
}

static void test_bandwidth(void **state)
{
	(void)state;
	for (int s = STUDY_350M; s <= STUDY_2_7B; s++) {
		assert_true(gain(s, STUDY_FSDP) > gain(s, STUDY_DDP));
		assert_true(gain(s, STUDY_DDP) > gain(s, STUDY_PDP2));
		assert_true(gain(s, STUDY_PDP2) >= gain(s, STUDY_PDP4));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_winners),	cmocka_unit_test(test_four_stages),
					    cmocka_unit_test(test_boundary),	cmocka_unit_test(test_one_machine),
					    cmocka_unit_test(test_scaling),	cmocka_unit_test(test_memory),
					    cmocka_unit_test(test_chunks),	cmocka_unit_test(test_limits),
					    cmocka_unit_test(test_links),	cmocka_unit_test(test_bandwidth) };
	struct err err = ERR_INIT;
	int failed;

	if (hardware_open(&ethernet, "a100-40gb-x8", &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	nvlink = ethernet;
	nvlink.between = nvlink.within;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hardware_done(&ethernet);
	return failed;
}
