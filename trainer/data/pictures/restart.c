/* SPDX-License-Identifier: Apache-2.0 */
/* restart.c: transcodes with libjpeg. A restart marker costs about four bytes: the marker, the padding before it,
 * and the reset predictions after it. Huffman tables optimised for the file recover some of that. */
#include "trainer/data/pictures/picture.h"

#ifdef HAVE_IMAGES

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "tracker/mem/mem.h"

#define MCUS_LEAST 2	  /* between markers: smaller segments cost more than they save */
#define SEGMENT_BYTES 128 /* smallest mean segment */
#define GROWTH 50	  /* a file grows by at most 1/50 */

struct transcoder {
	struct jpeg_error_mgr errors; /* must be first: the library returns this pointer */
	jmp_buf jump;
	bool damaged;
	struct jpeg_decompress_struct from;
	struct jpeg_compress_struct to;
	jvirt_barray_ptr *coefficients;
	struct jpeg_destination_mgr sink;
	uint8_t *out; /* output so far; at the end the whole file */
	size_t room, n;
};

static void raise_transcode_error(j_common_ptr common)
{
	longjmp(((struct transcoder *)(void *)common->err)->jump, 1);
}

static void record_transcode_warning(j_common_ptr common, int level)
{
	if (level < 0)
		((struct transcoder *)(void *)common->err)->damaged = true;
}

static void sink_begin(j_compress_ptr c)
{
	struct transcoder *t = c->client_data;

	t->sink.next_output_byte = t->out;
	t->sink.free_in_buffer = t->room;
}

/* Doubles the full output buffer. */
static boolean sink_grow(j_compress_ptr c)
{
	struct transcoder *t = c->client_data;
	uint8_t *more = mem_realloc(t->out, 2 * t->room);

	t->sink.next_output_byte = more + t->room;
	t->sink.free_in_buffer = t->room;
	t->out = more;
	t->room *= 2;
	return TRUE;
}

static void sink_end(j_compress_ptr c)
{
	struct transcoder *t = c->client_data;

	t->n = t->room - t->sink.free_in_buffer;
}

/* Keeps what affects the display; drops comments, thumbnails and the like. */
static bool is_kept_marker(jpeg_saved_marker_ptr m)
{
	return (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && !memcmp(m->data, "Exif\0\0", 6)) ||
	       (m->marker == JPEG_APP0 + 2 && m->data_length > 12 && !memcmp(m->data, "ICC_PROFILE\0", 12));
}

/* Reads the coefficients. Returns false if they may not reproduce the picture: files of four components may lack the
 * marker for inversion. */
static bool read_jpeg_coefficients(struct transcoder *t, const uint8_t *file, size_t n)
{
	jpeg_mem_src(&t->from, file, n);
	jpeg_save_markers(&t->from, JPEG_APP0 + 1, 0xffff);
	jpeg_save_markers(&t->from, JPEG_APP0 + 2, 0xffff);
	jpeg_read_header(&t->from, TRUE);
	if ((t->from.num_components != 1 && t->from.num_components != 3) ||
	    (int64_t)t->from.image_width * t->from.image_height > PICTURE_PIXELS_MAX)
		return false;
	t->coefficients = jpeg_read_coefficients(&t->from);
	return !t->damaged;
}

static void write_jpeg_coefficients(struct transcoder *t, unsigned interval)
{
	jpeg_copy_critical_parameters(&t->from, &t->to);
	t->to.optimize_coding = TRUE;
	t->to.restart_interval = interval;
	jpeg_write_coefficients(&t->to, t->coefficients);
	for (jpeg_saved_marker_ptr m = t->from.marker_list; m; m = m->next)
		if (is_kept_marker(m))
			jpeg_write_marker(&t->to, m->marker, m->data, m->data_length);
	jpeg_finish_compress(&t->to);
}

/* MCUs per row. In a file with one component an MCU is a block. */
static unsigned count_row_mcus(const struct jpeg_decompress_struct *d)
{
	unsigned width = d->num_components == 1 ? DCTSIZE : (unsigned)d->max_h_samp_factor * DCTSIZE;

	return (d->image_width + width - 1) / width;
}

static unsigned count_column_mcus(const struct jpeg_decompress_struct *d)
{
	unsigned height = d->num_components == 1 ? DCTSIZE : (unsigned)d->max_v_samp_factor * DCTSIZE;

	return (d->image_height + height - 1) / height;
}

/* MCUs per segment of about SEGMENT_BYTES. Prefers a nearby divisor of the row, because a segment that wraps belongs
 * to both rows. */
static unsigned choose_restart_interval(const struct jpeg_decompress_struct *d, size_t n)
{
	unsigned row = count_row_mcus(d), least;
	uint64_t mcus = (uint64_t)row * count_column_mcus(d);

	least = (unsigned)((mcus * SEGMENT_BYTES + n - 1) / n);
	least = least < MCUS_LEAST ? MCUS_LEAST : least;
	for (unsigned k = least; k < 2 * least && k <= row; k++)
		if (row % k == 0)
			return k;
	return least;
}

/* Retries with fewer markers until the file is small enough; the last try is one marker per row. */
static bool write_within_growth(struct transcoder *t, size_t n)
{
	unsigned row = count_row_mcus(&t->from);

	for (unsigned k = choose_restart_interval(&t->from, n);; k *= 2) {
		unsigned interval = k < row ? k : row;

		write_jpeg_coefficients(t, interval);
		if (t->from.progressive_mode || t->n <= n + n / GROWTH)
			return !t->damaged;
		if (interval == row)
			return false;
	}
}

static bool transcode_jpeg(struct transcoder *t, const uint8_t *file, size_t n)
{
	if (setjmp(t->jump))
		return false;
	return read_jpeg_coefficients(t, file, n) && write_within_growth(t, n);
}

static bool open_transcoder(struct transcoder *t, size_t n)
{
	t->from.err = t->to.err = jpeg_std_error(&t->errors);
	t->errors.error_exit = raise_transcode_error;
	t->errors.emit_message = record_transcode_warning;
	if (setjmp(t->jump))
		return false;
	jpeg_create_decompress(&t->from);
	jpeg_create_compress(&t->to);
	t->to.client_data = t;
	t->sink = (struct jpeg_destination_mgr){ .init_destination = sink_begin,
						 .empty_output_buffer = sink_grow,
						 .term_destination = sink_end };
	t->to.dest = &t->sink;
	t->room = n + n / GROWTH + 1024;
	t->out = mem_alloc(t->room);
	return true;
}

int restart_write(const uint8_t *file, size_t n, uint8_t **ret_bytes, size_t *ret_n, struct err *err)
{
	struct transcoder t;
	bool opened, done;

	memset(&t, 0, sizeof(t));
	opened = open_transcoder(&t, n);
	done = opened && transcode_jpeg(&t, file, n);
	jpeg_destroy_compress(&t.to);
	jpeg_destroy_decompress(&t.from);
	if (!done) {
		free(t.out);
		return opened ? 0 : err_set(err, ERR_NOMEM, "libjpeg: out of memory: a JPEG of %zu bytes", n);
	}
	*ret_bytes = t.out;
	*ret_n = t.n;
	return 1;
}

#else

int restart_write(const uint8_t *file, size_t n, uint8_t **ret_bytes, size_t *ret_n, struct err *err)
{
	(void)file, (void)n, (void)ret_bytes, (void)ret_n;
	return err_set(err, ERR_USAGE, "--restart-markers: this program was built without libjpeg");
}

#endif
