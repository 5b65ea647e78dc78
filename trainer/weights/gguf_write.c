/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_write.c: keys, the index of tensors, and their values in ggml's types. */
#include "trainer/weights/gguf_write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/ops/cast/float16.h"

#define ALIGNMENT 32
#define Q8_BYTES (GGUF_BLOCK + 2)
#define WRITE_BYTES ((size_t)1 << 20)

enum { VALUE_U32 = 4, VALUE_F32 = 6, VALUE_BOOL = 7, VALUE_TEXT = 8, VALUE_LIST = 9 };

void gguf_add_text(struct gguf_keys *k, const char *v, size_t bytes)
{
	buf_add_u64le(&k->bytes, bytes);
	buf_add(&k->bytes, v, bytes);
}

static void begin_key(struct gguf_keys *k, const char *key, uint32_t type)
{
	gguf_add_text(k, key, strlen(key));
	buf_add_u32le(&k->bytes, type);
	k->n++;
}

void gguf_put_u32(struct gguf_keys *k, const char *key, uint32_t v)
{
	begin_key(k, key, VALUE_U32);
	buf_add_u32le(&k->bytes, v);
}

void gguf_put_f32(struct gguf_keys *k, const char *key, double v)
{
	begin_key(k, key, VALUE_F32);
	buf_add_u32le(&k->bytes, float_bits((float)v));
}

void gguf_put_bool(struct gguf_keys *k, const char *key, bool v)
{
	begin_key(k, key, VALUE_BOOL);
	buf_addc(&k->bytes, (char)v);
}

void gguf_put_text(struct gguf_keys *k, const char *key, const char *v)
{
	begin_key(k, key, VALUE_TEXT);
	gguf_add_text(k, v, strlen(v));
}

void gguf_put_list(struct gguf_keys *k, const char *key, enum gguf_element type, uint64_t n)
{
	begin_key(k, key, VALUE_LIST);
	buf_add_u32le(&k->bytes, type);
	buf_add_u64le(&k->bytes, n);
}

/* ---- tensors ---- */

static size_t packed_bytes(enum gguf_type type, int64_t n)
{
	return type == GGUF_Q8_0 ? (size_t)n / GGUF_BLOCK * Q8_BYTES : (size_t)n * (type == GGUF_F32 ? 4 : 2);
}

static size_t packed_tensor_bytes(const struct gguf_tensor *t)
{
	return packed_bytes(t->type, t->n) * (size_t)(t->rows ? t->rows : 1);
}

static char *put_u16le(char *to, uint16_t v)
{
	to[0] = (char)(v & 255);
	to[1] = (char)(v >> 8);
	return to + 2;
}

/* Packs a block as its largest magnitude / 127, and multiples of that, in f32 as ggml computes them. */
static char *pack_q8_block(char *to, const double *v)
{
	float most = 0, scale, inverse;

	for (int i = 0; i < GGUF_BLOCK; i++)
		most = fmaxf(most, fabsf((float)v[i]));
	scale = most / 127;
	inverse = scale > 0 ? 1 / scale : 0;
	to = put_u16le(to, f16_from_float(scale));
	for (int i = 0; i < GGUF_BLOCK; i++)
		*to++ = (char)(int8_t)roundf((float)v[i] * inverse);
	return to;
}

static char *pack_value(char *to, enum gguf_type type, float v)
{
	if (type != GGUF_F32)
		return put_u16le(to, type == GGUF_F16 ? f16_from_float(v) : bf16_from_float(v));
	return put_u16le(put_u16le(to, (uint16_t)float_bits(v)), (uint16_t)(float_bits(v) >> 16));
}

/* Appends a row. Returns false if a value, or the scale of a block, is beyond the type's range. */
static bool pack_row(const struct gguf_tensor *t, const double *v, struct buf *to)
{
	const double most = t->type == GGUF_F16 ? 65519.99 : t->type == GGUF_Q8_0 ? 65504.0 * 127 : 3.389e38;
	const size_t bytes = packed_bytes(t->type, t->n);
	char *at = buf_reserve(to, bytes);

	for (int64_t i = 0; i < t->n; i++)
		if (!(fabs(v[i]) <= most))
			return false;
	if (t->type == GGUF_Q8_0)
		for (int64_t i = 0; i < t->n; i += GGUF_BLOCK)
			at = pack_q8_block(at, v + i);
	else
		for (int64_t i = 0; i < t->n; i++)
			at = pack_value(at, t->type, (float)v[i]);
	to->len += bytes;
	return true;
}

