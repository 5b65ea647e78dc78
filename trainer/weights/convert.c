/* convert.c: converts elements of every safetensors type to doubles; data may be unaligned. */
#include <math.h>
#include <string.h>

#include "trainer/weights/safetensors.h"

static double from_f16(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	double v;

	if (exponent == 31)
		v = fraction ? NAN : INFINITY;
	else
		v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
	return h >> 15 ? -v : v;
}

static double from_bf16(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

#define CONVERT(type, expression)                                     \
	for (int64_t i = 0; i < n; i++) {                             \
		type v;                                               \
                                                                      \
		memcpy(&v, at + (size_t)i * sizeof(v), sizeof(v));    \
		ret[i] = (double)(expression);                        \
	}                                                             \
	return

void safetensors_f64(const struct st_tensor *t, int64_t first, int64_t n, double *ret)
{
	const char *at = (const char *)t->data + (size_t)first * st_dtype_bytes(t->dtype);

	switch (t->dtype) {
	case ST_F64: CONVERT(double, v);
	case ST_F32: CONVERT(float, v);
	case ST_F16: CONVERT(uint16_t, from_f16(v));
	case ST_BF16: CONVERT(uint16_t, from_bf16(v));
	case ST_I64: CONVERT(int64_t, v);
	case ST_I32: CONVERT(int32_t, v);
	case ST_I16: CONVERT(int16_t, v);
	case ST_I8: CONVERT(int8_t, v);
	case ST_U64: CONVERT(uint64_t, v);
	case ST_U32: CONVERT(uint32_t, v);
	case ST_U16: CONVERT(uint16_t, v);
	case ST_U8: CONVERT(uint8_t, v);
	case ST_BOOL: CONVERT(uint8_t, v != 0);
	case ST_DTYPE_COUNT: break;
	}
}
