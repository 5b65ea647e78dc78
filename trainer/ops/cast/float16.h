/* SPDX-License-Identifier: Apache-2.0 */
/* float16.h: the two 16-bit float types as bits (IEEE 754 binary16 and the upper half of binary32), rounded to nearest
 * even. NaN stays NaN; values out of range become infinities. Conversions to 16 bits go through f32. */
#ifndef DPT_OPS_FLOAT16_H
#define DPT_OPS_FLOAT16_H

#include <string.h>

#include "trainer/graph/host_device.h"
#include "trainer/graph/graph.h"

HOST_DEVICE_INLINE uint32_t float_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

HOST_DEVICE_INLINE float float_from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

HOST_DEVICE_INLINE float bf16_to_float(uint16_t b)
{
	return float_from_bits((uint32_t)b << 16);
}

HOST_DEVICE_INLINE uint16_t bf16_from_float(float f)
{
	uint32_t u = float_bits(f);

	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

HOST_DEVICE_INLINE float f16_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;

	if (exponent == 31)
		return float_from_bits(sign | 0x7f800000u | mantissa << 13);
	if (exponent == 0) /* multiples of 2^-24 */
		return sign ? -(float)mantissa * 0x1p-24f : (float)mantissa * 0x1p-24f;
	return float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

HOST_DEVICE_INLINE uint16_t f16_from_float(float f)
{
	uint32_t u = float_bits(f), a = u & 0x7fffffffu;
	uint16_t sign = (uint16_t)(u >> 16 & 0x8000);

	if (a > 0x7f800000u)
		return sign | 0x7e00;
	if (a >= 0x477ff000u) /* from 65520 on rounds to infinity */
		return sign | 0x7c00;
	if (a < 0x38800000u) { /* below 2^-14: adding 0.5 rounds to a multiple of 2^-24, in the lowest bits */
		a = float_bits(float_from_bits(a) + 0.5f) - 0x3f000000u;
		return sign | (uint16_t)a;
	}
	a += 0xfff + (a >> 13 & 1);
	return sign | (uint16_t)((a - 0x38000000u) >> 13);
}

/* Element i of an array of float type t. */
static inline double float_get(const void *p, enum dtype t, int64_t i)
{
	switch (t) {
	case DTYPE_F64:
		return ((const double *)p)[i];
	case DTYPE_F32:
		return ((const float *)p)[i];
	case DTYPE_BF16:
		return bf16_to_float(((const uint16_t *)p)[i]);
	default:
		return f16_to_float(((const uint16_t *)p)[i]);
	}
}

static inline void float_put(void *p, enum dtype t, int64_t i, double v)
{
	switch (t) {
	case DTYPE_F64:
		((double *)p)[i] = v;
		break;
	case DTYPE_F32:
		((float *)p)[i] = (float)v;
		break;
	case DTYPE_BF16:
		((uint16_t *)p)[i] = bf16_from_float((float)v);
		break;
	default:
		((uint16_t *)p)[i] = f16_from_float((float)v);
	}
}

#endif