static void pad_gguf(struct buf *to, size_t bytes)
{
	for (size_t n = round_up_bytes(bytes, ALIGNMENT) - bytes; n; n--)
		buf_addc(to, '\0');
}

/* Appends what precedes the values: keys, names, shapes and offsets. */
static void add_gguf_head(const struct gguf_write_opts *o, struct buf *to)
{
	uint64_t at = 0;

	buf_adds(to, "GGUF");
	buf_add_u32le(to, 3);
	buf_add_u64le(to, o->n_tensors);
	buf_add_u64le(to, o->keys->n);
	buf_add(to, o->keys->bytes.data, o->keys->bytes.len);
	for (size_t i = 0; i < o->n_tensors; i++) {
		const struct gguf_tensor *t = &o->tensors[i];

		buf_add_u64le(to, strlen(t->name));
		buf_adds(to, t->name);
		buf_add_u32le(to, t->rows ? 2 : 1);
		buf_add_u64le(to, (uint64_t)t->n);
		if (t->rows)
			buf_add_u64le(to, (uint64_t)t->rows);
		buf_add_u32le(to, t->type);
		buf_add_u64le(to, at);
		at += round_up_bytes(packed_tensor_bytes(t), ALIGNMENT);
	}
	pad_gguf(to, to->len);
}

static int flush_gguf(const struct gguf_write_opts *o, int fd, struct buf *b, struct err *err)
{
	if (file_write(fd, b->data, b->len))
		return err_set_errno(err, errno, "cannot write %.300s", o->path);
	buf_reset(b);
	return 0;
}

/* Writes the values of a tensor. row: room for the longest one. */
static int write_gguf_tensor(const struct gguf_write_opts *o, size_t i, int fd, double *row, struct err *err)
{
	const struct gguf_tensor *t = &o->tensors[i];
	struct buf b;
	int rc = 0;

	buf_init(&b, SIZE_MAX);
	for (int64_t k = 0; !rc && k < (t->rows ? t->rows : 1); k++) {
		rc = o->row(o->user, i, k, row, err);
		if (!rc && !pack_row(t, row, &b))
			rc = err_set(err, ERR_USAGE,
				     "%.60s: has a value that is not finite, or beyond the range of the type: use "
				     "--gguf bf16",
				     t->name);
		if (!rc && b.len >= WRITE_BYTES)
			rc = flush_gguf(o, fd, &b, err);
	}
	pad_gguf(&b, packed_tensor_bytes(t));
	if (!rc)
		rc = flush_gguf(o, fd, &b, err);
	buf_done(&b);
	return rc;
}

int gguf_write(const struct gguf_write_opts *o, struct err *err)
{
	char part[FILE_WHOLE_PART];
	struct file_whole f;
	int64_t widest = 1;
	struct buf head;
	double *row;
	int rc;

	snprintf(part, sizeof(part), "%.4000s.tmp-%ld", o->path, (long)getpid());
	if (file_whole_open(&f, part))
		return err_set_errno(err, errno, "cannot create %.300s", o->path);
	for (size_t i = 0; i < o->n_tensors; i++)
		widest = o->tensors[i].n > widest ? o->tensors[i].n : widest;
	row = mem_array((size_t)widest, sizeof(*row));
	buf_init(&head, SIZE_MAX);
	add_gguf_head(o, &head);
	rc = flush_gguf(o, f.fd, &head, err);
	for (size_t i = 0; !rc && i < o->n_tensors; i++)
		rc = write_gguf_tensor(o, i, f.fd, row, err);
	if (!rc && (fsync(f.fd) || file_whole_keep(&f, o->path)))
		rc = err_set_errno(err, errno, "cannot write %.300s", o->path);
	file_whole_drop(&f);
	buf_done(&head);
	free(row);
	return rc;
}
