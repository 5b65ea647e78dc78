/* SPDX-License-Identifier: Apache-2.0 */
/* batch_file.c: reads one global batch from a file; images are converted from NCHW to NHWC. */
#include "trainer/weights/batch_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/weights/safetensors.h"

#define SIDE_MAX 65535

static int check_image_tensors(const struct safetensors *s, const struct st_tensor *images,
			       const struct st_tensor *labels, struct err *err)
{
	const char *path = safetensors_path(s);

	if (!images || images->ndim != 4 || (images->dtype != ST_F32 && images->dtype != ST_F64))
		return err_set(err, ERR_USAGE, "%.300s: expected a tensor 'images' of F32 or F64 [N,C,H,W]", path);
	if (!labels || labels->ndim != 1 || labels->dtype != ST_I64)
		return err_set(err, ERR_USAGE, "%.300s: expected a tensor 'labels' of I64 [N]", path);
	if (images->dim[0] != labels->dim[0])
		return err_set(err, ERR_USAGE, "%.300s: %lld images, but %lld labels", path, (long long)images->dim[0],
			       (long long)labels->dim[0]);
	if (!images->count || images->dim[1] > SIDE_MAX || images->dim[2] > SIDE_MAX || images->dim[3] > SIDE_MAX)
		return err_set(err, ERR_USAGE, "%.300s: images of [%lld,%lld,%lld,%lld] are not a batch", path,
			       (long long)images->dim[0], (long long)images->dim[1], (long long)images->dim[2],
			       (long long)images->dim[3]);
	return 0;
}

static void copy_nchw_to_nhwc(struct batch_file *b, const struct st_tensor *images)
{
	size_t each = dtype_bytes(b->dtype), area = (size_t)b->height * (size_t)b->width, c = (size_t)b->channels;
	const char *from = images->data;
	char *to = b->images;

	for (int64_t n = 0; n < b->n; n++, from += area * c * each, to += area * c * each)
		for (size_t i = 0; i < c; i++)
			for (size_t p = 0; p < area; p++)
				memcpy(to + (p * c + i) * each, from + (i * area + p) * each, each);
}

static int copy_labels(struct batch_file *b, const char *path, const struct st_tensor *labels, struct err *err)
{
	for (int64_t i = 0; i < b->n; i++) {
		int64_t v;

		memcpy(&v, (const char *)labels->data + (size_t)i * sizeof(v), sizeof(v));
		if (v < 0 || v >= INT32_MAX)
			return err_set(err, ERR_USAGE, "%.300s: label %lld of sample %lld is not a class", path,
				       (long long)v, (long long)i);
		b->labels[i] = (int32_t)v;
		if (v >= b->classes)
			b->classes = (int)v + 1;
	}
	return 0;
}

static int copy_tokens(struct batch_file *b, const char *path, const struct st_tensor *t, struct err *err)
{
	if (t->ndim != 2 || t->dtype != ST_I64 || t->dim[0] < 1 || t->dim[1] < 2)
		return err_set(err, ERR_USAGE, "%.300s: expected a tensor 'tokens' of I64 [N,T+1]", path);
	b->n = t->dim[0];
	b->seq_len = t->dim[1] - 1;
	b->tokens = malloc((size_t)t->count * sizeof(*b->tokens));
	if (!b->tokens)
		return err_set(err, ERR_NOMEM, "out of memory: %zu bytes of %.300s", t->bytes, path);
	for (int64_t i = 0; i < t->count; i++) {
		int64_t v;

		memcpy(&v, (const char *)t->data + (size_t)i * sizeof(v), sizeof(v));
		if (v < -1 || v >= INT32_MAX)
			return err_set(err, ERR_USAGE, "%.300s: %lld of sample %lld is not a token", path, (long long)v,
				       (long long)(i / t->dim[1]));
		b->tokens[i] = (int32_t)v;
	}
	return 0;
}

static int check_images_finite(const struct batch_file *b, const char *path, struct err *err)
{
	int64_t each = (int64_t)b->height * b->width * b->channels;

	for (int64_t i = 0; i < b->n * each; i++) {
		double v = b->dtype == DTYPE_F64 ? ((const double *)b->images)[i] : ((const float *)b->images)[i];

		if (!isfinite(v))
			return err_set(err, ERR_USAGE, "%.300s: image %lld holds %g, which is not finite", path,
				       (long long)(i / each), v);
	}
	return 0;
}

static int read_image_batch(struct batch_file *b, const struct safetensors *s, struct err *err)
{
	const struct st_tensor *images = safetensors_find(s, "images"), *labels = safetensors_find(s, "labels");
	const char *path = safetensors_path(s);
	int rc = check_image_tensors(s, images, labels, err);

	if (rc)
		return rc;
	if (!(b->images = malloc(images->bytes)) || !(b->labels = malloc((size_t)images->dim[0] * sizeof(int32_t))))
		return err_set(err, ERR_NOMEM, "out of memory: %zu bytes of %.300s", images->bytes, path);
	b->n = images->dim[0];
	b->channels = (int)images->dim[1];
	b->height = (int)images->dim[2];
	b->width = (int)images->dim[3];
	b->dtype = images->dtype == ST_F64 ? DTYPE_F64 : DTYPE_F32;
	copy_nchw_to_nhwc(b, images);
	if (check_images_finite(b, path, err))
		return err->code;
	return copy_labels(b, path, labels, err);
}

int batch_file_open(struct batch_file **ret, const char *path, struct err *err)
{
	struct safetensors *s = NULL;
	struct batch_file *b = NULL;
	const struct st_tensor *tokens;
	int rc = safetensors_open(&s, path, err);

	if (rc)
		return rc;
	tokens = safetensors_find(s, "tokens");
	b = calloc(1, sizeof(*b));
	if (!b)
		rc = err_set(err, ERR_NOMEM, "out of memory: %.300s", path);
	else
		rc = tokens ? copy_tokens(b, path, tokens, err) : read_image_batch(b, s, err);
	if (!rc) {
		*ret = b;
		b = NULL;
	}
	batch_file_close(b);
	safetensors_close(s);
	return rc;
}

void batch_file_close(struct batch_file *b)
{
	if (!b)
		return;
	free(b->images);
	free(b->labels);
	free(b->tokens);
	free(b);
}
