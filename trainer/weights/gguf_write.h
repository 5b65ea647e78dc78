/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_write.h: writes GGUF files (version 3, little-endian): keys with values, then tensors, row by row. */
#ifndef DPT_WEIGHTS_GGUF_WRITE_H
#define DPT_WEIGHTS_GGUF_WRITE_H

#include <stdbool.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

enum gguf_type { GGUF_F32 = 0, GGUF_F16 = 1, GGUF_Q8_0 = 8, GGUF_BF16 = 30 }; /* ggml's numbers */

#define GGUF_BLOCK 32 /* values of Q8_0 that share a scale: its rows are multiples of it */

struct gguf_keys {
	struct buf bytes; /* initialised and released by the caller */
	uint64_t n;
};

void gguf_put_u32(struct gguf_keys *k, const char *key, uint32_t v);
void gguf_put_f32(struct gguf_keys *k, const char *key, double v);
void gguf_put_bool(struct gguf_keys *k, const char *key, bool v);
void gguf_put_text(struct gguf_keys *k, const char *key, const char *v);

/* Lists of n values, which the caller appends: buf_add_u32le to k->bytes, or gguf_add_text. */
enum gguf_element { GGUF_LIST_I32 = 5, GGUF_LIST_F32 = 6, GGUF_LIST_TEXT = 8 };
void gguf_put_list(struct gguf_keys *k, const char *key, enum gguf_element type, uint64_t n);
void gguf_add_text(struct gguf_keys *k, const char *v, size_t bytes);

struct gguf_tensor {
	char name[64];
	int64_t rows, n; /* rows 0: a vector of n values */
	enum gguf_type type;
};

struct gguf_write_opts {
	const char *path;
	const struct gguf_keys *keys;
	const struct gguf_tensor *tensors;
	size_t n_tensors;
	/* Fills the n values of a row. */
	int (*row)(void *user, size_t tensor, int64_t row, double *ret, struct err *err);
	void *user;
};

/* Writes the file, which appears when it is complete. ERR_USAGE: a value is beyond the range of its type; ERR_IO. */
int gguf_write(const struct gguf_write_opts *o, struct err *err);

#endif
