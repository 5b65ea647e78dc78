/* made_tokens.c: token sets without files: random tokens, and rows in the caller's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/synthetic.h"
#include "trainer/graph/rng.h"

#define POOL_BYTES_MAX (INT64_C(64) << 20)
#define POOL_SAMPLES_MAX 4096

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

static int draw_random_tokens(struct memory_tokens *d, const struct dataset_tokens_opts *o, struct err *err)
{
	int64_t each = d->base.seq_len + 1, n = POOL_BYTES_MAX / (each * (int64_t)sizeof(int32_t));
	struct rng_key key = { o->seed, rng_stream("synthetic tokens") };

	n = n < 1 ? 1 : n > POOL_SAMPLES_MAX ? POOL_SAMPLES_MAX : n;
	d->base.ops = &dataset_synthetic_tokens;
	d->base.n_samples[SPLIT_TRAIN] = n;
	d->base.buffer_bytes = (uint64_t)(n * each) * sizeof(int32_t);
	if (o->planned)
		return 0;
	d->tokens = d->owned = malloc((size_t)(n * each) * sizeof(int32_t));
	if (!d->owned)
		return err_set(err, ERR_NOMEM, "--synthetic: out of memory for %lld samples of %lld tokens",
			       (long long)n, (long long)each);
	for (int64_t i = 0; i < n * each; i++)
		d->owned[i] = (int32_t)rng_below(key, (uint64_t)i, (uint64_t)d->base.vocab);
	d->base.drawn_bytes = d->base.buffer_bytes;
	snprintf(d->base.hash, sizeof(d->base.hash), "synthetic-%08x", crc32c(0, d->owned, (size_t)(n * each) * 4));
	return 0;
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
	struct memory_tokens *d = calloc(1, sizeof(*d));
	int rc = 0;

	if (!d || !(d->base.path = strdup(o->path))) {
		free(d);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	d->base.kind = SAMPLE_TOKENS;
	d->base.endless = true;
	d->base.seq_len = o->seq_len;
	d->base.vocab = o->vocab;
	d->base.ops = &dataset_memory_tokens;
	d->tokens = o->tokens;
	if (o->tokens) {
		d->base.n_samples[SPLIT_TRAIN] = d->base.n_samples[SPLIT_VAL] = o->n;
		snprintf(d->base.hash, sizeof(d->base.hash), "memory-%08x",
			 crc32c(0, o->tokens, (size_t)(o->n * (o->seq_len + 1)) * sizeof(int32_t)));
		rc = check_token_rows(d, o, err);
	} else {
		rc = draw_random_tokens(d, o, err);
	}
	if (rc) {
		close_memory_tokens(&d->base);
		return rc;
	}
	*ret = &d->base;
	return 0;
}
