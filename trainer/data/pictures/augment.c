/* SPDX-License-Identifier: Apache-2.0 */
/* augment.c: see augment.h. Colour ops round as torchvision's: products and sums in f32, then truncated. */
#include "trainer/data/pictures/augment.h"

#include <math.h>
#include <string.h>

#define LEVELS 256
#define CHANNELS_MAX 3
#define CROP_PAD 4

enum { AT_MOVE = 0, AT_PART = 64, AT_STEPS = 128, AT_BOX = 192 }; /* the first counter of each kind */

/* ---- draws ---- */

struct rng_key augment_key(uint64_t seed, uint64_t visit, int64_t number)
{
	struct rng_key key = { seed, rng_stream("augment") ^ visit };

	key.stream = rng_u64(key, (uint64_t)number);
	return key;
}

struct augment_move augment_draw_move(struct rng_key key, bool crop, bool flip)
{
	struct augment_move m = { 0 };
	uint32_t bits[4];

	rng_block(key, AT_MOVE, bits);
	if (crop) {
		m.dx = (int)((uint64_t)bits[0] * (2 * CROP_PAD + 1) >> 32) - CROP_PAD;
		m.dy = (int)((uint64_t)bits[1] * (2 * CROP_PAD + 1) >> 32) - CROP_PAD;
	}
	m.flip = flip && bits[2] >> 31;
	return m;
}

struct augment_part augment_draw_part(struct rng_key key, int width, int height)
{
	const double area = (double)width * height, low = log(3.0 / 4), high = log(4.0 / 3);
	const double ratio = (double)width / height;
	struct augment_part p;
	uint64_t at = AT_PART;

	for (int attempt = 0; attempt < 10; attempt++, at += 4) {
		const double share = area * (0.08 + 0.92 * rng_uniform(key, at));
		const double aspect = exp(low + (high - low) * rng_uniform(key, at + 1));

		p.width = rint(sqrt(share * aspect));
		p.height = rint(sqrt(share / aspect));
		if (p.width < 1 || p.height < 1 || p.width > width || p.height > height)
			continue;
		p.x = (double)rng_below(key, at + 2, (uint64_t)(width - p.width) + 1);
		p.y = (double)rng_below(key, at + 3, (uint64_t)(height - p.height) + 1);
		return p;
	}
	p.width = ratio > 4.0 / 3 ? rint(height * 4.0 / 3) : width;
	p.height = ratio < 3.0 / 4 ? rint(width * 4.0 / 3) : height;
	p.x = floor((width - p.width) / 2);
	p.y = floor((height - p.height) / 2);
	return p;
}

struct magnitude_rule {
	double ra, ta; /* the largest magnitude; of translations of RandAugment a share of the size */
	bool is_signed;
};

static const struct magnitude_rule rules[AUGMENT_OPS] = {
	[AUGMENT_SHEAR_X] = { 0.3, 0.99, true },
	[AUGMENT_SHEAR_Y] = { 0.3, 0.99, true },
	[AUGMENT_TRANSLATE_X] = { 150.0 / 331.0, 32, true },
	[AUGMENT_TRANSLATE_Y] = { 150.0 / 331.0, 32, true },
	[AUGMENT_ROTATE] = { 30, 135, true },
	[AUGMENT_BRIGHTNESS] = { 0.9, 0.99, true },
	[AUGMENT_COLOR] = { 0.9, 0.99, true },
	[AUGMENT_CONTRAST] = { 0.9, 0.99, true },
	[AUGMENT_SHARPNESS] = { 0.9, 0.99, true },
	[AUGMENT_POSTERIZE] = { 4, 6, false },
	[AUGMENT_SOLARIZE] = { 1, 1, false },
};

double augment_magnitude(enum augment_policy policy, enum augment_op op, int bin, const struct augment_image *im)
{
	const double share = (double)bin / (AUGMENT_BINS - 1);
	double most = policy == AUGMENT_RA ? rules[op].ra : rules[op].ta;

	if (op == AUGMENT_POSTERIZE)
		return rint(8 - most * share);
	if (op == AUGMENT_SOLARIZE)
		return 1 - share;
	if (policy == AUGMENT_RA && op == AUGMENT_TRANSLATE_X)
		most *= im->width;
	if (policy == AUGMENT_RA && op == AUGMENT_TRANSLATE_Y)
		most *= im->height;
	return most * share;
}

