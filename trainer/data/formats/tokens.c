/* tokens.c: train.tokens and val.tokens as windows of seq_len tokens, one behind the other; each window's targets are
 * its tokens moved on by one. The last window is shorter: the rest of it is padding. Or as whole documents (pack.h). */
#include "trainer/data/formats/tokens.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/pack.h"
#include "trainer/data/words/token_file.h"

#define PATH_BYTES 4200

struct tokens {
	struct dataset base;
	struct token_file file[SPLIT_COUNT];
	struct pack *pack[SPLIT_COUNT]; /* NULL: windows */
	_Atomic bool unseen; /* that there is nothing to evaluate, though some was asked for, has not been said */
};

static void tokens_close(struct dataset *base)
{
	struct tokens *d = (struct tokens *)base;

	for (int s = 0; s < SPLIT_COUNT; s++)
		token_file_close(&d->file[s]);
	for (int s = 0; s < SPLIT_COUNT; s++)
		pack_free(d->pack[s]);
	free(d->base.path);
	free(d);
}

/* Targets of a window: all that there are behind its first token. */
static int64_t tokens_weight(const struct dataset *base, enum split split, int64_t index)
{
	const struct tokens *d = (const struct tokens *)base;
	int64_t left = d->file[split].count - 1 - index * base->seq_len;

	if (d->pack[split])
		return pack_weight(d->pack[split], index);
	return left < base->seq_len ? left : base->seq_len;
}

static int tokens_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	const struct tokens *d = (const struct tokens *)base;
	const struct token_file *f = &d->file[r->split];
	int64_t first = r->index * base->seq_len, n = tokens_weight(base, r->split, r->index);

	(void)err;
	if (d->pack[r->split]) {
		pack_read(d->pack[r->split], r->index, r->tokens, r->targets);
		return 0;
	}
	token_file_read(f, first, n, r->tokens);
	memcpy(r->targets, r->tokens + 1, (size_t)(n - 1) * sizeof(*r->targets));
	token_file_read(f, first + n, 1, r->targets + n - 1);
	for (int64_t i = n; i < base->seq_len; i++) {
		r->tokens[i] = 0;
		r->targets[i] = -1;
	}
	return 0;
}

static void tokens_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	const struct tokens *d = (const struct tokens *)base;
	const char *name = split == SPLIT_TRAIN ? TOKENS_TRAIN : TOKENS_VAL;

	if (d->pack[split])
		snprintf(ret, bytes, "%s", name);
	else
		snprintf(ret, bytes, "%s: from token %lld on", name, (long long)(index * base->seq_len));
}

static bool tokens_notice(struct dataset *base, char *ret, size_t bytes)
{
	struct tokens *d = (struct tokens *)base;

	if (!atomic_exchange(&d->unseen, false))
		return false;
	snprintf(ret, bytes,
		 "%.300s: holds no " TOKENS_VAL ": nothing is evaluated. Tokens are not split anew by --val-split; "
		 "dptrain tokenize --val-split writes both files, --val-split 0 ends this line", base->path);
	return true;
}

static bool tokens_probe(const char *path)
{
	char file[PATH_BYTES];

	snprintf(file, sizeof(file), "%s/" TOKENS_TRAIN, path);
	return access(file, F_OK) == 0;
}

static int cut_samples(struct tokens *d, enum split s, bool documents, const char *path, struct err *err)
{
	const struct token_file *f = &d->file[s];
	int rc = documents && f->count > 1 ? pack_new(&d->pack[s], f, d->base.seq_len, path, err) : 0;

	if (rc)
		return rc;
	d->base.n_samples[s] = f->count < 2 ? 0 : (f->count - 1 + d->base.seq_len - 1) / d->base.seq_len;
	if (d->pack[s])
		d->base.n_samples[s] = pack_samples(d->pack[s]);
	if (d->base.n_samples[s] > DATASET_SAMPLES_MAX)
		return err_set(err, ERR_USAGE,
			       "%.300s: %lld samples of %lld tokens: at most %lld are possible; a longer "
			       "--seq-len makes fewer",
			       path, (long long)d->base.n_samples[s], (long long)d->base.seq_len,
			       (long long)DATASET_SAMPLES_MAX);
	return 0;
}

static int open_file(struct tokens *d, enum split s, const char *folder, bool documents, struct err *err)
{
	struct token_file *f = &d->file[s];
	char path[PATH_BYTES];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", folder, s == SPLIT_TRAIN ? TOKENS_TRAIN : TOKENS_VAL);
	if (s == SPLIT_VAL && access(path, F_OK))
		return 0;
	rc = token_file_open(f, path, err);
	if (rc)
		return rc;
	if (s == SPLIT_TRAIN && f->count < 2)
		return err_set(err, ERR_USAGE, "%.300s: holds %lld tokens: at least 2 are needed", path,
			       (long long)f->count);
	if (s == SPLIT_VAL &&
	    (f->vocab != d->file[SPLIT_TRAIN].vocab || strcmp(f->tokenizer, d->file[SPLIT_TRAIN].tokenizer)))
		return err_set(err, ERR_USAGE, "%.300s: made with another tokenizer than " TOKENS_TRAIN " beside it",
			       path);
	return cut_samples(d, s, documents, path, err);
}

int tokens_open(struct dataset **ret, const char *folder, const struct dataset_opts *o, struct err *err)
{
	struct tokens *d = calloc(1, sizeof(*d));
	int rc = 0;

	if (!d || !(d->base.path = strdup(o->path))) {
		free(d);
		return err_set(err, ERR_NOMEM, "out of memory: %.300s", o->path);
	}
	d->base.ops = &dataset_tokens;
	d->base.kind = SAMPLE_TOKENS;
	d->base.seq_len = o->seq_len > 0 ? o->seq_len : 1;
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		rc = open_file(d, (enum split)s, folder, o->pack_documents, err);
	if (rc) {
		tokens_close(&d->base);
		return rc;
	}
	d->unseen = !d->file[SPLIT_VAL].map.bytes && o->val_share > 0;
	d->base.vocab = d->file[SPLIT_TRAIN].vocab;
	snprintf(d->base.tokenizer, sizeof(d->base.tokenizer), "%.70s", d->file[SPLIT_TRAIN].tokenizer);
	snprintf(d->base.hash, sizeof(d->base.hash), "tokens-%08x-%08x%s", token_file_sum(&d->file[SPLIT_TRAIN]),
		 d->file[SPLIT_VAL].map.bytes ? token_file_sum(&d->file[SPLIT_VAL]) : 0,
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
	.expects = TOKENS_TRAIN " and " TOKENS_VAL " (from dptrain tokenize)",
	.probe = tokens_probe,
	.open = tokens_open_folder,
	.read = tokens_read,
	.close = tokens_close,
	.notice = tokens_notice,
	.weight = tokens_weight,
	.where = tokens_where,
};
