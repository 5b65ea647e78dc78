/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h: the header of a NumPy array of bytes (NEP 1), versions 1 to 3, for raw images. */
#ifndef DPT_DATA_NPY_H
#define DPT_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>

#define NPY_HEAD_MAX 4108  /* longest header that is read */
#define NPY_HEAD_BYTES 128 /* size of npy_head's header */

struct npy {
	int height, width, channels; /* (H, W) has one channel */
	size_t begin;		     /* offset of its elements */
};

/* False unless the bytes are a complete u8 array in C order with two or three dimensions. */
bool npy_parse(const void *bytes, size_t n, struct npy *ret);

/* Builds the header of such an array. */
void npy_head(const struct npy *a, char ret[NPY_HEAD_BYTES]);

#endif
