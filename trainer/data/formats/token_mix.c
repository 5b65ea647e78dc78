/* token_mix.c: concatenates token sets to one. The sampler decides how often each is drawn (struct mix there). */
#include "trainer/data/formats/token_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/formats/formats.h"

#define PARTS_MAX 255
#define SPEC_BYTES 4200

struct mixed {
	struct dataset base;
	struct dataset *set[PARTS_MAX];
	struct dataset_part part[PARTS_MAX];
	int64_t first[SPLIT_COUNT][PARTS_MAX + 1]; /* first sample of each set; the last entry is the total */
	int n;
	int (*open_one)(struct dataset **ret, const struct dataset_opts *o, struct err *err);
};

static void mixed_close(struct dataset *base)
{
	struct mixed *d = (struct mixed *)base;

	for (int i = 0; i < d->n; i++)
		dataset_close(d->set[i]);
	free(d->base.path);
	free(d);
}

/* Finds the set of a sample and converts the index to that set's. */
static const struct dataset *find_mixed_part(const struct mixed *d, enum split split, int64_t *index)
{
	int i = 0;

	while (*index >= d->first[split][i + 1])
		i++;
	*index -= d->first[split][i];
	return d->set[i];
}

static int mixed_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	struct dataset_read of = *r;
	const struct dataset *set = find_mixed_part((const struct mixed *)base, r->split, &of.index);

	return dataset_read(set, &of, err);
}

static int64_t mixed_weight(const struct dataset *base, enum split split, int64_t index)
{
	const struct dataset *set = find_mixed_part((const struct mixed *)base, split, &index);

	return dataset_weight(set, split, index);
}

static void mixed_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	const struct dataset *set = find_mixed_part((const struct mixed *)base, split, &index);

	dataset_where(set, split, index, ret, bytes);
}

static void mixed_sum(const struct dataset *base, enum split split, struct sha256 *to)
{
	const struct mixed *d = (const struct mixed *)base;

	for (int i = 0; i < d->n; i++) {
		sha256_add(to, d->set[i]->hash, strlen(d->set[i]->hash) + 1);
		if (split == SPLIT_TRAIN)
			sha256_add(to, &d->part[i].weight, sizeof(d->part[i].weight));
	}
}

static int check_mixed_set(const struct mixed *d, const struct dataset *set, struct err *err)
{
	const struct dataset *first = d->set[0];

	if (set->kind != SAMPLE_TOKENS)
		return err_set(err, ERR_USAGE, "%.200s: has %s: --mix is for texts and tokens", set->path,
			       sample_kind_name(set->kind));
	if (!set->n_samples[SPLIT_TRAIN])
		return err_set(err, ERR_USAGE, "%.200s: has no training samples to mix", set->path);
	if (set->vocab != first->vocab || strcmp(set->tokenizer, first->tokenizer))
		return err_set(err, ERR_USAGE, "%.200s: was made with another tokenizer than %.200s", set->path,
			       first->path);
	return 0;
}

static int add_mixed_set(struct mixed *d, const struct dataset_opts *o, const char *path, struct err *err)
{
	struct dataset_opts of = *o;
	int rc;

	if (d->n == PARTS_MAX)
		return err_set(err, ERR_USAGE, "--mix: at most %d sets can be mixed", PARTS_MAX);
	of.path = path;
	of.mix = NULL;
	rc = d->open_one(&d->set[d->n], &of, err);
	if (rc)
		return rc;
	d->n++;
	rc = check_mixed_set(d, d->set[d->n - 1], err);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		d->first[s][d->n] = d->first[s][d->n - 1] + d->set[d->n - 1]->n_samples[s];
	return rc;
}

static int add_mixed_sets(struct mixed *d, const struct dataset_opts *o, struct err *err)
{
	const char *at = o->path, *end;
	int rc = 0;

	for (; !rc && at; at = end ? end + 2 : NULL) {
		char path[SPEC_BYTES];

		end = strstr(at, "::");
		if (snprintf(path, sizeof(path), "%.*s", end ? (int)(end - at) : (int)strlen(at), at) >=
		    (int)sizeof(path))
			return err_set(err, ERR_USAGE, "%.300s: is too long", at);
		rc = add_mixed_set(d, o, path, err);
	}
	if (!rc && d->n < 2)
		return err_set(err, ERR_USAGE, "--mix: --data-path names only one set: join several by ::");
	return rc;
}

/* Fills the set's properties and hash. All sets share the tokenizer and seq_len. */
static void describe_mix(struct mixed *d, const uint32_t *weight, int64_t epoch_samples)
{
	struct dataset *b = &d->base;
	struct sha256 sum;
	char hex[65];

	b->seq_len = d->set[0]->seq_len;
	b->vocab = d->set[0]->vocab;
	memcpy(b->tokenizer, d->set[0]->tokenizer, sizeof(b->tokenizer));
	for (int s = 0; s < SPLIT_COUNT; s++)
		b->n_samples[s] = d->first[s][d->n];
	for (int i = 0; i < d->n; i++)
		d->part[i] = (struct dataset_part){ .first = d->first[SPLIT_TRAIN][i],
						    .n = d->set[i]->n_samples[SPLIT_TRAIN],
						    .weight = weight[i] };
	b->part = d->part;
	b->n_parts = d->n;
	b->epoch_samples = epoch_samples ? epoch_samples : b->n_samples[SPLIT_TRAIN];
	sha256_init(&sum);
	mixed_sum(b, SPLIT_TRAIN, &sum);
	sha256_end(&sum, hex);
	snprintf(b->hash, sizeof(b->hash), "mix-%.32s", hex);
}

int token_mix_open(struct dataset **ret, const struct dataset_opts *o,
	     int (*open_one)(struct dataset **ret, const struct dataset_opts *o, struct err *err), struct err *err)
{
	struct mixed *d = calloc(1, sizeof(*d));
	int rc;

	if (!d || !(d->base.path = strdup(o->path))) {
		free(d);
		return err_set(err, ERR_NOMEM, "out of memory: %.300s", o->path);
	}
	d->base.ops = &dataset_mix;
	d->base.kind = SAMPLE_TOKENS;
	d->open_one = open_one;
	rc = add_mixed_sets(d, o, err);
	if (!rc && d->n != o->n_mix)
		rc = err_set(err, ERR_USAGE, "--mix: %d weights for the %d sets of --data-path", o->n_mix, d->n);
	if (!rc && d->first[SPLIT_TRAIN][d->n] > DATASET_SAMPLES_MAX)
		rc = err_set(err, ERR_USAGE, "%.300s: has %lld samples: expected at most %lld", o->path,
			     (long long)d->first[SPLIT_TRAIN][d->n], (long long)DATASET_SAMPLES_MAX);
	if (rc) {
		mixed_close(&d->base);
		return rc;
	}
	describe_mix(d, o->mix, o->epoch_samples);
	*ret = &d->base;
	return 0;
}

/* Selected by dataset_opts.mix, never detected in a folder. */
const struct dataset_ops dataset_mix = {
	.name = "mix",
	.read = mixed_read,
	.close = mixed_close,
	.weight = mixed_weight,
	.where = mixed_where,
	.sum = mixed_sum,
};
