/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c: reads safetensors files. The header is untrusted: each value is checked against the file. */
#include "trainer/weights/safetensors.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"

struct safetensors {
	char *path;
	const uint8_t *bytes;
	size_t n_bytes;
	struct file_map file;	   /* the mapping that holds bytes, if this file opened it */
	json_t *root;		   /* owns names and metadata */
	struct st_tensor *tensors; /* by position in the file */
	struct st_tensor **by_name;
	size_t n_tensors;
	struct safetensors **shard; /* of an index: what holds the tensors, which are copied from them */
	size_t n_shards;
};

static const struct {
	const char *name;
	size_t bytes;
} types[ST_DTYPE_COUNT] = {
	[ST_F64] = { "F64", 8 },   [ST_F32] = { "F32", 4 }, [ST_F16] = { "F16", 2 }, [ST_BF16] = { "BF16", 2 },
	[ST_I64] = { "I64", 8 },   [ST_I32] = { "I32", 4 }, [ST_I16] = { "I16", 2 }, [ST_I8] = { "I8", 1 },
	[ST_U64] = { "U64", 8 },   [ST_U32] = { "U32", 4 }, [ST_U16] = { "U16", 2 }, [ST_U8] = { "U8", 1 },
	[ST_BOOL] = { "BOOL", 1 },
};

const char *st_dtype_name(enum st_dtype t)
{
	return types[t].name;
}

size_t st_dtype_bytes(enum st_dtype t)
{
	return types[t].bytes;
}

struct printable_text {
	char text[100];
};

/* Copies a name from the file for a message, without control characters. */
static const char *printable_name(const char *name, struct printable_text *s)
{
	size_t i;

	for (i = 0; name[i] && i < sizeof(s->text) - 1; i++)
		s->text[i] = (unsigned char)name[i] < 32 || name[i] == 127 ? '?' : name[i];
	s->text[i] = 0;
	return s->text;
}

static int parse_dtype(const json_t *v, enum st_dtype *ret)
{
	const char *name = json_string_value(v);

	for (int i = 0; name && i < ST_DTYPE_COUNT; i++)
		if (!strcmp(name, types[i].name)) {
			*ret = (enum st_dtype)i;
			return 0;
		}
	return -1;
}

/* Parses the shape, and computes the bytes from shape and type. */
static int parse_shape(const json_t *v, struct st_tensor *t)
{
	size_t count = 1;

	if (!json_is_array(v) || json_array_size(v) > SAFETENSORS_DIMS_MAX)
		return -1;
	t->ndim = (int)json_array_size(v);
	for (int i = 0; i < t->ndim; i++) {
		const json_t *d = json_array_get(v, (size_t)i);

		if (!json_is_integer(d) || json_integer_value(d) < 0)
			return -1;
		t->dim[i] = json_integer_value(d);
		if (__builtin_mul_overflow(count, (size_t)t->dim[i], &count))
			return -1;
	}
	if (__builtin_mul_overflow(count, types[t->dtype].bytes, &t->bytes) || t->bytes > PTRDIFF_MAX)
		return -1;
	t->count = (int64_t)count;
	return 0;
}

/* Parses one entry of the header and checks its range of bytes against the file. */
static int parse_tensor(struct safetensors *s, size_t data_at, struct st_tensor *t, const json_t *v, struct err *err)
{
	const json_t *offsets = json_object_get(v, "data_offsets");
	const json_t *b = json_array_get(offsets, 0), *e = json_array_get(offsets, 1);
	json_int_t begin = json_integer_value(b), end = json_integer_value(e);
	struct printable_text name;

	printable_name(t->name, &name);
	if (!json_is_object(v) || parse_dtype(json_object_get(v, "dtype"), &t->dtype)) {
		const char *type = json_string_value(json_object_get(v, "dtype"));
		struct printable_text type_shown;

		return err_set(err, ERR_USAGE, "%.200s: tensor '%s': unknown type '%s'", s->path, name.text,
			       printable_name(type ? type : "(none)", &type_shown));
	}
	if (parse_shape(json_object_get(v, "shape"), t))
		return err_set(err, ERR_USAGE,
			       "%.200s: tensor '%s': its shape is not a list of at most %d sizes that fit into memory",
			       s->path, name.text, SAFETENSORS_DIMS_MAX);
	if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
	    begin < 0 || begin > end || (uint64_t)end > s->n_bytes - data_at)
		return err_set(err, ERR_USAGE, "%.200s: tensor '%s': data_offsets are outside of the %zu bytes of data",
			       s->path, name.text, s->n_bytes - data_at);
	if ((uint64_t)(end - begin) != t->bytes)
		return err_set(err, ERR_USAGE,
			       "%.200s: tensor '%s': data_offsets span %lld bytes, but shape and type need %zu",
			       s->path, name.text, (long long)(end - begin), t->bytes);
	t->data = s->bytes + data_at + begin;
	return 0;
}

