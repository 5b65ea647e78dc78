/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h: vectors in the compiler's own notation: those of simd.h under names without an instruction set, and those of
 * 16 lanes for AVX-512 code. The _u types may be at any element's address. */
#ifndef DPT_BACKENDS_CPU_VEC_H
#define DPT_BACKENDS_CPU_VEC_H

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trainer/backends/cpu/cpu.h"

typedef float v16 __attribute__((vector_size(64)));
typedef uint32_t v16u __attribute__((vector_size(64)));
typedef uint16_t v16h __attribute__((vector_size(32)));
typedef uint16_t v32h __attribute__((vector_size(64)));

typedef uint16_t v16h_u __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint16_t v32h_u __attribute__((vector_size(64), aligned(2), may_alias));

#define LANES_MOST 16 /* the largest LANES of simd.h, for layouts that are computed before a set is chosen */
#define VEC_INLINE static inline __attribute__((always_inline, unused))

/* The types and functions of simd.h under short names; V() gives each instruction set its own. */
#define vf V(vf)
#define vi V(vi)
#define vu V(vu)
#define vh V(vh)
#define vb V(vb)
#define vd V(vd)
#define vhalf V(vhalf)
#define vf_u V(vf_u)
#define vh_u V(vh_u)
#define vb_u V(vb_u)
#define vlane V(vlane)
#define vsum_d V(vsum_d)
#define vset V(vset)
#define vload V(vload)
#define vstore V(vstore)
#define vstore_past V(vstore_past)
#define vpast_end V(vpast_end)
#define vload_n V(vload_n)
#define vstore_n V(vstore_n)
#define vload_any V(vload_any)
#define vstore_any V(vstore_any)
#define vblend V(vblend)
#define vsum V(vsum)
#define vmax_lane V(vmax_lane)
#define vexp V(vexp)
#define vcap V(vcap)
#define vscale V(vscale)
#define vsqrt V(vsqrt)
#define vmin V(vmin)
#define vmax V(vmax)
#define vto_bf16 V(vto_bf16)
#define vkeep_gt V(vkeep_gt)
#define vrelu V(vrelu)
#define vbest V(vbest)
#define vadd_where V(vadd_where)
#define vturn V(vturn)

/* The loop of an element-wise op (struct cpu_elems) with V(name##_one)(a, b); with one input, b is a. */
#define CPU_ELEMS_LOOP(name)                                                                                           \
	VEC_INLINE void V(name##_range)(const struct cpu_elems *e, struct cpu_range r, bool bf, bool two)              \
	{                                                                                                              \
		for (int64_t i = r.begin; i < r.end; i += LANES) {                                                     \
			vf a = vload_any(e->a, i, r.end - i, bf);                                                      \
			vf b = two ? vload_any(e->b, i, r.end - i, bf) : a;                                            \
                                                                                                                       \
			vstore_any(e->y, i, V(name##_one)(a, b), r.end - i, bf);                                       \
		}                                                                                                      \
	}                                                                                                              \
	static void V(name)(void *arg, int part, int parts)                                                            \
	{                                                                                                              \
		const struct cpu_elems *e = arg;                                                                       \
		struct cpu_range r = cpu_split(e->count, 2 * LANES, part, parts);                                      \
                                                                                                                       \
		if (e->b)                                                                                              \
			e->bf16 ? V(name##_range)(e, r, true, true) : V(name##_range)(e, r, false, true);              \
		else                                                                                                   \
			e->bf16 ? V(name##_range)(e, r, true, false) : V(name##_range)(e, r, false, false);            \
	}

#endif
