/* SPDX-License-Identifier: Apache-2.0 */
/* tf32.h: rounding of fp32 factors on tensor cores. */
#ifndef DPT_TESTS_FAKES_CUDA_TF32_H
#define DPT_TESTS_FAKES_CUDA_TF32_H

#include <stdint.h>
#include <string.h>

/* Rounds to 10 bits of mantissa. */
static inline float to_tf32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	bits = (bits + 0x1000) & ~0x1fffu;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

#endif
