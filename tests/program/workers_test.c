/* SPDX-License-Identifier: Apache-2.0 */
/* workers_test.c: --workers auto on simulated machines: it reaches within 6 % of the best fixed number, and does not
 * change afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/program/loading.h"

#define MANY 2000

/* Loading a batch is load_s of a thread's work, of which the share `busy` needs a core; a batch that is not ready when
 * it is needed is loaded by all threads together. */
struct machine {
	double compute_s, load_s, busy;
	int cores, most;
	double crowd; /* slowdown of computing threads per thread that loads ahead */
	bool on_device; /* computing uses no cores */
};

static double batch_s(const struct machine *m, int n, double *ret_wait)
{
	double over = 1 + m->crowd * n; /* cores are shared during computation */
	double ahead = n * m->compute_s * over * (m->on_device ? 1 : 0.5), late;

	if (ahead > m->load_s)
		ahead = m->load_s;
	late = (m->load_s - ahead) / (m->most + 1);
	late *= m->busy * (m->most + 1) / m->cores > 1 ? m->busy * (m->most + 1) / m->cores : 1;
	*ret_wait = late;
	return m->compute_s * over + late;
}

static struct workers run(const struct machine *m, int *ret_batches)
{
	struct workers s;
	unsigned noise = 1;

	workers_init(&s, m->most);
	for (*ret_batches = 0; !s.done && *ret_batches < MANY; ++*ret_batches) {
		double wait, all = batch_s(m, s.n, &wait);

		noise = noise * 1103515245u + 12345u;
		all *= 1 + 0.005 * ((noise >> 16) % 3);
		if (*ret_batches % 24 == 7)
			all *= 5; /* a checkpoint */
		assert_in_range(s.n, 0, m->most);
		workers_batch(&s, wait, all);
	}
	assert_true(s.done);
	return s;
}

static void reaches_nearly_the_best(void **state)
{
	static const struct machine machines[] = {
		{ 1, 0.01, 1, 2, 4, 0.1, false }, { 1, 0.1, 1, 2, 4, 0.1, false }, { 1, 2, 1, 2, 4, 0.5, false },
		{ 0.1, 4, 1, 2, 4, 0.3, false },  { 1, 3, 0.02, 2, 4, 0.01, false }, { 1, 30, 0.02, 2, 4, 0.01, false },
		{ 0.05, 0.8, 1, 16, 32, 0, true }, { 0.05, 0.4, 0.5, 64, 128, 0, true },
		{ 1, 0.9, 1, 1, 4, 0.5, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct machine *m = &machines[i];
		int batches;
		struct workers s = run(m, &batches);
		double wait, got = batch_s(m, s.n, &wait), best = got;

		for (int n = 0; n <= m->most; n++) {
			double t = batch_s(m, n, &wait);

			best = t < best ? t : best;
		}
		if (got > 1.06 * best)
			fail_msg("machine %zu: %d threads, %g s; the best %g s", i, s.n, got, best);
		assert_true(batches < 200);
	}
}

static void little_waiting_adds_no_workers(void **state)
{
	struct workers s;

	(void)state;
	workers_init(&s, 8);
	for (int i = 0; i < WORKERS_SKIPPED + WORKERS_WINDOW - 1; i++)
		assert_false(workers_batch(&s, 0.001, 1));
	assert_true(workers_batch(&s, 0.001, 1));
	assert_true(s.done);
	assert_int_equal(s.n, 0);
	assert_false(workers_batch(&s, 1, 2));
}

static void useless_workers_are_removed(void **state)
{
	struct workers s;

	(void)state;
	workers_init(&s, 8);
	for (int i = 0; !s.done && i < MANY; i++)
		workers_batch(&s, 0.5, 1);
	assert_true(s.done);
	assert_int_equal(s.n, 0);
	assert_true(s.wait_share > 0.49 && s.wait_share < 0.51);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reaches_nearly_the_best),
		cmocka_unit_test(little_waiting_adds_no_workers),
		cmocka_unit_test(useless_workers_are_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
