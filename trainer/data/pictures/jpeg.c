/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg.c: JPEG through libjpeg-turbo. Only the columns around the wanted ones are transformed, and rows above are
 * skipped. Rows below are not read, unless the file has no end marker: then everything is read, so that a truncated
 * file is always detected. */
#include <setjmp.h>
#include <stdlib.h>

#include <jerror.h>

#include "trainer/data/pictures/codec.h"
#include "trainer/data/pictures/entropy.h"

#define MARGIN 16 /* columns left and right of the wanted ones that smooth chroma upsampling reads, with reserve */
#define TAIL_BYTES 4096 /* an end marker is searched in the last bytes */
/* Offset of a row from malloc's address, deliberately not a multiple of 16. The library writes a vector-aligned row
 * past the caches (movntdq), and scaling it then waits for memory. That cost a quarter of a picture's time in
 * processes where malloc returned such an address. */
#define ROW_OFFSET 8

struct jpeg {
	struct jpeg_error_mgr errors; /* must be first: the library returns this pointer */
	jmp_buf jump;
	char text[JMSG_LENGTH_MAX];
	bool damaged; /* a warning that means lost pixels */
	struct jpeg_decompress_struct d;
	struct entropy *entropy;
	uint8_t *room; /* one row of pixels */
	size_t room_bytes;
};

static void raise_jpeg_error(j_common_ptr common)
{
	struct jpeg *j = (struct jpeg *)(void *)common->err;

	common->err->format_message(common, j->text);
	longjmp(j->jump, 1);
}

static void record_jpeg_warning(j_common_ptr common, int level)
{
	struct jpeg *j = (struct jpeg *)(void *)common->err;
	int code = common->err->msg_code;

	if (level >= 0 || (code != JWRN_JPEG_EOF && code != JWRN_HIT_MARKER))
		return;
	common->err->format_message(common, j->text);
	j->damaged = true;
}

static void jpeg_close(void *state)
{
	struct jpeg *j = state;

	jpeg_destroy_decompress(&j->d);
	entropy_free(j->entropy);
	free(j->room);
}

static bool jpeg_is(const struct picture_input *in)
{
	return in->n > 3 && in->data[0] == 0xff && in->data[1] == 0xd8 && in->data[2] == 0xff;
}

static int fail_damaged_jpeg(const struct jpeg *j, const struct picture_input *in, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%.300s: damaged JPEG: %s", in->name, j->text);
}

static void begin_jpeg(struct jpeg *j, const struct picture_input *in)
{
	j->damaged = false;
	j->text[0] = 0;
	if (!j->d.mem) { /* the first file */
		j->d.err = jpeg_std_error(&j->errors);
		j->errors.error_exit = raise_jpeg_error;
		j->errors.emit_message = record_jpeg_warning;
		jpeg_create_decompress(&j->d);
	}
	if (!j->entropy)
		j->entropy = entropy_new();
	jpeg_abort_decompress(&j->d);
	jpeg_mem_src(&j->d, in->data, in->n);
	jpeg_save_markers(&j->d, JPEG_APP0 + 1, 0xffff);
	jpeg_read_header(&j->d, TRUE);
}

static int jpeg_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	struct jpeg *j = state;

	if (setjmp(j->jump))
		return fail_damaged_jpeg(j, in, err);
	begin_jpeg(j, in);
	*ret = (struct codec_header){
		.width = (int)j->d.image_width, .height = (int)j->d.image_height, .orientation = 1, .scales = true
	};
	for (jpeg_saved_marker_ptr m = j->d.marker_list; m; m = m->next)
		if (m->marker == JPEG_APP0 + 1 && ret->orientation == 1)
			ret->orientation = codec_exif_orientation(m->data, m->data_length);
	return 0;
}

static bool has_jpeg_end(const struct picture_input *in)
{
	size_t n = in->n < TAIL_BYTES ? in->n : TAIL_BYTES;
	const uint8_t *p = in->data + in->n - n;

	for (size_t i = n; i-- > 1;)
		if (p[i - 1] == 0xff && p[i] == 0xd9)
			return true;
	return false;
}

/* Converts CMYK to RGB. inverted: as Adobe's programs write it. */
static void convert_cmyk_row(uint8_t *p, size_t pixels, bool inverted)
{
	for (size_t i = 0; i < pixels; i++, p += 4) {
		unsigned black = inverted ? p[3] : 255u - p[3];

		for (int c = 0; c < 3; c++) {
			unsigned ink = inverted ? p[c] : 255u - p[c];

			p[c] = (uint8_t)((ink * black + 127) / 255);
		}
	}
}

/* Crops the output to the wanted columns. Returns the first column that is delivered. */
static unsigned crop_jpeg_columns(struct jpeg *j, const struct codec_want *w)
{
	JDIMENSION x = w->x0 > MARGIN ? (JDIMENSION)(w->x0 - MARGIN) : 0, end = (JDIMENSION)w->x1 + MARGIN, width;

	if (end > j->d.output_width)
		end = j->d.output_width;
	width = end - x;
	if (x > 0 || width < j->d.output_width)
		jpeg_crop_scanline(&j->d, &x, &width);
	return x;
}

/* x: first delivered column. */
static void read_jpeg_rows(struct jpeg *j, const struct codec_want *w, unsigned x, bool whole)
{
	bool cmyk = j->d.out_color_space == JCS_CMYK;
	JSAMPROW line = j->room + ROW_OFFSET;

	if (w->y0 > 0)
		jpeg_skip_scanlines(&j->d, (JDIMENSION)w->y0);
	for (int y = w->y0; y < w->y1; y++) {
		jpeg_read_scanlines(&j->d, &line, 1);
		if (cmyk)
			convert_cmyk_row(line, j->d.output_width, j->d.saw_Adobe_marker);
		w->row(w->user, line + ((size_t)w->x0 - x) * 4);
	}
	while (whole && j->d.output_scanline < j->d.output_height)
		jpeg_read_scanlines(&j->d, &line, 1);
	jpeg_abort_decompress(&j->d);
}

static void read_jpeg_part(struct jpeg *j, const struct picture_input *in, const struct codec_want *w)
{
	unsigned x = crop_jpeg_columns(j, w);
	struct entropy_part part = { (int)x, (int)(x + j->d.output_width), w->y0, w->y1 };
	bool whole = !has_jpeg_end(in);

	entropy_take(j->entropy, &j->d, whole ? NULL : &part); /* false: the library's own decoder continues */
	read_jpeg_rows(j, w, x, whole);
}

static int jpeg_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct jpeg *j = state;

	if (setjmp(j->jump))
		return fail_damaged_jpeg(j, in, err);
	begin_jpeg(j, in);
	j->d.scale_num = 8u / (unsigned)w->shrink;
	j->d.scale_denom = 8;
	j->d.dct_method = JDCT_ISLOW;
	j->d.out_color_space =
		j->d.jpeg_color_space == JCS_CMYK || j->d.jpeg_color_space == JCS_YCCK ? JCS_CMYK : JCS_EXT_RGBX;
	jpeg_start_decompress(&j->d);
	/* with the bytes that codec.h requires after the last pixel */
	grow_to(&j->room, &j->room_bytes, ROW_OFFSET + ((size_t)j->d.output_width + MARGIN) * 4 + 16);
	read_jpeg_part(j, in, w);
	return j->damaged ? fail_damaged_jpeg(j, in, err) : 0;
}

const struct codec codec_jpeg = {
	.name = "JPEG",
	.is = jpeg_is,
	.state_bytes = sizeof(struct jpeg),
	.close = jpeg_close,
	.header = jpeg_header,
	.rows = jpeg_rows,
};
