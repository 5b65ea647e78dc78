/* SPDX-License-Identifier: Apache-2.0 */
/* pixels.c: statistics, normalisation and augmentation of one image's pixels. */
#include "trainer/data/pictures/pixels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

bool pixels_avx2(void)
{
#if defined(__x86_64__)
	const char *isa = getenv("DPTRAIN_CPU_ISA");

	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !(isa && !strcmp(isa, "base"));
#else
	return false;
#endif
}


size_t pixels_count(const struct dataset *d)
{
	return (size_t)d->height * (size_t)d->width * (size_t)d->channels;
}

/* Mean and deviation of the levels 0..255 from their counts, in units of 1/255. The sums fit: at most 2^32 images of
 * 2^32 pixels, times 255^2, stay below 2^80. */
void pixels_moments(const uint64_t counts[256], double *ret_mean, double *ret_std)
{
	unsigned __int128 sum = 0, squares = 0, n = 0, spread;

	for (unsigned v = 0; v < 256; v++) {
		n += counts[v];
		sum += (unsigned __int128)counts[v] * v;
		squares += (unsigned __int128)counts[v] * (v * v);
	}
	*ret_mean = (double)sum / (double)n / 255;
	/* n * squares exceeds 128 bits only for more than 2^56 pixels. */
	spread = n * squares - sum * sum;
	*ret_std = spread ? sqrt((double)spread) / (double)n / 255 : 1;
}

void pixels_stats(struct dataset *d, const uint8_t *images, int64_t n)
{
	uint64_t counts[DATASET_CHANNELS_MAX][256] = { { 0 } };
	size_t total = (size_t)n * pixels_count(d), c = (size_t)d->channels;

	for (size_t i = 0; i < total; i += c)
		for (size_t k = 0; k < c; k++)
			counts[k][images[i + k]]++;
	for (size_t k = 0; k < c; k++)
		pixels_moments(counts[k], &d->mean[k], &d->std[k]);
}

/* v*a + b in f32, as deliver_fused computes it. */
static float fused_value(const struct pixels_table *t, int lane, int v)
{
	float high = fmaf((float)v, t->a[0][lane], t->b[0][lane]);

	return high + fmaf((float)v, t->a[1][lane], t->b[1][lane]);
}

/* Splits each factor after 24 bits below the largest value, so that v*a[0] + b[0] is exact. */
static void split_fused_factors(struct pixels_table *t, int channels, const struct dataset_norm *n)
{
	t->fused = PIXELS_LANES % channels == 0;
	for (int i = 0; i < PIXELS_LANES && t->fused; i++) {
		int c = i % channels;
		double a = 1 / (255 * n->std[c]), b = -n->mean[c] / n->std[c];
		double unit = ldexp(1, ilogb(fmax(fabs(b), fabs(255 * a + b))) + 1 - 24);

		t->a[0][i] = (float)(rint(a / unit) * unit);
		t->b[0][i] = (float)(rint(b / unit) * unit);
		t->a[1][i] = (float)(a - t->a[0][i]);
		t->b[1][i] = (float)(b - t->b[0][i]);
		for (int v = 0; v < 256 && t->fused; v++)
			t->fused = fused_value(t, i, v) == t->f32[c][v];
	}
}

void pixels_table(struct pixels_table *ret, int channels, const struct dataset_norm *n)
{
	for (int c = 0; c < channels; c++)
		for (int v = 0; v < 256; v++) {
			ret->f64[c][v] = (v / 255.0 - n->mean[c]) / n->std[c];
			ret->f32[c][v] = (float)ret->f64[c][v];
		}
	split_fused_factors(ret, channels, n);
	ret->fused = ret->fused && pixels_avx2();
}

