/* npy.h: the header of a NumPy array of bytes (NEP 1), versions 1 to 3: images that are stored as they are. */
#ifndef DPT_DATA_NPY_H
#define DPT_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>

#define NPY_HEAD_MAX 4108  /* bytes before the elements that are read */
#define NPY_HEAD_BYTES 128 /* of what npy_head makes */

struct npy {
	int height, width, channels; /* (H, W) has one channel */
	size_t begin;		     /* of its elements */
};

bool npy_begins(const void *bytes, size_t n); /* whether an array begins there, whole or not */

/* False unless the bytes are a whole array of u8, rows first, of two or three dimensions. */
bool npy_parse(const void *bytes, size_t n, struct npy *ret);

/* The header of such an array; its elements follow. */
void npy_head(const struct npy *a, char ret[NPY_HEAD_BYTES]);

#endif
