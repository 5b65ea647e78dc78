/* SPDX-License-Identifier: Apache-2.0 */
/* tiff.c: the first picture of a TIFF file through libtiff, in every colour space and compression that it converts to
 * 8-bit RGB. It multiplies the colours by alpha. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "trainer/data/pictures/codec.h"

struct tiff_state {
	struct codec_whole whole;
	const struct picture_input *in;
	size_t at;
	char text[160]; /* the library's first message */
	uint32_t width, height;
	uint16_t orientation;
};

static void close_tiff(void *state)
{
	free(((struct tiff_state *)state)->whole.pixels);
}

static bool tiff_is(const struct picture_input *in)
{
	return in->n > 8 && (!memcmp(in->data, "II*\0", 4) || !memcmp(in->data, "MM\0*", 4) ||
			     !memcmp(in->data, "II+\0", 4) || !memcmp(in->data, "MM\0+", 4));
}

/* ---- the library's input ---- */

static tmsize_t read_tiff_input(thandle_t user, void *to, tmsize_t n)
{
	struct tiff_state *s = user;
	size_t left = s->at < s->in->n ? s->in->n - s->at : 0, got = (size_t)n < left ? (size_t)n : left;

	memcpy(to, s->in->data + s->at, got);
	s->at += got;
	return (tmsize_t)got;
}

static tmsize_t refuse_tiff_output(thandle_t user, void *from, tmsize_t n)
{
	(void)user;
	(void)from;
	(void)n;
	return 0;
}

static toff_t seek_tiff_input(thandle_t user, toff_t to, int whence)
{
	struct tiff_state *s = user;

	s->at = (size_t)to + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->in->n : 0);
	return s->at;
}

static int close_tiff_input(thandle_t user)
{
	(void)user;
	return 0;
}

static toff_t size_tiff_input(thandle_t user)
{
	return ((struct tiff_state *)user)->in->n;
}

static int map_tiff_input(thandle_t user, void **ret, toff_t *ret_n)
{
	struct tiff_state *s = user;

	*ret = (void *)(uintptr_t)s->in->data;
	*ret_n = s->in->n;
	return 1;
}

static void unmap_tiff_input(thandle_t user, void *at, toff_t n)
{
	(void)user;
	(void)at;
	(void)n;
}

static int keep_tiff_error(TIFF *t, void *user, const char *module, const char *format, va_list args)
{
	struct tiff_state *s = user;

	(void)t;
	(void)module;
	if (!s->text[0])
		vsnprintf(s->text, sizeof(s->text), format, args);
	return 1;
}

static int ignore_tiff_warning(TIFF *t, void *user, const char *module, const char *format, va_list args)
{
	(void)t;
	(void)user;
	(void)module;
	(void)format;
	(void)args;
	return 1;
}

static TIFF *open_tiff_input(struct tiff_state *s, const struct picture_input *in)
{
	TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
	TIFF *t;

	s->in = in;
	s->at = 0;
	s->text[0] = '\0';
	if (!o)
		return NULL;
	TIFFOpenOptionsSetErrorHandlerExtR(o, keep_tiff_error, s);
	TIFFOpenOptionsSetWarningHandlerExtR(o, ignore_tiff_warning, s);
	TIFFOpenOptionsSetMaxSingleMemAlloc(o, PICTURE_PIXELS_MAX * 8);
	t = TIFFClientOpenExt(in->name, "rm", s, read_tiff_input, refuse_tiff_output, seek_tiff_input, close_tiff_input,
			      size_tiff_input, map_tiff_input, unmap_tiff_input, o);
	TIFFOpenOptionsFree(o);
	return t;
}

/* ---- the codec ---- */

static int fail_damaged_tiff(const struct tiff_state *s, const struct picture_input *in, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%.300s: damaged TIFF%s%s", in->name, s->text[0] ? ": " : "", s->text);
}

static int tiff_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct tiff_state *s = state;
	TIFF *t = open_tiff_input(s, in);
	bool good;

	if (!t)
		return fail_damaged_tiff(s, in, err);
	good = TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &s->width) && TIFFGetField(t, TIFFTAG_IMAGELENGTH, &s->height) &&
	       s->width <= 1 << 20 && s->height <= 1 << 20;
	TIFFGetFieldDefaulted(t, TIFFTAG_ORIENTATION, &s->orientation);
	TIFFClose(t);
	if (!good)
		return fail_damaged_tiff(s, in, err);
	if (s->orientation < 1 || s->orientation > 8)
		s->orientation = ORIENTATION_TOPLEFT;
	*ret = (struct codec_header){ .width = (int)s->width, .height = (int)s->height, .orientation = s->orientation };
	return 0;
}

/* The library writes R, G, B and A into an integer from its lowest byte on. */
static void order_tiff_bytes(struct codec_whole *whole, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t v;

		memcpy(&v, whole->pixels + 4 * i, sizeof(v));
		memcpy(whole->pixels + 4 * i,
		       (uint8_t[]){ (uint8_t)TIFFGetR(v), (uint8_t)TIFFGetG(v), (uint8_t)TIFFGetB(v), 255 }, 4);
	}
}

static int tiff_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct tiff_state *s = state;
	const size_t n = (size_t)s->width * s->height;
	TIFF *t = open_tiff_input(s, in);
	bool good = false;

	codec_whole_begin(&s->whole, (int)s->width, (int)s->height);
	if (t) { /* as stored: picture.c turns it */
		good = TIFFReadRGBAImageOriented(t, s->width, s->height, (uint32_t *)(void *)s->whole.pixels,
						 s->orientation, 1);
		TIFFClose(t);
	}
	if (!good)
		return fail_damaged_tiff(s, in, err);
	order_tiff_bytes(&s->whole, n);
	codec_whole_rows(&s->whole, w);
	return 0;
}

const struct codec codec_tiff = {
	.name = "TIFF",
	.is = tiff_is,
	.state_bytes = sizeof(struct tiff_state),
	.close = close_tiff,
	.header = tiff_header,
	.rows = tiff_rows,
};