int augment_draw_steps(enum augment_policy policy, struct rng_key key, const struct augment_image *im,
		       struct augment_step ret[AUGMENT_STEPS_MAX])
{
	const int n = policy == AUGMENT_NONE ? 0 : policy == AUGMENT_RA ? AUGMENT_STEPS_MAX : 1;
	uint64_t at = AT_STEPS;

	for (int i = 0; i < n; i++, at += 3) {
		const enum augment_op op = (enum augment_op)rng_below(key, at, AUGMENT_OPS);
		const int bin = policy == AUGMENT_RA ? AUGMENT_RA_BIN : (int)rng_below(key, at + 1, AUGMENT_BINS);
		double magnitude = augment_magnitude(policy, op, bin, im);

		if (rules[op].is_signed && rng_uniform(key, at + 2) <= 0.5)
			magnitude = -magnitude;
		ret[i] = (struct augment_step){ op, magnitude };
	}
	return n;
}

bool augment_draw_box(double probability, struct rng_key key, const struct augment_image *im, struct augment_box *ret)
{
	const double area = (double)im->height * im->width, low = log(0.3), high = log(3.3);
	uint64_t at = AT_BOX;

	if (rng_uniform(key, at++) >= probability)
		return false;
	for (int attempt = 0; attempt < 10; attempt++, at += 4) {
		const double part = area * (0.02 + (0.33 - 0.02) * rng_uniform(key, at));
		const double aspect = exp(low + (high - low) * rng_uniform(key, at + 1));
		const int height = (int)rint(sqrt(part * aspect)), width = (int)rint(sqrt(part / aspect));

		if (height >= im->height || width >= im->width)
			continue;
		*ret = (struct augment_box){ .y = (int)rng_below(key, at + 2, (uint64_t)(im->height - height) + 1),
					     .x = (int)rng_below(key, at + 3, (uint64_t)(im->width - width) + 1),
					     .width = width,
					     .height = height };
		return true;
	}
	return false;
}

/* ---- geometry ---- */

/* Source of a result's centre: (x, y) relative to the image's centre becomes (m[0] x + m[1] y + m[2], m[3] x + …). */
struct affine_map {
	double m[6];
};

/* The inverse of a rotation, then shears (degrees), about a centre that is given relative to the image's centre, and a
 * translation. */
struct affine_change {
	double angle, shear_x, shear_y, translate_x, translate_y, center_x, center_y;
};

static struct affine_map invert_affine(const struct affine_change *c)
{
	const double degree = M_PI / 180, rot = c->angle * degree, sx = c->shear_x * degree, sy = c->shear_y * degree;
	const double a = cos(rot - sy) / cos(sy), b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
	const double d = sin(rot - sy) / cos(sy), e = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
	const double x = -c->center_x - c->translate_x, y = -c->center_y - c->translate_y;

	return (struct affine_map){ { e, -b, e * x - b * y + c->center_x, -d, a, -d * x + a * y + c->center_y } };
}

static double read_pixel(const struct augment_image *im, int64_t x, int64_t y, int channel)
{
	if (x < 0 || y < 0 || x >= im->width || y >= im->height)
		return 0;
	return im->pixels[(y * im->width + x) * im->channels + channel];
}

/* Bilinear samples at (x, y) in pixels; black outside. */
static void sample_pixel(const struct augment_image *im, double x, double y, uint8_t *to)
{
	const int64_t left = (int64_t)floor(x), top = (int64_t)floor(y);
	const double dx = x - (double)left, dy = y - (double)top;

	for (int c = 0; c < im->channels; c++) {
		const double upper = (1 - dx) * read_pixel(im, left, top, c) + dx * read_pixel(im, left + 1, top, c);
		const double lower =
			(1 - dx) * read_pixel(im, left, top + 1, c) + dx * read_pixel(im, left + 1, top + 1, c);

		to[c] = (uint8_t)rint((1 - dy) * upper + dy * lower);
	}
}

static void warp_image(const struct augment_image *im, const struct affine_change *change)
{
	const struct affine_map map = invert_affine(change);
	const double *m = map.m, half_x = im->width / 2.0 - 0.5, half_y = im->height / 2.0 - 0.5;
	uint8_t *to = im->scratch;

	for (int y = 0; y < im->height; y++)
		for (int x = 0; x < im->width; x++, to += im->channels) {
			const double at_x = x - half_x, at_y = y - half_y;
			const double from_x = m[0] * at_x + m[1] * at_y + m[2] + half_x;
			const double from_y = m[3] * at_x + m[4] * at_y + m[5] + half_y;

			if (from_x > -1 && from_y > -1 && from_x < im->width && from_y < im->height)
				sample_pixel(im, from_x, from_y, to);
			else
				memset(to, 0, (size_t)im->channels);
		}
	memcpy(im->pixels, im->scratch, (size_t)(to - im->scratch));
}

