/* token_folder.c: train.tokens and val.tokens, or several files of each (token_set.h), as consecutive windows of
 * seq_len tokens. A window's targets are its tokens shifted by one. The last window is padded. Or packed whole
 * documents (document_pack.h). */
#include "trainer/data/formats/token_folder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/document_pack.h"
#include "trainer/data/tokenizer/token_set.h"

#define PATH_BYTES 4200

struct token_dataset {
	struct dataset base;
	struct token_set set[SPLIT_COUNT];
	struct document_pack *pack[SPLIT_COUNT]; /* NULL: windows */
	_Atomic bool unseen;		/* validation was requested but is missing, and no notice was given yet */
};

static void tokens_close(struct dataset *base)
{
	struct token_dataset *d = (struct token_dataset *)base;

	for (int s = 0; s < SPLIT_COUNT; s++)
		token_set_close(&d->set[s]);
	for (int s = 0; s < SPLIT_COUNT; s++)
		document_pack_free(d->pack[s]);
	free(d->base.path);
	free(d);
}

/* Number of targets in a window: the tokens after its first one. */
static int64_t tokens_weight(const struct dataset *base, enum split split, int64_t index)
{
	const struct token_dataset *d = (const struct token_dataset *)base;
	int64_t left = d->set[split].count - 1 - index * base->seq_len;

	if (d->pack[split])
		return document_pack_weight(d->pack[split], index);
	return left < base->seq_len ? left : base->seq_len;
}

static int tokens_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	const struct token_dataset *d = (const struct token_dataset *)base;
	const struct token_set *set = &d->set[r->split];
	int64_t first = r->index * base->seq_len, n = tokens_weight(base, r->split, r->index);

	(void)err;
	if (d->pack[r->split]) {
		document_pack_read(d->pack[r->split], r->index, r->tokens, r->targets);
		return 0;
	}
	token_set_read(set, first, n, r->tokens);
	memcpy(r->targets, r->tokens + 1, (size_t)(n - 1) * sizeof(*r->targets));
	token_set_read(set, first + n, 1, r->targets + n - 1);
	for (int64_t i = n; i < base->seq_len; i++) {
		r->tokens[i] = 0;
		r->targets[i] = -1;
	}
	return 0;
}

static void tokens_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	const struct token_dataset *d = (const struct token_dataset *)base;

	if (d->pack[split])
		snprintf(ret, bytes, "%s%s", split_name(split),
			 d->set[split].n > 1 ? "-*" TOKEN_FILE_SUFFIX : TOKEN_FILE_SUFFIX);
	else
		token_set_where(&d->set[split], index * base->seq_len, ret, bytes);
}

static bool tokens_notice(struct dataset *base, char *ret, size_t bytes)
{
	struct token_dataset *d = (struct token_dataset *)base;

	if (!atomic_exchange(&d->unseen, false))
		return false;
	snprintf(ret, bytes,
		 "%.300s: has no " TOKENS_VAL ": nothing is evaluated: --val-split does not split tokens; "
		 "use dptrain tokenize --val-split, or omit this notice by --val-split 0",
		 base->path);
	return true;
}

static bool tokens_probe(const char *path)
{
	return token_set_probe(path, split_name(SPLIT_TRAIN));
}

static int count_token_samples(struct token_dataset *d, enum split s, bool documents, const char *path, struct err *err)
{
	const struct token_set *set = &d->set[s];
	int rc = documents && set->count > 1 ? document_pack_new(&d->pack[s], set, d->base.seq_len, path, err) : 0;

	if (rc)
		return rc;
	d->base.n_samples[s] = set->count < 2 ? 0 : (set->count - 1 + d->base.seq_len - 1) / d->base.seq_len;
	if (d->pack[s])
		d->base.n_samples[s] = document_pack_samples(d->pack[s]);
	if (d->base.n_samples[s] > DATASET_SAMPLES_MAX)
		return err_set(err, ERR_USAGE,
			       "%.300s: %lld samples of %lld tokens: expected at most %lld: use a longer "
			       "--seq-len",
			       path, (long long)d->base.n_samples[s], (long long)d->base.seq_len,
			       (long long)DATASET_SAMPLES_MAX);
	return 0;
}

static int open_token_split(struct token_dataset *d, enum split s, const char *folder, bool documents, struct err *err)
{
	struct token_set *set = &d->set[s];
	const struct token_set *train = &d->set[SPLIT_TRAIN];
	char path[PATH_BYTES];
	int rc = token_set_open(set, folder, split_name(s), err);

	if (rc || (!set->n && s == SPLIT_VAL))
		return rc;
	snprintf(path, sizeof(path), "%s/%s%s", folder, split_name(s),
		 set->n > 1 ? "-*" TOKEN_FILE_SUFFIX : TOKEN_FILE_SUFFIX);
	if (s == SPLIT_TRAIN && set->count < 2)
		return err_set(err, ERR_USAGE, "%.300s: has %lld tokens: expected at least 2", path,
			       (long long)set->count);
	if (s == SPLIT_VAL && (set->vocab != train->vocab || strcmp(set->tokenizer, train->tokenizer)))
		return err_set(err, ERR_USAGE,
			       "%.300s: was made with another tokenizer than " TOKENS_TRAIN " in the same folder",
			       path);
	return count_token_samples(d, s, documents, path, err);
}

int tokens_open(struct dataset **ret, const char *folder, const struct dataset_opts *o, struct err *err)
{
	struct token_dataset *d = calloc(1, sizeof(*d));
	int rc = 0;

	if (!d || !(d->base.path = strdup(o->path))) {
		free(d);
		return err_set(err, ERR_NOMEM, "out of memory: %.300s", o->path);
	}
	d->base.ops = &dataset_tokens;
	d->base.kind = SAMPLE_TOKENS;
	d->base.seq_len = o->seq_len > 0 ? o->seq_len : 1;
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		rc = open_token_split(d, (enum split)s, folder, o->pack_documents, err);
	if (rc) {
		tokens_close(&d->base);
		return rc;
	}
	d->unseen = !d->set[SPLIT_VAL].n && o->val_share > 0;
	d->base.vocab = d->set[SPLIT_TRAIN].vocab;
	snprintf(d->base.tokenizer, sizeof(d->base.tokenizer), "%.70s", d->set[SPLIT_TRAIN].tokenizer);
	snprintf(d->base.hash, sizeof(d->base.hash), "tokens-%08x-%08x%s", token_set_sum(&d->set[SPLIT_TRAIN]),
		 d->set[SPLIT_VAL].n ? token_set_sum(&d->set[SPLIT_VAL]) : 0,
		 o->pack_documents ? "-packed" : "");
	*ret = &d->base;
	return 0;
}

static int tokens_open_folder(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	return tokens_open(ret, o->path, o, err);
}

const struct dataset_ops dataset_tokens = {
	.name = "tokens",
	.expects = TOKENS_TRAIN " and " TOKENS_VAL ", or train-*.tokens and val-*.tokens (from dptrain tokenize)",
	.probe = tokens_probe,
	.open = tokens_open_folder,
	.read = tokens_read,
	.close = tokens_close,
	.notice = tokens_notice,
	.weight = tokens_weight,
	.where = tokens_where,
};
