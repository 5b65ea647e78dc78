/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic.c: sets without files: random images and tokens, and samples in the caller's memory. */
#include "trainer/data/formats/synthetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/pictures/pixels.h"

#define POOL_BYTES_MAX (64u << 20)
#define POOL_SAMPLES_MAX 4096

struct memory_images {
	struct dataset base;
	const void *images;
	const int32_t *labels;
	void *owned_images, *owned_labels; /* NULL: borrowed */
};

static void close_memory_images(struct dataset *base)
{
	struct memory_images *d = (struct memory_images *)base;

	free(d->owned_images);
	free(d->owned_labels);
	free(d->base.path);
	free(d);
}

static const void *peek_memory_image(const struct dataset *base, enum split s, int64_t index)
{
	const struct memory_images *d = (const struct memory_images *)base;

	(void)s;
	return (const char *)d->images + (size_t)index * pixels_count(base) * dtype_bytes(base->dtype);
}

static int read_memory_image(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	const struct memory_images *d = (const struct memory_images *)base;

	(void)err;
	if (r->pixels)
		memcpy(r->pixels, peek_memory_image(base, r->split, r->index),
		       pixels_count(base) * dtype_bytes(base->dtype));
	*r->label = d->labels[r->index];
	return 0;
}

const struct dataset_ops dataset_synthetic = {
	.name = "synthetic", .read = read_memory_image, .close = close_memory_images, .peek = peek_memory_image
};
const struct dataset_ops dataset_memory = {
	.name = "memory", .read = read_memory_image, .close = close_memory_images, .peek = peek_memory_image
};

static struct memory_images *new_memory_images(const char *path, int height, int width, int channels)
{
	struct memory_images *d = mem_zalloc(sizeof(*d));

	d->base.path = mem_strdup(path);
	d->base.height = height;
	d->base.width = width;
	d->base.channels = channels;
	d->base.endless = true;
	return d;
}

static void draw_random_images(struct memory_images *d, uint64_t seed, size_t bytes, int64_t n)
{
	struct rng_key pixels = { seed, rng_stream("synthetic images") },
		       labels = { seed, rng_stream("synthetic labels") };
	uint8_t *images = d->owned_images;
	int32_t *label = d->owned_labels;

	for (size_t i = 0; i < bytes; i += 16) {
		uint32_t block[4];

		rng_block(pixels, i / 16, block);
		memcpy(images + i, block, bytes - i < 16 ? bytes - i : 16);
	}
	for (int64_t i = 0; i < n; i++)
		label[i] = (int32_t)rng_below(labels, (uint64_t)i, (uint64_t)d->base.classes);
}

int dataset_synthetic_open(struct dataset **ret, const struct dataset_synthetic_opts *o, struct err *err)
{
	struct memory_images *d;
	size_t each, n;

	if (o->height < 1 || o->width < 1 || o->channels < 1 || o->channels > DATASET_CHANNELS_MAX || o->classes < 1 ||
	    o->height > 65535 || o->width > 65535)
		return err_set(err, ERR_USAGE,
			       "--synthetic: cannot make images of %d x %d x %d in %d classes: at most %d channels",
			       o->height, o->width, o->channels, o->classes, DATASET_CHANNELS_MAX);
	d = new_memory_images("--synthetic", o->height, o->width, o->channels);
	d->base.ops = &dataset_synthetic;
	d->base.dtype = DTYPE_U8;
	d->base.classes = o->classes;
	each = pixels_count(&d->base);
	n = each > POOL_BYTES_MAX ? 1 : POOL_BYTES_MAX / each;
	n = n > POOL_SAMPLES_MAX ? POOL_SAMPLES_MAX : n;
	d->base.n_samples[SPLIT_TRAIN] = (int64_t)n;
	d->images = d->owned_images = mem_alloc(n * each);
	d->labels = d->owned_labels = mem_array(n, sizeof(int32_t));
	d->base.buffer_bytes = d->base.drawn_bytes = n * each;
	draw_random_images(d, o->seed, n * each, (int64_t)n);
	pixels_stats(&d->base, d->images, (int64_t)n);
	snprintf(d->base.hash, sizeof(d->base.hash), "synthetic-%08x", crc32c(0, d->images, n * each));
	*ret = &d->base;
	return 0;
}

int dataset_memory_open(struct dataset **ret, const struct dataset_memory_opts *o, struct err *err)
{
	struct memory_images *d;
	size_t bytes;

	if (o->channels < 1 || o->channels > DATASET_CHANNELS_MAX)
		return err_set(err, ERR_USAGE, "%.200s: images have %d channels: expected at most %d", o->path,
			       o->channels, DATASET_CHANNELS_MAX);
	d = new_memory_images(o->path, o->height, o->width, o->channels);
	d->base.ops = &dataset_memory;
	d->base.dtype = o->dtype;
	d->base.n_samples[SPLIT_TRAIN] = d->base.n_samples[SPLIT_VAL] = o->n;
	d->images = o->images;
	d->labels = o->labels;
	d->base.classes = o->classes;
	for (int64_t i = 0; i < o->n; i++) {
		if (o->labels[i] >= 0 && !o->classes && o->labels[i] >= d->base.classes)
			d->base.classes = o->labels[i] + 1;
		if (o->labels[i] >= 0 && o->labels[i] < d->base.classes)
			continue;
		close_memory_images(&d->base);
		return err_set(err, ERR_USAGE, "%.200s: label %d of sample %lld: expected 0 or more, below %d classes",
			       o->path, o->labels[i], (long long)i, o->classes);
	}
	for (int c = 0; c < o->channels && c < DATASET_CHANNELS_MAX; c++)
		d->base.std[c] = 1;
	bytes = (size_t)o->n * pixels_count(&d->base) * dtype_bytes(o->dtype);
	snprintf(d->base.hash, sizeof(d->base.hash), "memory-%08x-%08x", crc32c(0, o->images, bytes),
		 crc32c(0, o->labels, (size_t)o->n * sizeof(int32_t)));
	*ret = &d->base;
	return 0;
}

