/* tf32.h: what tensor cores make of a factor in fp32. */
#ifndef DPT_TESTS_FAKES_CUDA_TF32_H
#define DPT_TESTS_FAKES_CUDA_TF32_H

#include <stdint.h>
#include <string.h>

/* Rounded to 10 bits behind the point. */
static inline float to_tf32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	bits = (bits + 0x1000) & ~0x1fffu;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

#endif
