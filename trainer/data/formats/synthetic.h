/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic.h: synthetic sets, and samples in memory. */
#ifndef DPT_DATA_SYNTHETIC_H
#define DPT_DATA_SYNTHETIC_H

#include "trainer/data/dataset.h"

struct dataset_synthetic_opts {
	int height, width, channels, classes;
	uint64_t seed;
};

/* Endless: up to 64 MiB of random u8 images and labels, created once; equal on every rank. */
int dataset_synthetic_open(struct dataset **ret, const struct dataset_synthetic_opts *o, struct err *err);

/* Samples in memory (a batch from a file), as both the training and the validation split. Used unchanged: neither
 * normalised nor shuffled (endless). images: n*h*w*c elements of dtype (F32 or F64), NHWC. */
struct dataset_memory_opts {
	const char *path;      /* their origin, for messages; copied */
	const void *images;    /* borrowed until close */
	const int32_t *labels; /* borrowed until close */
	enum dtype dtype;
	int64_t n;
	int height, width, channels;
	int classes; /* 0: largest label + 1 */
};

/* ERR_USAGE: too many channels, or an invalid label. */
int dataset_memory_open(struct dataset **ret, const struct dataset_memory_opts *o, struct err *err);

/* The same two kinds of sets for tokens. tokens: n rows of seq_len + 1, borrowed until close; NULL: random rows from
 * seed. Token -1 is padding; the loss ignores the target at its position. */
struct dataset_tokens_opts {
	const char *path;
	const int32_t *tokens;
	int64_t n, seq_len, vocab;
	uint64_t seed;
	bool planned; /* for plans only: random rows are not created, and the set has no hash */
};

/* ERR_USAGE: an invalid token, or no target at all. */
int dataset_tokens_open(struct dataset **ret, const struct dataset_tokens_opts *o, struct err *err);

#endif
