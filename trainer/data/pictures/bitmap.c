/* SPDX-License-Identifier: Apache-2.0 */
/* bitmap.c: BMP files as programs of today write them (1 to 32 bits, bit fields; no runs, no headers of OS/2), and
 * binary PNM files (P5, P6). Needs no library. */
#include <ctype.h>
#include <stdlib.h>

#include "tracker/base/little.h"
#include "trainer/data/pictures/codec.h"

#define SIDE_MAX (1 << 20)

enum bmp_packing { BMP_RGB, BMP_FIELDS = 3, BMP_ALPHA_FIELDS = 6 };

struct bitmap {
	struct codec_whole whole;
	int width, height;
	bool top_down;
	int bits;	  /* bits per pixel */
	unsigned packing; /* enum bmp_packing */
	uint32_t mask[3]; /* masks of red, green and blue */
	const uint8_t *palette; /* four bytes an entry */
	int colors;		/* entries */
	size_t begin;		/* offset of the pixels */
	unsigned maximum;	/* PNM: the largest value of a sample */
};

static void bitmap_close(void *state)
{
	free(((struct bitmap *)state)->whole.pixels);
}

static int fail_damaged_bitmap(const struct picture_input *in, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%.300s: damaged picture: %s", in->name, what);
}

/* ---- BMP ---- */

static bool bmp_is(const struct picture_input *in)
{
	return in->n > 26 && in->data[0] == 'B' && in->data[1] == 'M';
}

/* Sets the default masks, or reads those of bit fields, which follow the 40 bytes of the header or are a part of it. */
static bool read_bmp_masks(struct bitmap *b, const struct picture_input *in)
{
	static const uint32_t masks16[] = { 0x7c00, 0x03e0, 0x001f }, masks32[] = { 0xff0000, 0xff00, 0xff };

	memcpy(b->mask, b->bits == 16 ? masks16 : masks32, sizeof(b->mask));
	if (b->packing != BMP_FIELDS && b->packing != BMP_ALPHA_FIELDS)
		return true;
	if (in->n < 14 + 40 + 12 || (b->bits != 16 && b->bits != 32))
		return false;
	for (size_t i = 0; i < 3; i++)
		b->mask[i] = little_get_u32(in->data + 14 + 40 + 4 * i);
	return true;
}

/* Reads the header. False: it is of an unknown kind. */
static bool read_bmp_sizes(struct bitmap *b, const struct picture_input *in)
{
	const uint8_t *p = in->data;
	const size_t header = little_get_u32(p + 14);
	int32_t height;
	size_t colors;

	b->begin = little_get_u32(p + 10);
	if (header < 40 || header > 256 || in->n < 14 + header)
		return false;
	b->width = (int)little_get_u32(p + 18);
	height = (int32_t)little_get_u32(p + 22);
	b->bits = little_get_u16(p + 28);
	b->packing = little_get_u32(p + 30);
	colors = little_get_u32(p + 46);
	b->top_down = height < 0;
	b->height = height < 0 && height > -SIDE_MAX ? -height : height;
	b->palette = p + 14 + header;
	if (b->width < 1 || b->width > SIDE_MAX || b->height < 1 || b->height > SIDE_MAX)
		return false;
	if (b->bits <= 8) {
		b->colors = colors && colors <= 256 ? (int)colors : 1 << b->bits;
		if (14 + header + (size_t)b->colors * 4 > in->n)
			b->colors = (int)((in->n - 14 - header) / 4);
	}
	return read_bmp_masks(b, in);
}

static int fail_old_bmp(const struct picture_input *in, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "%.300s: a BMP of a kind that is not read (runs, or a header of OS/2): convert it to PNG",
		       in->name);
}

static int bmp_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct bitmap *b = state;
	bool known;

	b->palette = NULL;
	b->colors = 0;
	if (!read_bmp_sizes(b, in))
		return fail_old_bmp(in, err);
	known = (b->packing == BMP_RGB &&
		 (b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 || b->bits == 32)) ||
		b->packing == BMP_FIELDS || b->packing == BMP_ALPHA_FIELDS;
	if (!known || b->begin < 14 || b->begin > in->n)
		return fail_old_bmp(in, err);
	*ret = (struct codec_header){ .width = b->width, .height = b->height, .orientation = 1 };
	return 0;
}

static void put_bmp_color(const struct bitmap *b, unsigned index, uint8_t *to)
{
	const uint8_t *c = index < (unsigned)b->colors ? b->palette + (size_t)index * 4 : NULL;

	to[0] = c ? c[2] : 0;
	to[1] = c ? c[1] : 0;
	to[2] = c ? c[0] : 0;
	to[3] = 255;
}

/* Extracts the bits of a mask, scaled to 0 … 255. */
static uint8_t read_masked_value(uint32_t pixel, uint32_t mask)
{
	int shift = mask ? __builtin_ctz(mask) : 0;
	uint32_t most = mask >> shift;

	return most ? (uint8_t)(((uint64_t)((pixel & mask) >> shift) * 255 + most / 2) / most) : 0;
}

