/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h: decodes an image file (JPEG, PNG, WebP, TIFF, BMP, PNM, an array of pixels) to 8-bit RGB of a given
 * size. Decodes only the needed rows and columns, and large JPEGs at a half, a quarter or an eighth of their size if
 * enough pixels remain. Grey, CMYK, palette and 16-bit files become RGB; alpha is dropped; EXIF orientation is applied.
 * Independent of data sets. A decoder reuses its buffers; it is for one thread. */
#ifndef DPT_DATA_PICTURE_H
#define DPT_DATA_PICTURE_H

#include "tracker/base/err.h"

#define PICTURE_PIXELS_MAX (INT64_C(1) << 27) /* per file; checked before any allocation */
#define PICTURE_FILE_MAX ((size_t)1 << 30)

struct picture;

struct picture *picture_new(void);    /* a decoder */
void picture_free(struct picture *p); /* NULL is fine */

/* Returns true for the endings of files that this build reads, in any case. */
bool picture_is_one(const char *name);

/* Returns the ending for a picture's bytes, without a dot: "jpg" also for unknown ones. */
const char *picture_ending(const void *bytes, size_t n);

#define PICTURE_ENDINGS ".jpg .jpeg .png .webp .tif .bmp .ppm"
#define PICTURE_WHY_BYTES 240

/* Returns true for the endings of pictures that this build does not read; *ret: ".webp needs libwebp (Debian: …)…". */
bool picture_unsupported(const char *name, char ret[PICTURE_WHY_BYTES]);

struct picture_size {
	int width, height; /* as shown, after orientation */
};

/* Reads the file and its header, and forgets the previous one. ERR_CORRUPT names the file and the cause. */
int picture_load(struct picture *p, const char *path, struct picture_size *ret, struct err *err);

struct picture_input {
	const char *name; /* for messages */
	const uint8_t *data;
	size_t n;
};

/* The same from memory; the bytes and the name are borrowed until the next load. */
int picture_load_memory(struct picture *p, const struct picture_input *in, struct picture_size *ret, struct err *err);

/* Maps the box (x, y, width, height in pixels of the picture as shown; fractions allowed) to out_width x out_height.
 * cut: ignores pixels outside the box, as if it had been cut out first. */
struct picture_view {
	double x, y, width, height;
	int out_width, out_height;
	bool cut, flip;
};

/* Renders the view: out_height rows of out_width RGB pixels. ERR_CORRUPT: damaged file. */
int picture_render(struct picture *p, const struct picture_view *v, uint8_t *ret, struct err *err);

/* Rewrites a JPEG file with restart markers every few MCUs and the same coefficients (restart.c). A decoder can then
 * read a part of the picture without the data before it (ITU-T T.81, E.1.4). Progressive files become baseline.
 * Returns 1 with *ret_n bytes in *ret_bytes, which the caller frees: the same coefficients, EXIF and colour profile.
 * A baseline file grows by at most 2 %. Returns 0 if the file should stay unchanged: not a JPEG of one or three
 * components, damaged, or it would grow more. ERR_USAGE: built without libjpeg. */
int restart_write(const uint8_t *file, size_t n, uint8_t **ret_bytes, size_t *ret_n, struct err *err);

#endif
