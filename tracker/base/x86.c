/* SPDX-License-Identifier: Apache-2.0 */
/* x86.c: asks cpuid; not every compiler that builds the wheels has __builtin_cpu_supports. */
#include "tracker/base/x86.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <stdatomic.h>

enum {
	ASKED = 0x100,
	ZMM_STATE = 0xe6, /* of XCR0: the system saves the registers of SSE, AVX and AVX-512 */
};

static bool system_saves_zmm(void)
{
	unsigned low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & ZMM_STATE) == ZMM_STATE;
}

static unsigned ask_processor(void)
{
	unsigned a, b, c, d, basic, sets = ASKED;

	if (!__get_cpuid(1, &a, &b, &basic, &d))
		return sets;
	if (basic & bit_SSE4_2)
		sets |= X86_CRC32;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return sets;
	if ((basic & bit_SSE4_1) && (b & bit_SHA))
		sets |= X86_SHA;
	if ((sets & X86_CRC32) && (basic & bit_PCLMUL) && (b & bit_AVX512F) && (c & bit_VPCLMULQDQ) &&
	    (basic & bit_OSXSAVE) && system_saves_zmm())
		sets |= X86_FOLD;
	return sets;
}

/* Asked once: in a virtual machine cpuid takes longer than many blocks. Threads may race; they find the same. */
bool x86_has(enum x86_set set)
{
	static _Atomic unsigned known;
	unsigned sets = atomic_load_explicit(&known, memory_order_relaxed);

	if (!sets) {
		sets = ask_processor();
		atomic_store_explicit(&known, sets, memory_order_relaxed);
	}
	return sets & set;
}
#else
bool x86_has(enum x86_set set)
{
	(void)set;
	return false;
}
#endif
