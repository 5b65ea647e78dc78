/* resize.h: antialiased bilinear scaling of 8-bit pictures, row by row: each output pixel is the mean of the source
 * pixels under a triangle as wide as two output pixels (two source pixels when enlarging), as Pillow's BILINEAR and
 * torchvision's antialias=True compute it. Knows nothing of files or formats. Not for several threads at once. */
#ifndef DPT_DATA_RESIZE_H
#define DPT_DATA_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define RESIZE_PIXEL_BYTES 4 /* red, green, blue, and one that is carried along */

/* One axis: the source interval [from, from + size) becomes `out` pixels; pixels outside [begin, end) are not used. */
struct resize_axis {
	double from, size;
	int begin, end;
	int out;
};

struct resize_opts {
	struct resize_axis x, y;
};

struct resize;

int resize_new(struct resize **ret, struct err *err);
void resize_free(struct resize *r); /* NULL is fine */

/* Prepares for one picture; buffers only ever grow. */
int resize_begin(struct resize *r, const struct resize_opts *o, struct err *err);

/* The source pixels that are needed, half open; rows are fed from first to last. */
struct resize_need {
	int x0, x1, y0, y1;
};

struct resize_need resize_need(const struct resize *r);

/* The next source row: pixels x0 … x1 of it, with 16 more bytes readable behind them. */
void resize_row(struct resize *r, const uint8_t *pixels);

/* After the last row: out.y rows of out.x pixels of RESIZE_PIXEL_BYTES, *ret_stride bytes apart; borrowed until the
 * next begin. */
const uint8_t *resize_result(const struct resize *r, size_t *ret_stride);

#endif
