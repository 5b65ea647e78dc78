/* simd.h: detects AVX2 with fused multiply-add. $DPTRAIN_CPU_ISA=base disables them, here as in the cpu backend.
 * Results are equal either way. */
#ifndef DPT_DATA_SIMD_H
#define DPT_DATA_SIMD_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool simd_avx2(void)
{
#if defined(__x86_64__)
	const char *isa = getenv("DPTRAIN_CPU_ISA");

	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !(isa && !strcmp(isa, "base"));
#else
	return false;
#endif
}

#endif
