/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.h: a Huffman decoder that replaces libjpeg-turbo's, in which most of the time of a JPEG is spent. It
 * yields the same coefficients in about two thirds of the time (ITU-T T.81, annex F.2). If restart markers divide
 * the data, it decodes only the segments of the wanted part. It supports baseline files with one scan; the library
 * decodes all others. Private to jpeg.c. */
#ifndef DPT_DATA_ENTROPY_H
#define DPT_DATA_ENTROPY_H

#include <stdbool.h>
#include <stdio.h> /* for jpeglib.h */

#include <jpeglib.h>

struct entropy;

struct entropy *entropy_new(void);
void entropy_free(struct entropy *e); /* NULL is fine */

/* Wanted pixels of the output; x0 and x1 as jpeg_crop_scanline returned them. */
struct entropy_part {
	int x0, x1, y0, y1;
};

/* Takes over the decoding. Call after jpeg_start_decompress, before the first row is read or skipped, with
 * jpeg_mem_src as the source. Valid until the decompressor is aborted or finished. Sets d->client_data to e. part
 * NULL: everything is wanted. False: unsupported file. Truncated data give the library's warning
 * JWRN_HIT_MARKER, once per segment. */
bool entropy_take(struct entropy *e, struct jpeg_decompress_struct *d, const struct entropy_part *part);

#endif
