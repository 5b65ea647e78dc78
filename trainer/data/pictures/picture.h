/* picture.h: an image file (JPEG, PNG, an array of pixels) to 8-bit RGB of the size that is asked for. Only the rows
 * and columns that are needed are decoded, large JPEGs at half, a quarter or an eighth of their size where that leaves
 * enough pixels. Grey, CMYK, palette and 16-bit files become RGB, alpha is dropped, EXIF's orientation is applied.
 * Knows nothing of data sets. A decoder keeps its buffers from file to file and is used by one thread. */
#ifndef DPT_DATA_PICTURE_H
#define DPT_DATA_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define PICTURE_PIXELS_MAX (INT64_C(1) << 27) /* of a file; checked before anything is allocated */
#define PICTURE_FILE_MAX ((size_t)1 << 30)

struct picture;

int picture_new(struct picture **ret, struct err *err);
void picture_free(struct picture *p); /* NULL is fine */

/* Whether a file of that name is read here, by its ending in any case: .jpg .jpeg .png. */
bool picture_is_one(const char *name);

struct picture_size {
	int width, height; /* as shown: with the orientation applied */
};

/* Reads the file and its header; what was loaded before is forgotten. ERR_CORRUPT names the file and what is wrong. */
int picture_load(struct picture *p, const char *path, struct picture_size *ret, struct err *err);
/* The same over bytes in memory (borrowed until the next load), `name` for messages. */
int picture_load_memory(struct picture *p, const char *name, const void *bytes, size_t n, struct picture_size *ret,
			struct err *err);

/* What becomes of a picture: the box (x, y, width, height in pixels of the picture as shown; fractions are allowed)
 * becomes out_width x out_height; where `cut` is set nothing beside the box is looked at, as if it had been cut out
 * first. */
struct picture_view {
	double x, y, width, height;
	int out_width, out_height;
	bool cut, flip;
};

/* ret: out_height rows of out_width RGB pixels. ERR_CORRUPT: the file is damaged. */
int picture_render(struct picture *p, const struct picture_view *v, uint8_t *ret, struct err *err);

#endif