#define LOOK_UP(type, field)                                                                                           \
	static void look_up_##field(const struct pixels_table *t, const uint8_t *from, size_t n, int channels,         \
				    type *to)                                                                          \
	{                                                                                                              \
		if (channels == 1) {                                                                                   \
			for (size_t i = 0; i < n; i++)                                                                 \
				to[i] = t->field[0][from[i]];                                                          \
			return;                                                                                        \
		}                                                                                                      \
		for (size_t i = 0; i < n; i += (size_t)channels)                                                       \
			for (int c = 0; c < channels; c++)                                                             \
				to[i + (size_t)c] = t->field[c][from[i + (size_t)c]];                                  \
	}

LOOK_UP(float, f32)
LOOK_UP(double, f64)

#if defined(__x86_64__)

/* n: a multiple of PIXELS_LANES elements. */
__attribute__((target("avx2,fma"))) static void deliver_fused(const struct pixels_table *t, const uint8_t *from,
							      size_t n, float *to)
{
	for (size_t i = 0; i < n; i += PIXELS_LANES)
		for (size_t k = 0; k < PIXELS_LANES; k += 8) {
			__m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(from + i + k));
			__m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
			__m256 high = _mm256_fmadd_ps(v, _mm256_loadu_ps(t->a[0] + k), _mm256_loadu_ps(t->b[0] + k));
			__m256 low = _mm256_fmadd_ps(v, _mm256_loadu_ps(t->a[1] + k), _mm256_loadu_ps(t->b[1] + k));

			_mm256_storeu_ps(to + i + k, _mm256_add_ps(high, low));
		}
}

#else

static void deliver_fused(const struct pixels_table *t, const uint8_t *from, size_t n, float *to)
{
	(void)t, (void)from, (void)n, (void)to;
}

#endif

static void deliver_f32(const struct dataset *d, const struct pixels_table *t, const uint8_t *from, float *to)
{
	size_t n = pixels_count(d), fused = t->fused ? n - n % PIXELS_LANES : 0;

	deliver_fused(t, from, fused, to);
	look_up_f32(t, from + fused, n - fused, d->channels, to + fused);
}

static void convert_pixels(const struct dataset *d, const void *from, enum dtype to_type, void *to)
{
	size_t n = pixels_count(d);

	if (d->dtype == to_type)
		memcpy(to, from, n * dtype_bytes(to_type));
	else if (to_type == DTYPE_F64)
		for (size_t i = 0; i < n; i++)
			((double *)to)[i] = ((const float *)from)[i];
	else
		for (size_t i = 0; i < n; i++)
			((float *)to)[i] = (float)((const double *)from)[i];
}

void pixels_deliver(const struct dataset *d, const struct pixels_table *t, const void *from, enum dtype to_type,
		    void *to)
{
	if (d->dtype != DTYPE_U8)
		convert_pixels(d, from, to_type, to);
	else if (to_type == DTYPE_F64)
		look_up_f64(t, from, pixels_count(d), d->channels, to);
	else
		deliver_f32(d, t, from, to);
}

static void mirror_row(uint8_t *row, int width, int channels)
{
	for (int a = 0, b = width - 1; a < b; a++, b--)
		for (int c = 0; c < channels; c++) {
			uint8_t left = row[a * channels + c];

			row[a * channels + c] = row[b * channels + c];
			row[b * channels + c] = left;
		}
}

void pixels_move(const struct dataset *d, struct augment_move draw, const uint8_t *from, uint8_t *to)
{
	size_t row = (size_t)d->width * (size_t)d->channels;
	int shift = draw.dx < 0 ? -draw.dx : draw.dx;
	size_t cut = (size_t)(shift < d->width ? shift : d->width) * (size_t)d->channels;

	for (int y = 0; y < d->height; y++, to += row) {
		int source = y - draw.dy;

		if (source < 0 || source >= d->height) {
			memset(to, 0, row);
			continue;
		}
		memcpy(draw.dx > 0 ? to + cut : to, from + (size_t)source * row + (draw.dx < 0 ? cut : 0), row - cut);
		memset(draw.dx > 0 ? to : to + row - cut, 0, cut);
		if (draw.flip)
			mirror_row(to, d->width, d->channels);
	}
}
