/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h: antialiased bilinear scaling of 8-bit pictures, row by row. An output pixel is the weighted mean of the
 * source pixels under a triangle two output pixels wide (two source pixels when enlarging), as in Pillow's BILINEAR
 * and torchvision's antialias=True. Independent of files or formats. Not thread-safe. */
#ifndef DPT_DATA_RESIZE_H
#define DPT_DATA_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#define RESIZE_PIXEL_BYTES 4 /* red, green, blue, and a filler */

/* One axis: the source interval [from, from + size) becomes `out` pixels. Pixels outside [begin, end) are ignored. */
struct resize_axis {
	double from, size;
	int begin, end;
	int out;
};

struct resize_opts {
	struct resize_axis x, y;
};

struct resize;

struct resize *resize_new(void);    /* without buffers */
void resize_free(struct resize *r); /* NULL is fine */

/* Prepares for one picture. Buffers only grow. */
void resize_begin(struct resize *r, const struct resize_opts *o);

/* The required source pixels, half open. Rows must be passed from first to last. */
struct resize_need {
	int x0, x1, y0, y1;
};

struct resize_need resize_need(const struct resize *r);

/* Passes the next source row: pixels x0 … x1, with 16 more readable bytes. */
void resize_row(struct resize *r, const uint8_t *pixels);

/* After the last row: returns out.y rows of out.x pixels of RESIZE_PIXEL_BYTES, *ret_stride bytes apart; borrowed
 * until the next begin. */
const uint8_t *resize_result(const struct resize *r, size_t *ret_stride);

#endif
