/* entropy.h: a Huffman decoder that takes the place of libjpeg-turbo's own, where most of the time of a JPEG goes: the
 * same coefficients in about two thirds of the time (ITU-T T.81, annex F.2), and where restart markers cut the data
 * into segments, those alone that the wanted part lies in. It knows baseline files of one scan; every other file stays
 * with the library. Private to jpeg.c. */
#ifndef DPT_DATA_ENTROPY_H
#define DPT_DATA_ENTROPY_H

#include <stdbool.h>
#include <stdio.h> /* for jpeglib.h */

#include <jpeglib.h>

struct entropy;

struct entropy *entropy_new(void); /* NULL: out of memory */
void entropy_free(struct entropy *e); /* NULL is fine */

/* Pixels of the output that will be looked at; x0 and x1 as jpeg_crop_scanline gave them back. */
struct entropy_part {
	int x0, x1, y0, y1;
};

/* Behind jpeg_start_decompress, before the first row is read or skipped, with jpeg_mem_src as the source, and until
 * the decompressor is aborted or finished; d->client_data becomes e. part NULL: everything is wanted. False when the
 * file is not one for this decoder, or there is no memory. Data that end too early are the library's warning
 * JWRN_HIT_MARKER, once a segment. */
bool entropy_take(struct entropy *e, struct jpeg_decompress_struct *d, const struct entropy_part *part);

#endif