/* ---- tokens ---- */

struct memory_tokens {
	struct dataset base;
	const int32_t *tokens; /* rows of seq_len + 1 */
	int32_t *owned;	       /* NULL: borrowed */
};

static void close_memory_tokens(struct dataset *base)
{
	struct memory_tokens *d = (struct memory_tokens *)base;

	free(d->owned);
	free(d->base.path);
	free(d);
}

static const int32_t *get_token_row(const struct dataset *base, int64_t index)
{
	return ((const struct memory_tokens *)base)->tokens + index * (base->seq_len + 1);
}

static int read_token_row(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	const int32_t *from = get_token_row(base, r->index);

	(void)err;
	for (int64_t i = 0; i < base->seq_len; i++) {
		r->tokens[i] = from[i] < 0 ? 0 : from[i];
		r->targets[i] = from[i] < 0 ? -1 : from[i + 1];
	}
	return 0;
}

static int64_t count_row_targets(const struct dataset *base, enum split split, int64_t index)
{
	const int32_t *from = get_token_row(base, index);
	int64_t n = 0;

	(void)split;
	for (int64_t i = 0; i < base->seq_len; i++)
		n += from[i] >= 0 && from[i + 1] >= 0;
	return n;
}

const struct dataset_ops dataset_synthetic_tokens = { .name = "synthetic",
						      .read = read_token_row,
						      .close = close_memory_tokens };
const struct dataset_ops dataset_memory_tokens = {
	.name = "memory", .read = read_token_row, .close = close_memory_tokens, .weight = count_row_targets
};

static void draw_random_tokens(struct memory_tokens *d, const struct dataset_tokens_opts *o)
{
	int64_t each = d->base.seq_len + 1, n = (int64_t)POOL_BYTES_MAX / (each * (int64_t)sizeof(int32_t));
	struct rng_key key = { o->seed, rng_stream("synthetic tokens") };

	n = n < 1 ? 1 : n > POOL_SAMPLES_MAX ? POOL_SAMPLES_MAX : n;
	d->base.ops = &dataset_synthetic_tokens;
	d->base.n_samples[SPLIT_TRAIN] = n;
	d->base.buffer_bytes = (uint64_t)(n * each) * sizeof(int32_t);
	if (o->planned)
		return;
	d->tokens = d->owned = mem_alloc((size_t)(n * each) * sizeof(int32_t));
	for (int64_t i = 0; i < n * each; i++)
		d->owned[i] = (int32_t)rng_below(key, (uint64_t)i, (uint64_t)d->base.vocab);
	d->base.drawn_bytes = d->base.buffer_bytes;
	snprintf(d->base.hash, sizeof(d->base.hash), "synthetic-%08x", crc32c(0, d->owned, (size_t)(n * each) * 4));
}

static int check_token_rows(struct memory_tokens *d, const struct dataset_tokens_opts *o, struct err *err)
{
	int64_t each = o->seq_len + 1, counted = 0;

	for (int64_t i = 0; i < o->n * each; i++)
		if (o->tokens[i] < -1 || o->tokens[i] >= o->vocab)
			return err_set(err, ERR_USAGE,
				       "%.200s: token %d of sample %lld: expected 0 to %lld (or "
				       "-1, padding)",
				       o->path, o->tokens[i], (long long)(i / each), (long long)o->vocab - 1);
	for (int64_t i = 0; i < o->n; i++)
		counted += count_row_targets(&d->base, SPLIT_TRAIN, i);
	if (!counted)
		return err_set(err, ERR_USAGE, "%.200s: no token has a target: there is nothing to learn", o->path);
	return 0;
}

int dataset_tokens_open(struct dataset **ret, const struct dataset_tokens_opts *o, struct err *err)
{
	struct memory_tokens *d = mem_zalloc(sizeof(*d));
	int rc = 0;

	d->base.path = mem_strdup(o->path);
	d->base.kind = SAMPLE_TOKENS;
	d->base.endless = true;
	d->base.seq_len = o->seq_len;
	d->base.vocab = o->vocab;
	d->base.separator = -1;
	d->base.ops = &dataset_memory_tokens;
	d->tokens = o->tokens;
	if (o->tokens) {
		d->base.n_samples[SPLIT_TRAIN] = d->base.n_samples[SPLIT_VAL] = o->n;
		snprintf(d->base.hash, sizeof(d->base.hash), "memory-%08x",
			 crc32c(0, o->tokens, (size_t)(o->n * (o->seq_len + 1)) * sizeof(int32_t)));
		rc = check_token_rows(d, o, err);
	} else {
		draw_random_tokens(d, o);
	}
	if (rc) {
		close_memory_tokens(&d->base);
		return rc;
	}
	*ret = &d->base;
	return 0;
}
