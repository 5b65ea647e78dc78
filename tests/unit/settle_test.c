/* settle_test.c: --workers auto on machines that are made up: it comes to within 4 % of the best fixed number, never
 * ends worse than one thread, and stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/engine/settle.h"

#define MANY 2000

/* Computing takes compute_s with all cores; a batch is load_s of a thread's work, of which busy needs a core. */
struct machine {
	double compute_s, load_s, busy;
	int cores;
	double crowd; /* what a thread beyond the cores costs everybody */
};

static double batch_s(const struct machine *m, int n, double *ret_wait)
{
	double over = n + 1 > m->cores ? 1 + m->crowd * (n + 1 - m->cores) : 1;
	double shared = m->compute_s + m->load_s * m->busy / m->cores; /* the cores are full */
	double alone = m->load_s / n;                                  /* every thread as fast as it can */
	double all = (alone > shared ? alone : shared) * over;

	*ret_wait = all > m->compute_s * over ? all - m->compute_s * over : 0;
	return all;
}

static struct settle run(const struct machine *m, int most, int *ret_batches)
{
	struct settle s;
	unsigned noise = 1;

	settle_init(&s, most);
	for (*ret_batches = 0; !s.done && *ret_batches < MANY; ++*ret_batches) {
		double wait, all = batch_s(m, s.n, &wait);

		noise = noise * 1103515245u + 12345u;
		all *= 1 + 0.005 * ((noise >> 16) % 3);
		if (*ret_batches % 24 == 7)
			all *= 5; /* a checkpoint */
		assert_in_range(s.n, 1, most);
		settle_batch(&s, wait, all);
	}
	assert_true(s.done);
	return s;
}

static void comes_near_the_best(void **state)
{
	static const struct machine machines[] = {
		{ 1, 0.1, 1, 2, 0.02 },  { 1, 3, 1, 16, 0.01 },  { 0.1, 4, 1, 2, 0.02 }, { 0.1, 4, 1, 2, 0.3 },
		{ 0.1, 4, 1, 64, 0.01 }, { 1, 8, 0.05, 2, 0 },   { 1, 0.9, 1, 1, 0.5 },  { 0.01, 50, 0.01, 4, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct machine *m = &machines[i];
		int most = 2 * m->cores > 4 ? 2 * m->cores : 4, batches;
		struct settle s = run(m, most, &batches);
		double wait, got = batch_s(m, s.n, &wait), best = batch_s(m, 1, &wait), one = best;

		for (int n = 2; n <= most; n++) {
			double t = batch_s(m, n, &wait);

			best = t < best ? t : best;
		}
		if (got > 1.04 * best || got > one)
			fail_msg("machine %zu: %d threads, %g s; the best %g s, one %g s", i, s.n, got, best, one);
		assert_true(batches < 200);
	}
}

static void little_waiting_adds_nothing(void **state)
{
	struct settle s;

	(void)state;
	settle_init(&s, 8);
	for (int i = 0; i < SETTLE_SKIPPED + SETTLE_WINDOW - 1; i++)
		assert_false(settle_batch(&s, 0.001, 1));
	assert_true(settle_batch(&s, 0.001, 1));
	assert_true(s.done);
	assert_int_equal(s.n, 1);
	assert_false(settle_batch(&s, 1, 2));
}

static void what_does_not_help_is_taken_back(void **state)
{
	struct settle s;

	(void)state;
	settle_init(&s, 8);
	for (int i = 0; !s.done && i < MANY; i++)
		settle_batch(&s, 0.5, 1);
	assert_true(s.done);
	assert_int_equal(s.n, 1);
	assert_true(s.wait_share > 0.49 && s.wait_share < 0.51);
}

static void one_at_most_is_settled_at_once(void **state)
{
	struct settle s;

	(void)state;
	settle_init(&s, 1);
	assert_true(s.done);
	assert_int_equal(s.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_near_the_best),
		cmocka_unit_test(little_waiting_adds_nothing),
		cmocka_unit_test(what_does_not_help_is_taken_back),
		cmocka_unit_test(one_at_most_is_settled_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
