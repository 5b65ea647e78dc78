/* SPDX-License-Identifier: Apache-2.0 */
/* png.c: PNG through libpng. Rows are decoded in order; those above the wanted ones are dropped, because each row
 * depends on the one above it. Interlaced files are decoded whole. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "trainer/data/pictures/codec.h"

struct png {
	jmp_buf jump;
	char text[160];
	const struct picture_input *in;
	size_t at;
	png_structp p;
	png_infop info;
	uint8_t *pixels; /* a row; the whole picture if interlaced */
	size_t pixels_bytes;
	png_bytep *row; /* row pointers, if interlaced */
	size_t row_bytes;
};

static void raise_png_error(png_structp p, png_const_charp text)
{
	struct png *s = png_get_error_ptr(p);

	snprintf(s->text, sizeof(s->text), "%s", text);
	longjmp(s->jump, 1);
}

static void ignore_png_warning(png_structp p, png_const_charp text)
{
	(void)p;
	(void)text;
}

static void read_png_input(png_structp p, png_bytep to, size_t n)
{
	struct png *s = png_get_io_ptr(p);

	if (n > s->in->n - s->at)
		png_error(p, "the file is truncated");
	memcpy(to, s->in->data + s->at, n);
	s->at += n;
}

static void destroy_png_reader(struct png *s)
{
	png_destroy_read_struct(&s->p, &s->info, NULL);
	s->p = NULL;
	s->info = NULL;
}

static void png_close(void *state)
{
	struct png *s = state;

	destroy_png_reader(s);
	free(s->pixels);
	free(s->row);
}

static bool png_is(const struct picture_input *in)
{
	return in->n > 8 && !png_sig_cmp(in->data, 0, 8);
}

static int fail_damaged_png(struct png *s, const struct picture_input *in, struct err *err)
{
	destroy_png_reader(s);
	return err_set(err, ERR_CORRUPT, "%.300s: damaged PNG: %s", in->name, s->text);
}

/* Reads up to the header. Errors longjmp. */
static void begin_png(struct png *s, const struct picture_input *in)
{
	destroy_png_reader(s);
	s->in = in;
	s->at = 0;
	s->text[0] = 0;
	s->p = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, raise_png_error, ignore_png_warning);
	s->info = s->p ? png_create_info_struct(s->p) : NULL;
	if (!s->info) {
		snprintf(s->text, sizeof(s->text), "out of memory");
		longjmp(s->jump, 1);
	}
	png_set_user_limits(s->p, 1 << 20, 1 << 20);
	png_set_chunk_malloc_max(s->p, 8 << 20);
	png_set_read_fn(s->p, s, read_png_input);
	png_read_info(s->p, s->info);
}

/* Finds EXIF's orientation. Its chunk may follow the pixels, so the chunks are walked without decoding. */
static int find_png_orientation(const struct picture_input *in)
{
	size_t at = 8;

	while (in->n - at >= 12) {
		const uint8_t *p = in->data + at;
		size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];

		if (n > in->n - at - 12)
			return 1;
		if (!memcmp(p + 4, "eXIf", 4))
			return codec_exif_orientation(p + 8, n);
		at += n + 12;
	}
	return 1;
}

static int png_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct png *s = state;

	if (setjmp(s->jump))
		return fail_damaged_png(s, in, err);
	begin_png(s, in);
	*ret = (struct codec_header){ .width = (int)png_get_image_width(s->p, s->info),
				      .height = (int)png_get_image_height(s->p, s->info),
				      .orientation = find_png_orientation(in) };
	return 0;
}

/* Sets up the conversion of any type to 8-bit RGB with a filler byte. */
static void convert_png_to_rgbx(struct png *s)
{
	png_byte type = png_get_color_type(s->p, s->info);

	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(s->p);
	if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) {
		png_set_expand_gray_1_2_4_to_8(s->p);
		png_set_gray_to_rgb(s->p);
	}
	png_set_scale_16(s->p);
	if (type & PNG_COLOR_MASK_ALPHA)
		png_set_strip_alpha(s->p);
	png_set_filler(s->p, 255, PNG_FILLER_AFTER);
}

static void allocate_png_rows(struct png *s, bool interlaced)
{
	size_t line = (size_t)png_get_rowbytes(s->p, s->info), n = png_get_image_height(s->p, s->info);

	grow_to(&s->pixels, &s->pixels_bytes, line * (interlaced ? n : 1) + 16);
	if (!interlaced)
		return;
	grow_to(&s->row, &s->row_bytes, n * sizeof(*s->row));
	for (size_t y = 0; y < n; y++)
		s->row[y] = s->pixels + y * line;
}

static bool has_png_end(const struct picture_input *in)
{
	return in->n > 12 && !memcmp(in->data + in->n - 8, "IEND", 4);
}

static void read_png_rows(struct png *s, const struct codec_want *w)
{
	int height = (int)png_get_image_height(s->p, s->info), end = has_png_end(s->in) ? w->y1 : height;

	for (int y = 0; y < end; y++) {
		png_read_row(s->p, s->pixels, NULL);
		if (y >= w->y0 && y < w->y1)
			w->row(w->user, s->pixels + (size_t)w->x0 * 4);
	}
}

static int png_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct png *s = state;
	bool interlaced;

	if (setjmp(s->jump))
		return fail_damaged_png(s, in, err);
	begin_png(s, in);
	convert_png_to_rgbx(s);
	interlaced = png_set_interlace_handling(s->p) > 1;
	png_read_update_info(s->p, s->info);
	allocate_png_rows(s, interlaced);
	if (interlaced)
		png_read_image(s->p, s->row);
	else
		read_png_rows(s, w);
	for (int y = w->y0; interlaced && y < w->y1; y++)
		w->row(w->user, s->row[y] + (size_t)w->x0 * 4);
	destroy_png_reader(s);
	return 0;
}

const struct codec codec_png = {
	.name = "PNG",
	.is = png_is,
	.state_bytes = sizeof(struct png),
	.close = png_close,
	.header = png_header,
	.rows = png_rows,
};