static int check_meta(const struct safetensors *s, json_t *meta, struct err *err)
{
	const char *key;
	json_t *v;

	if (!json_is_object(meta))
		return err_set(err, ERR_USAGE, "%.200s: __metadata__ is not an object", s->path);
	json_object_foreach(meta, key, v)
		if (!json_is_string(v))
			return err_set(err, ERR_USAGE, "%.200s: __metadata__ contains a value that is not a string",
				       s->path);
	return 0;
}

static int by_position(const void *a, const void *b)
{
	const struct st_tensor *x = a, *y = b;

	if (x->data != y->data)
		return (const char *)x->data < (const char *)y->data ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int compare_tensor_names(const void *a, const void *b)
{
	const struct st_tensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void sort_by_name(struct safetensors *s)
{
	for (size_t i = 0; i < s->n_tensors; i++)
		s->by_name[i] = &s->tensors[i];
	qsort(s->by_name, s->n_tensors, sizeof(struct st_tensor *), compare_tensor_names);
}

static int check_overlaps(const struct safetensors *s, struct err *err)
{
	for (size_t i = 1; i < s->n_tensors; i++) {
		const struct st_tensor *a = &s->tensors[i - 1], *b = &s->tensors[i];
		struct printable_text x, y;

		if ((const char *)a->data + a->bytes > (const char *)b->data)
			return err_set(err, ERR_USAGE, "%.200s: the tensors '%s' and '%s' overlap", s->path,
				       printable_name(a->name, &x), printable_name(b->name, &y));
	}
	return 0;
}

/* Parses all entries, sorts them by position and by name, and refuses overlaps. */
static int parse_entries(struct safetensors *s, size_t data_at, struct err *err)
{
	size_t n = json_object_size(s->root);
	const char *key;
	json_t *v;
	int rc;

	s->tensors = mem_array(n + 1, sizeof(*s->tensors));
	s->by_name = mem_array(n + 1, sizeof(*s->by_name));
	json_object_foreach(s->root, key, v) {
		struct st_tensor *t = &s->tensors[s->n_tensors];

		if (!strcmp(key, "__metadata__")) {
			rc = check_meta(s, v, err);
		} else {
			t->name = key;
			rc = parse_tensor(s, data_at, t, v, err);
			s->n_tensors++;
		}
		if (rc)
			return rc;
	}
	qsort(s->tensors, s->n_tensors, sizeof(*s->tensors), by_position);
	sort_by_name(s);
	return check_overlaps(s, err);
}

static int refuse_pytorch_file(const struct safetensors *s, struct err *err)
{
	bool ours = s->n_bytes > 8 && s->bytes[8] == '{'; /* a header of 0x0280 bytes begins like a pickle */

	if (!ours && s->n_bytes >= 4 && (!memcmp(s->bytes, "PK\3\4", 4) || (s->bytes[0] == 0x80 && s->bytes[1] <= 5)))
		return err_set(err, ERR_USAGE,
			       "%.120s: is a PyTorch file: convert it: python3 -c \"import torch, safetensors.torch as "
			       "s; "
			       "s.save_file(torch.load('%.120s', weights_only=True), 'model.safetensors')\"",
			       s->path, s->path);
	return 0;
}

/* Checks the header's length and parses it. */
static int parse_safetensors(struct safetensors *s, struct err *err)
{
	uint64_t header = 0;
	json_error_t je;
	struct printable_text text;
	int rc = refuse_pytorch_file(s, err);

	if (rc)
		return rc;
	if (file_refuse_pointer(s->path, s->bytes, s->n_bytes, err))
		return ERR_USAGE;
	if (s->n_bytes < 8)
		return err_set(err, ERR_USAGE, "%.200s: is not a safetensors file (%zu bytes)", s->path, s->n_bytes);
	for (int i = 7; i >= 0; i--)
		header = header << 8 | s->bytes[i];
	if (header > SAFETENSORS_HEADER_MAX || header < 2 || (s->n_bytes > 8 && s->bytes[8] != '{'))
		return err_set(err, ERR_USAGE, "%.200s: is not a safetensors file (a header of %llu bytes; at most %u)",
			       s->path, (unsigned long long)header, SAFETENSORS_HEADER_MAX);
	if (header > s->n_bytes - 8)
		return err_set(err, ERR_USAGE, "%.200s: truncated: a header of %llu bytes, but only %zu bytes follow",
			       s->path, (unsigned long long)header, s->n_bytes - 8);
	s->root = json_loadb((const char *)s->bytes + 8, (size_t)header, JSON_REJECT_DUPLICATES, &je);
	if (!s->root)
		return err_set(err, ERR_USAGE, "%.200s: damaged header: %s", s->path, printable_name(je.text, &text));
	return parse_entries(s, 8 + (size_t)header, err);
}

int safetensors_open_memory(struct safetensors **ret, const char *name, const void *bytes, size_t n, struct err *err)
{
	struct safetensors *s = mem_zalloc(sizeof(*s));
	int rc;

	s->path = mem_strdup(name);
	s->bytes = bytes;
	s->n_bytes = n;
	rc = parse_safetensors(s, err);
	if (rc) {
		safetensors_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

/* Returns the shard of that name, which it opens the first time; NULL: err is filled. */
static struct safetensors *find_shard(struct safetensors *s, const char *name, struct err *err)
{
	const char *slash = strrchr(s->path, '/');
	struct printable_text text;
	char path[4200];

	if (strchr(name, '/') || name[0] == '.' || !*name) {
		err_set(err, ERR_USAGE, "%.300s: weight_map: \"%s\" is not a plain file name", s->path,
			printable_name(name, &text));
		return NULL;
	}
	snprintf(path, sizeof(path), "%.*s%.255s", slash ? (int)(slash - s->path) + 1 : 0, s->path, name);
	for (size_t i = 0; i < s->n_shards; i++)
		if (!strcmp(s->shard[i]->path, path))
			return s->shard[i];
	if (access(path, F_OK)) {
		err_set(err, ERR_USAGE, "%.300s: is missing: %.300s names it: download it too", path, s->path);
		return NULL;
	}
	s->shard = mem_realloc(s->shard, (s->n_shards + 1) * sizeof(struct safetensors *));
	if (safetensors_open(&s->shard[s->n_shards], path, err))
		return NULL;
	return s->shard[s->n_shards++];
}

/* Takes every tensor of weight_map from its shard. */
static int gather_shards(struct safetensors *s, struct err *err)
{
	const json_t *map = json_object_get(s->root, "weight_map");
	struct printable_text text;
	const char *name;
	json_t *file;

	if (!json_is_object(map))
		return err_set(err, ERR_USAGE, "%.300s: has no weight_map", s->path);
	s->tensors = mem_array(json_object_size(map) + 1, sizeof(*s->tensors));
	s->by_name = mem_array(json_object_size(map) + 1, sizeof(*s->by_name));
	json_object_foreach((json_t *)map, name, file) {
		struct safetensors *shard = find_shard(s, json_is_string(file) ? json_string_value(file) : "", err);
		const struct st_tensor *t = shard ? safetensors_find(shard, name) : NULL;

		if (!shard)
			return ERR_USAGE;
		if (!t)
			return err_set(err, ERR_USAGE, "%.300s: tensor '%s' is missing, which %.300s expects there",
				       shard->path, printable_name(name, &text), s->path);
		s->tensors[s->n_tensors++] = *t;
	}
	sort_by_name(s);
	return 0;
}

/* Opens an index with its shards. */
static int open_index(struct safetensors **ret, const char *path, struct err *err)
{
	struct safetensors *s = mem_zalloc(sizeof(*s));
	json_error_t je = { .line = 0 };
	struct printable_text text;
	struct buf bytes;
	int rc;

	s->path = mem_strdup(path);
	buf_init(&bytes, SAFETENSORS_HEADER_MAX);
	rc = file_load(&bytes, path, err);
	if (!rc) {
		s->root = json_loadb(bytes.data ? bytes.data : "", bytes.len, JSON_REJECT_DUPLICATES, &je);
		rc = s->root ? gather_shards(s, err)
			     : err_set(err, ERR_USAGE, "%.300s:%d: %s", path, je.line, printable_name(je.text, &text));
	}
	buf_done(&bytes);
	if (rc)
		safetensors_close(s);
	else
		*ret = s;
	return rc;
}

int safetensors_open(struct safetensors **ret, const char *path, struct err *err)
{
	const size_t n = strlen(path), tail = strlen(SAFETENSORS_INDEX);
	struct file_map file = { 0 };
	int rc;

	if (n > tail && !strcmp(path + n - tail, SAFETENSORS_INDEX))
		return open_index(ret, path, err);
	rc = file_map_open(&file, path, err);

	if (!rc && !file.n)
		rc = err_set(err, ERR_USAGE, "%.300s: is empty", path);
	if (!rc)
		rc = safetensors_open_memory(ret, path, file.bytes, file.n, err);
	if (rc)
		file_map_close(&file);
	else
		(*ret)->file = file;
	return rc;
}

void safetensors_close(struct safetensors *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_shards; i++)
		safetensors_close(s->shard[i]);
	free(s->shard);
	file_map_close(&s->file);
	json_decref(s->root);
	free(s->tensors);
	free(s->by_name);
	free(s->path);
	free(s);
}

const char *safetensors_path(const struct safetensors *s)
{
	return s->path;
}

size_t safetensors_count(const struct safetensors *s)
{
	return s->n_tensors;
}

const struct st_tensor *safetensors_at(const struct safetensors *s, size_t i)
{
	return &s->tensors[i];
}

const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
	struct st_tensor key = { .name = name }, *k = &key, **hit;

	hit = bsearch(&k, s->by_name, s->n_tensors, sizeof(struct st_tensor *), compare_tensor_names);
	return hit ? *hit : NULL;
}

const char *safetensors_meta(const struct safetensors *s, const char *key)
{
	return json_string_value(json_object_get(json_object_get(s->root, "__metadata__"), key));
}

/* ---- conversion of every type to doubles; data may be unaligned ---- */

static double from_f16(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	double v;

	if (exponent == 31)
		v = fraction ? NAN : INFINITY;
	else
		v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
	return h >> 15 ? -v : v;
}

static double from_bf16(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

#define CONVERT(type, expression)                                                                                      \
	for (int64_t i = 0; i < n; i++) {                                                                              \
		type v;                                                                                                \
                                                                                                                       \
		memcpy(&v, at + (size_t)i * sizeof(v), sizeof(v));                                                     \
		ret[i] = (double)(expression);                                                                         \
	}                                                                                                              \
	return

void safetensors_f64(const struct st_tensor *t, int64_t first, int64_t n, double *ret)
{
	const char *at = (const char *)t->data + (size_t)first * st_dtype_bytes(t->dtype);

	switch (t->dtype) {
	case ST_F64: CONVERT(double, v);
	case ST_F32: CONVERT(float, v);
	case ST_F16: CONVERT(uint16_t, from_f16(v));
	case ST_BF16: CONVERT(uint16_t, from_bf16(v));
	case ST_I64: CONVERT(int64_t, v);
	case ST_I32: CONVERT(int32_t, v);
	case ST_I16: CONVERT(int16_t, v);
	case ST_I8: CONVERT(int8_t, v);
	case ST_U64: CONVERT(uint64_t, v);
	case ST_U32: CONVERT(uint32_t, v);
	case ST_U16: CONVERT(uint16_t, v);
	case ST_U8: CONVERT(uint8_t, v);
	case ST_BOOL: CONVERT(uint8_t, v != 0);
	case ST_DTYPE_COUNT: break;
	}
}
