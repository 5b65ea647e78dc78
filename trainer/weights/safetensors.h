/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.h: reads and writes safetensors files: 8-byte little-endian header length, a JSON object that maps names
 * to {dtype, shape, data_offsets} (and "__metadata__" to texts), then the tensors' bytes, row-major, little-endian.
 * Format: https://github.com/huggingface/safetensors. Independent of graphs.
 *
 * Every value of the header is checked before use: lengths against the file, products against overflow, byte ranges
 * against shape and type, overlaps, duplicate names. Holes are allowed. */
#ifndef DPT_WEIGHTS_SAFETENSORS_H
#define DPT_WEIGHTS_SAFETENSORS_H

#include "tracker/base/err.h"

#define SAFETENSORS_DIMS_MAX 8
#define SAFETENSORS_HEADER_MAX (16u << 20)

enum st_dtype { ST_F64, ST_F32, ST_F16, ST_BF16, ST_I64, ST_I32, ST_I16, ST_I8, ST_U64, ST_U32, ST_U16, ST_U8, ST_BOOL,
		ST_DTYPE_COUNT };

const char *st_dtype_name(enum st_dtype t); /* "F32" */
size_t st_dtype_bytes(enum st_dtype t);

struct st_tensor {
	const char *name;
	enum st_dtype dtype;
	int ndim;
	int64_t dim[SAFETENSORS_DIMS_MAX];
	int64_t count; /* product of dim */
	size_t bytes;
	const void *data; /* in the mapped file, maybe unaligned; NULL in descriptions for the writer */
};

struct st_meta {
	const char *key, *value;
};

struct safetensors;

#define SAFETENSORS_INDEX ".safetensors.index.json"

/* Maps the file or, by a path that ends in SAFETENSORS_INDEX, all files that this index of shards names. ERR_USAGE if
 * it is missing, damaged or of another format (for PyTorch's zip and pickle files the message says how to convert
 * them). */
int safetensors_open(struct safetensors **ret, const char *path, struct err *err);
/* The same for bytes in memory (borrowed until close), with `name` for messages: for tests and fuzzing. */
int safetensors_open_memory(struct safetensors **ret, const char *name, const void *bytes, size_t n, struct err *err);
void safetensors_close(struct safetensors *s); /* NULL is fine */

const char *safetensors_path(const struct safetensors *s);
size_t safetensors_count(const struct safetensors *s);
const struct st_tensor *safetensors_at(const struct safetensors *s, size_t i);		 /* in the order of the file */
const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name); /* NULL when absent */
const char *safetensors_meta(const struct safetensors *s, const char *key);		 /* NULL when absent */

/* Converts elements [first, first+n) of a tensor to doubles: exact for every type but I64 and U64 above 2^53. */
void safetensors_f64(const struct st_tensor *t, int64_t first, int64_t n, double *ret);

struct st_sum { /* size and checksum of a file */
	uint64_t bytes;
	uint32_t crc32c;
};

struct st_part {
	size_t tensor, at;
	const void *data; /* stays valid until the next call */
	size_t bytes;
};

struct st_write_opts {
	const char *path;
	const struct st_tensor *tensors; /* name, dtype, shape; count, bytes and data are ignored */
	size_t n_tensors;
	const struct st_meta *meta;
	size_t n_meta;
	/* Returns the bytes of tensor i (dtype as described); *ret stays valid until the next call. */
	int (*fetch)(void *user, size_t i, const void **ret, struct err *err);
	/* Optional, replaces fetch: returns at least one byte of tensor part->tensor, starting at byte part->at. */
	int (*fetch_part)(void *user, struct st_part *part, struct err *err);
	void *user;
	struct st_sum *ret_sum; /* of the file; may be NULL */
};

/* Writes the file under a temporary name in the same folder, then fsync and rename: it is complete or absent. */
int safetensors_write(const struct st_write_opts *o, struct err *err);

#endif