static void shear_image(const struct augment_image *im, const struct augment_step *s)
{
	const double angle = atan(s->magnitude) * 180 / M_PI;
	struct affine_change c = { .center_x = -im->width / 2.0, .center_y = -im->height / 2.0 };

	*(s->op == AUGMENT_SHEAR_X ? &c.shear_x : &c.shear_y) = angle;
	warp_image(im, &c);
}

static void translate_image(const struct augment_image *im, const struct augment_step *s)
{
	const double pixels = trunc(s->magnitude);

	warp_image(im, s->op == AUGMENT_TRANSLATE_X ? &(struct affine_change){ .translate_x = pixels }
						    : &(struct affine_change){ .translate_y = pixels });
}

static void rotate_image(const struct augment_image *im, const struct augment_step *s)
{
	warp_image(im, &(struct affine_change){ .angle = -s->magnitude });
}

/* ---- colours ---- */

static size_t count_bytes(const struct augment_image *im)
{
	return (size_t)im->height * (size_t)im->width * (size_t)im->channels;
}

static uint8_t truncate_level(float v)
{
	return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

static float grey_level(const uint8_t *rgb)
{
	float grey = (float)rgb[0] * 0.2989f;

	grey += (float)rgb[1] * 0.587f;
	grey += (float)rgb[2] * 0.114f;
	return floorf(grey);
}

static void scale_brightness(const struct augment_image *im, const struct augment_step *s)
{
	const float factor = (float)(1 + s->magnitude);

	for (size_t i = 0, n = count_bytes(im); i < n; i++)
		im->pixels[i] = truncate_level((float)im->pixels[i] * factor);
}

/* Mixes pixels with their grey values. */
static void scale_saturation(const struct augment_image *im, const struct augment_step *s)
{
	const float factor = (float)(1 + s->magnitude), rest = (float)-s->magnitude;

	for (size_t i = 0, n = count_bytes(im); im->channels == 3 && i < n; i += 3) {
		const float grey = grey_level(im->pixels + i) * rest;

		for (size_t c = 0; c < 3; c++)
			im->pixels[i + c] = truncate_level((float)im->pixels[i + c] * factor + grey);
	}
}

/* Mixes pixels with the mean grey value of the image. */
static void scale_contrast(const struct augment_image *im, const struct augment_step *s)
{
	const size_t n = count_bytes(im), each = (size_t)im->channels;
	const float factor = (float)(1 + s->magnitude), rest = (float)-s->magnitude;
	double sum = 0;
	float mean;

	for (size_t i = 0; i < n; i += each)
		sum += (double)(each == 3 ? grey_level(im->pixels + i) : (float)im->pixels[i]);
	mean = (float)(sum / (double)(n / each)) * rest;
	for (size_t i = 0; i < n; i++)
		im->pixels[i] = truncate_level((float)im->pixels[i] * factor + mean);
}

/* Mixes inner pixels with their blurred values: weights 1/13 of the neighbours, 5/13 of the pixel. */
static void scale_sharpness(const struct augment_image *im, const struct augment_step *s)
{
	const int row = im->width * im->channels;
	const float rest = (float)-s->magnitude;

	if (im->height <= 2 || im->width <= 2)
		return;
	memcpy(im->scratch, im->pixels, count_bytes(im));
	for (int y = 1; y < im->height - 1; y++)
		for (int i = im->channels; i < row - im->channels; i++) {
			const uint8_t *at = im->scratch + (size_t)y * (size_t)row + i;
			int sum = 4 * at[0];
			float blurred;

			for (int dy = -row; dy <= row; dy += row)
				for (int dx = -im->channels; dx <= im->channels; dx += im->channels)
					sum += at[dy + dx];
			blurred = rintf((float)sum / 13);
			im->pixels[at - im->scratch] = truncate_level((float)at[0] + (blurred - (float)at[0]) * rest);
		}
}

static void posterize_image(const struct augment_image *im, const struct augment_step *s)
{
	const int bits = (int)s->magnitude;
	const uint8_t mask = bits >= 8 ? 0xff : (uint8_t)(((1 << bits) - 1) << (8 - bits));

	for (size_t i = 0, n = count_bytes(im); i < n; i++)
		im->pixels[i] &= mask;
}

static void solarize_image(const struct augment_image *im, const struct augment_step *s)
{
	for (size_t i = 0, n = count_bytes(im); i < n; i++)
		if ((float)im->pixels[i] >= (float)(255 * s->magnitude))
			im->pixels[i] = (uint8_t)~im->pixels[i];
}

static void map_levels(const struct augment_image *im, uint8_t table[CHANNELS_MAX][LEVELS])
{
	for (size_t i = 0, n = count_bytes(im); i < n; i += (size_t)im->channels)
		for (int c = 0; c < im->channels; c++)
			im->pixels[i + (size_t)c] = table[c][im->pixels[i + (size_t)c]];
}

static void count_levels(const struct augment_image *im, int64_t counts[CHANNELS_MAX][LEVELS])
{
	memset(counts, 0, CHANNELS_MAX * LEVELS * sizeof(counts[0][0]));
	for (size_t i = 0, n = count_bytes(im); i < n; i += (size_t)im->channels)
		for (int c = 0; c < im->channels; c++)
			counts[c][im->pixels[i + (size_t)c]]++;
}

/* Stretches each channel to all levels. */
static void stretch_contrast(const struct augment_image *im)
{
	int64_t counts[CHANNELS_MAX][LEVELS];
	uint8_t table[CHANNELS_MAX][LEVELS];

	count_levels(im, counts);
	for (int c = 0; c < im->channels; c++) {
		int low = 0, high = LEVELS - 1;
		float scale;

		while (low < high && !counts[c][low])
			low++;
		while (high > low && !counts[c][high])
			high--;
		scale = low == high ? 1 : (float)(high - low) * (float)(1.0 / 255);
		for (int v = 0; v < LEVELS; v++)
			table[c][v] = truncate_level((float)(low == high ? v : v - low) / scale);
	}
	map_levels(im, table);
}

/* Makes the levels of each channel about equally frequent, with Pillow's rule. */
static void equalize_levels(const struct augment_image *im)
{
	int64_t counts[CHANNELS_MAX][LEVELS], pixels = (int64_t)im->height * im->width;
	uint8_t table[CHANNELS_MAX][LEVELS];

	count_levels(im, counts);
	for (int c = 0; c < im->channels; c++) {
		int64_t sum = 0, step;
		int last = LEVELS - 1;

		while (last > 0 && !counts[c][last])
			last--;
		step = (pixels - counts[c][last]) / 255;
		for (int v = 0; v < LEVELS; v++) {
			const int64_t level = step ? (sum + step / 2) / step : v;

			table[c][v] = (uint8_t)(level > 255 ? 255 : level);
			sum += counts[c][v];
		}
		if (step)
			table[c][0] = 0;
	}
	map_levels(im, table);
}

void augment_apply(const struct augment_step *step, const struct augment_image *im)
{
	switch (step->op) {
	case AUGMENT_SHEAR_X:
	case AUGMENT_SHEAR_Y:
		shear_image(im, step);
		break;
	case AUGMENT_TRANSLATE_X:
	case AUGMENT_TRANSLATE_Y:
		translate_image(im, step);
		break;
	case AUGMENT_ROTATE:
		rotate_image(im, step);
		break;
	case AUGMENT_BRIGHTNESS:
		scale_brightness(im, step);
		break;
	case AUGMENT_COLOR:
		scale_saturation(im, step);
		break;
	case AUGMENT_CONTRAST:
		scale_contrast(im, step);
		break;
	case AUGMENT_SHARPNESS:
		scale_sharpness(im, step);
		break;
	case AUGMENT_POSTERIZE:
		posterize_image(im, step);
		break;
	case AUGMENT_SOLARIZE:
		solarize_image(im, step);
		break;
	case AUGMENT_AUTO_CONTRAST:
		stretch_contrast(im);
		break;
	case AUGMENT_EQUALIZE:
		equalize_levels(im);
		break;
	case AUGMENT_IDENTITY:
	case AUGMENT_OPS:
		break;
	}
}

/* ---- erasing ---- */

void augment_erase(const struct augment_box *box, const struct augment_image *im, enum dtype dtype, void *values)
{
	const size_t pixel = (size_t)im->channels * dtype_bytes(dtype);

	for (int y = box->y; y < box->y + box->height; y++)
		memset((char *)values + ((size_t)y * (size_t)im->width + (size_t)box->x) * pixel, 0,
		       (size_t)box->width * pixel);
}
