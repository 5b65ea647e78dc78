/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h: the interface of a picture format: the header, then some rows of some columns as RGBX. Private to the
 * decoders (jpeg.c, png.c, npy.c) and picture.c. */
#ifndef DPT_DATA_CODEC_H
#define DPT_DATA_CODEC_H

#include "trainer/data/pictures/picture.h"

struct codec_header {
	int width, height;
	int orientation; /* EXIF's 1 to 8 */
	bool scales;	 /* supports scales 1/2, 1/4 and 1/8 */
};

/* The rows [y0, y1) and columns [x0, x1) to decode. Each row is passed to `row` with 4 bytes per pixel; 16 bytes
 * after the last pixel must be readable. shrink: 1, 2, 4 or 8; coordinates are in the shrunk picture, whose sides
 * are rounded up. */
struct codec_want {
	int x0, x1, y0, y1;
	int shrink;
	void (*row)(void *user, const uint8_t *pixels);
	void *user;
};

struct codec {
	const char *name;
	bool (*is)(const struct picture_input *in);
	size_t state_bytes;	    /* of the decoder's state, which begins zeroed; its buffers are reused */
	void (*close)(void *state); /* frees what the state holds */
	int (*header)(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err);
	int (*rows)(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err);
};

extern const struct codec codec_jpeg, codec_png, codec_webp, codec_tiff, codec_bmp, codec_pnm, codec_array;

/* Grows *(void **)buffer, of *have bytes, to at least `bytes`; keeps its content. Buffers are reused for every
 * picture. */
void grow_to(void *buffer, size_t *have, size_t bytes);

/* A picture that a codec decodes as a whole: rows of `width` pixels of 4 bytes. The decoder frees pixels. */
struct codec_whole {
	uint8_t *pixels;
	size_t bytes;
	int width, height;
};

void codec_whole_begin(struct codec_whole *p, int width, int height);		/* makes room */
void codec_whole_rows(const struct codec_whole *p, const struct codec_want *w); /* passes the wanted rows */

/* Returns tag 0x0112 of the first directory of an EXIF block (TIFF 6.0), with or without "Exif" before it; 1 if it is
 * missing or invalid. */
int codec_exif_orientation(const uint8_t *p, size_t n);

#endif
