/* SPDX-License-Identifier: Apache-2.0 */
/* each.h: compiles the file named by CPU_BODY once per instruction set. That file includes this one and guards its
 * loops with CPU_PASS; the loops' names are wrapped in V(), and simd.h's vectors are lowered to what the set has.
 *
 * Compiling each file several times by the make fragments, with other flags, would take twice as many files (loops
 * apart from what chooses among them), a library for each set, and a header that declares each loop four times; and
 * whatever such a file inlines from a shared header would be compiled for that set too, where the linker may keep that
 * copy for all. Here only what stands between push and pop is.
 *
 * The order of the two includes in each block is part of the meaning: formatters sort them. */
/* clang-format off */
#define CPU_CAT2(a, b) a##b
#define CPU_CAT(a, b) CPU_CAT2(a, b)
#define V(name) CPU_CAT(name, CPU_SUFFIX)
#define CPU_PASS 1

#define CPU_SUFFIX _base
#include "trainer/backends/cpu/simd.h"
#include CPU_BODY
#undef CPU_SUFFIX

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define CPU_SUFFIX _avx2
#define CPU_HAS_AVX2 1
#include "trainer/backends/cpu/simd.h"
#include CPU_BODY
#undef CPU_SUFFIX
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define CPU_SUFFIX _avx512
#define CPU_HAS_AVX512 1
#include "trainer/backends/cpu/simd.h"
#include CPU_BODY
#undef CPU_SUFFIX
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define CPU_SUFFIX _bf16
#define CPU_HAS_BF16 1
#include "trainer/backends/cpu/simd.h"
#include CPU_BODY
#undef CPU_SUFFIX
#undef CPU_HAS_AVX2
#undef CPU_HAS_AVX512
#undef CPU_HAS_BF16
#pragma GCC pop_options
#endif
#undef CPU_PASS
#undef LANES
/* clang-format on */
