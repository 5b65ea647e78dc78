/* SPDX-License-Identifier: Apache-2.0 */
/* normal_test.c: many draws at once equal those of rng_normal bit by bit, with every instruction set of this machine.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/graph/rng.h"

#define MANY (1 << 19) /* some of them are uncertain and drawn again */

static const char *const sets[] = { "base", "avx2", "avx512" };

static void compare(int64_t n, struct rng_key key, uint64_t first, double scale)
{
	float *got = test_malloc((size_t)(n + 1) * sizeof(*got));

	for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
		setenv("DPTRAIN_CPU_ISA", sets[s], 1);
		got[n] = 77;
		normal_fill(got, n, key, first, scale);
		assert_true(got[n] == 77);
		for (int64_t i = 0; i < n; i++) {
			float want = (float)(scale * rng_normal(key, first + (uint64_t)i));

			if (memcmp(&got[i], &want, sizeof(want)))
				fail_msg("%s: draw %lld is %.9g, not %.9g", sets[s], (long long)i, (double)got[i],
					 (double)want);
		}
	}
	unsetenv("DPTRAIN_CPU_ISA");
	test_free(got);
}

static void test_many(void **state)
{
	(void)state;
	compare(MANY, (struct rng_key){ 0, rng_stream("transformer.wte.weight") }, 0, 0.02);
	compare(MANY, (struct rng_key){ 0xfedcba9876543210u, rng_stream("conv1.weight") }, 0xfffffff0u, 1.5);
}

static void test_few(void **state)
{
	(void)state;
	for (int64_t n = 0; n < 40; n++)
		compare(n, (struct rng_key){ 7, (uint64_t)n }, (uint64_t)n * 4096, 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_many), cmocka_unit_test(test_few) };

	return cmocka_run_group_tests_name("normal", tests, NULL, NULL);
}
