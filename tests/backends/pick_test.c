/* SPDX-License-Identifier: Apache-2.0 */
/* pick_test.c: which of the library's kernels are timed, by their names in every supported version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/backends/cpu/cpu_pick.h"

static void test_worth_trying(void **state)
{
	static const char *const wide[] = { "jit:avx512_core_amx",		/* oneDNN 2.6 */
					    "brgconv_1x1:avx10_1_512_amx",	/* 3.5 and later */
					    "brg_conv_fwd:avx512_core_bf16",
					    "jit_wino_4x3:avx512_core", "x64:gemm:jit" };
	const struct cpu_module has = { .isa = CPU_AVX512_BF16 }, lacks = { .isa = CPU_AVX2 };

	(void)state;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		assert_true(cpu_pick_worth_trying(&has, wide[i]));
	assert_false(cpu_pick_worth_trying(&has, "jit:avx2"));
	assert_true(cpu_pick_worth_trying(&lacks, "jit:avx2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_worth_trying) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