static uint8_t *bitmap_row(const struct bitmap *b, int y)
{
	return b->whole.pixels + (size_t)(b->top_down ? y : b->height - 1 - y) * (size_t)b->width * 4;
}

static void unpack_bmp_row(const struct bitmap *b, const uint8_t *from, uint8_t *to)
{
	for (int x = 0; x < b->width; x++, to += 4) {
		if (b->bits <= 8) {
			const int per = 8 / b->bits, shift = 8 - b->bits * (x % per + 1);

			put_bmp_color(b, from[x / per] >> shift & ((1u << b->bits) - 1), to);
		} else if (b->bits == 24) {
			memcpy(to, (uint8_t[]){ from[3 * x + 2], from[3 * x + 1], from[3 * x], 255 }, 4);
		} else {
			uint32_t v =
				b->bits == 16 ? little_get_u16(from + 2 * x) : little_get_u32(from + 4 * (size_t)x);

			for (int c = 0; c < 3; c++)
				to[c] = read_masked_value(v, b->mask[c]);
			to[3] = 255;
		}
	}
}

static int bmp_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct bitmap *b = state;
	const size_t line = ((size_t)b->width * (size_t)b->bits + 31) / 32 * 4;

	codec_whole_begin(&b->whole, b->width, b->height);
	if ((in->n - b->begin) / line < (size_t)b->height &&
	    in->n - b->begin < line * (size_t)(b->height - 1) + ((size_t)b->width * (size_t)b->bits + 7) / 8)
		return fail_damaged_bitmap(in, "the BMP is truncated", err);
	for (int y = 0; y < b->height; y++)
		unpack_bmp_row(b, in->data + b->begin + (size_t)y * line, bitmap_row(b, y));
	codec_whole_rows(&b->whole, w);
	return 0;
}

const struct codec codec_bmp = {
	.name = "BMP",
	.is = bmp_is,
	.state_bytes = sizeof(struct bitmap),
	.close = bitmap_close,
	.header = bmp_header,
	.rows = bmp_rows,
};

/* ---- PNM ---- */

static bool pnm_is(const struct picture_input *in)
{
	return in->n > 8 && in->data[0] == 'P' && (in->data[1] == '5' || in->data[1] == '6') && isspace(in->data[2]);
}

/* Reads the next number of the header after blanks and comments; -1: none. */
static int read_pnm_number(const struct picture_input *in, size_t *at)
{
	int v = 0, digits = 0;

	while (*at < in->n && (isspace(in->data[*at]) || in->data[*at] == '#'))
		if (in->data[(*at)++] == '#')
			while (*at < in->n && in->data[*at] != '\n')
				++*at;
	for (; *at < in->n && isdigit(in->data[*at]) && digits < 8; ++*at, digits++)
		v = 10 * v + in->data[*at] - '0';
	return digits ? v : -1;
}

static int pnm_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct bitmap *b = state;
	size_t at = 2;
	int maximum;

	b->width = read_pnm_number(in, &at);
	b->height = read_pnm_number(in, &at);
	maximum = read_pnm_number(in, &at);
	if (b->width < 1 || b->height < 1 || b->width > SIDE_MAX || b->height > SIDE_MAX || maximum < 1 ||
	    maximum > 65535 || at >= in->n)
		return fail_damaged_bitmap(in, "unknown kind of PNM", err);
	b->bits = (in->data[1] == '6' ? 3 : 1) * (maximum > 255 ? 16 : 8);
	b->maximum = (unsigned)maximum;
	b->begin = at + 1;
	b->top_down = true;
	*ret = (struct codec_header){ .width = b->width, .height = b->height, .orientation = 1 };
	return 0;
}

/* Decodes 8-bit or 16-bit samples, scaled to 0 … 255. */
static int pnm_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct bitmap *b = state;
	const size_t n = (size_t)b->width * (size_t)b->height, bytes = b->maximum > 255 ? 2 : 1;
	const size_t step = (size_t)b->bits / 8, channels = step / bytes;
	const uint8_t *from = in->data + b->begin;

	codec_whole_begin(&b->whole, b->width, b->height);
	if ((in->n - b->begin) / step < n)
		return fail_damaged_bitmap(in, "the PNM is truncated", err);
	for (size_t i = 0; i < n; i++, from += step)
		for (size_t c = 0; c < 4; c++) {
			const uint8_t *s = from + (channels == 3 && c < 3 ? c : 0) * bytes;
			unsigned v = bytes == 2 ? (unsigned)s[0] << 8 | s[1] : s[0];

			v = v < b->maximum ? v : b->maximum;
			b->whole.pixels[4 * i + c] = (uint8_t)((v * 255 + b->maximum / 2) / b->maximum);
		}
	codec_whole_rows(&b->whole, w);
	return 0;
}

const struct codec codec_pnm = {
	.name = "PNM",
	.is = pnm_is,
	.state_bytes = sizeof(struct bitmap),
	.close = bitmap_close,
	.header = pnm_header,
	.rows = pnm_rows,
};
