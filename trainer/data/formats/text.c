/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: language-model sets. A folder of token files (token_file.h) is read as consecutive windows of seq_len tokens,
 * or as packed documents. A folder of texts (documents.h) is tokenized once, into a cache folder named after the
 * tokenizer and the texts (names, sizes and times), and then opened like a folder of tokens. A mix concatenates
 * several such sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/corpus/tokenize.h"
#include "trainer/data/formats/document_pack.h"
#include "trainer/data/formats/formats.h"

/* ---- folders of token files ---- */

#define TOKENS_TRAIN "train.tokens"
#define TOKENS_VAL "val.tokens"

#define PATH_BYTES CACHE_DIR_PATH_BYTES

struct token_dataset {
	struct dataset base;
	struct token_set set[SPLIT_COUNT];
	struct document_pack *pack[SPLIT_COUNT]; /* NULL: windows */
	_Atomic bool unseen; /* validation was requested but is missing, and no notice was given yet */
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
		document_pack_read(d->pack[r->split], r->index, r);
		return 0;
	}
	for (int64_t i = 0; r->positions && i < base->seq_len; i++)
		r->positions[i] = (int32_t)i;
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

/* folder: contains the token files; o->path: as the user named the set, for messages. A window's targets are its tokens
 * shifted by one. The last window is padded. */
static int tokens_open(struct dataset **ret, const char *folder, const struct dataset_opts *o, struct err *err)
{
	struct token_dataset *d = mem_zalloc(sizeof(*d));
	int rc = 0;

	d->base.path = mem_strdup(o->path);
	d->base.ops = &dataset_tokens;
	d->base.kind = SAMPLE_TOKENS;
	d->base.seq_len = o->seq_len > 0 ? o->seq_len : 1;
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		rc = open_token_split(d, (enum split)s, folder, o->pack_documents, err);
	if (rc) {
		tokens_close(&d->base);
		return rc;
	}
	tokenize_read_left_out(folder, &d->base.account);
	d->base.documents = o->pack_documents;
	d->unseen = !d->set[SPLIT_VAL].n && o->val_share > 0;
	d->base.vocab = d->set[SPLIT_TRAIN].vocab;
	d->base.separator = d->set[SPLIT_TRAIN].separator;
	snprintf(d->base.tokenizer, sizeof(d->base.tokenizer), "%.70s", d->set[SPLIT_TRAIN].tokenizer);
	snprintf(d->base.hash, sizeof(d->base.hash), "tokens-%08x-%08x%s", token_set_sum(&d->set[SPLIT_TRAIN]),
		 d->set[SPLIT_VAL].n ? token_set_sum(&d->set[SPLIT_VAL]) : 0, o->pack_documents ? "-packed" : "");
	*ret = &d->base;
	return 0;
}

static enum data_account_fate decide_token_fate(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	const struct token_dataset *d = user;

	(void)why;
	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int i = 0; i < d->set[s].n; i++)
			if (!strcmp(name, d->set[s].name[i]))
				return DATA_ACCOUNT_USED;
	if (!strcmp(name, TOKENIZE_LEFT_OUT) || (!strcmp(name, "meta.pkl") && !d->base.tokenizer[0]))
		return DATA_ACCOUNT_USED;
	return DATA_ACCOUNT_LEFT;
}

static int tokens_open_folder(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	int rc = o->text_field ? err_set(err, ERR_USAGE, "--text-field: %.300s has tokens already: omit it", o->path)
			       : tokens_open(ret, o->path, o, err);

	if (!rc)
		data_account_walk(&(*ret)->account, o->path, &(struct data_account_rule){ decide_token_fate, *ret });
	return rc;
}

const struct dataset_ops dataset_tokens = {
	.name = "tokens",
	.kind = SAMPLE_TOKENS,
	.expects = TOKENS_TRAIN " or train-*.tokens (dptrain tokenize), *train*.bin (nanoGPT, llm.c)",
	.probe = tokens_probe,
	.open = tokens_open_folder,
	.read = tokens_read,
	.close = tokens_close,
	.notice = tokens_notice,
	.weight = tokens_weight,
	.where = tokens_where,
};

/* ---- folders of texts ---- */

static bool text_probe(const char *path)
{
	enum text_packing packing;
	struct texts t;

	if (texts_kind(path, &packing) == TEXT_TABLE ||
	    texts_find(&t, path, &(struct texts_opts){ .incomplete = true }, NULL))
		return false;
	texts_done(&t);
	return true;
}

/* Hashes everything that the cached tokens depend on to 16 hex digits. */
static int make_token_cache_key(const struct texts *t, const struct tokenizer *tokenizer, const struct dataset_opts *o,
				char ret[17], struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, SIZE_MAX);
	/* Key version 1 is for token files that may lack document ends; only --pack documents needs version 2. */
	buf_addf(&b, "%d %s %g", o->pack_documents ? 2 : 1, tokenizer_name(tokenizer), t->has_val ? 0 : o->val_share);
	if (o->text_field)
		buf_addf(&b, " field %s", o->text_field);
	rc = texts_key(t, &b, ret, err);
	buf_done(&b);
	return rc;
}

struct text_filling {
	const struct dataset_opts *o;
	const struct texts *texts;
	const struct tokenizer *tokenizer;
};

static int fill_token_folder(void *user, const char *folder, struct err *err)
{
	const struct text_filling *f = user;
	struct tokenize_made made;

	return tokenize(&(struct tokenize_opts){ .texts = f->texts,
						 .tokenizer = f->tokenizer,
						 .out = folder,
						 .val_share = f->o->val_share,
						 .field = f->o->text_field },
			&made, err);
}

/* Returns the folder of the tokens, after tokenizing if needed. */
static int prepare_text_tokens(const struct dataset_opts *o, const struct texts *t, char ret[PATH_BYTES],
			       struct err *err)
{
	struct text_filling f = { .o = o, .texts = t };
	struct tokenizer *tokenizer;
	char key[17];
	int rc = tokenizer_open(&tokenizer, o->tokenizer ? o->tokenizer : "bytes", err);

	if (rc)
		return rc;
	f.tokenizer = tokenizer;
	rc = make_token_cache_key(t, tokenizer, o, key, err);
	if (!rc)
		rc = cache_dir_fill(&(struct cache_filling){ o->path, key, TOKENS_TRAIN, fill_token_folder, &f }, ret,
				    err);
	tokenizer_close(tokenizer);
	return rc;
}

static int text_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	char folder[PATH_BYTES];
	struct texts t;
	int rc = texts_find(&t, o->path, &(struct texts_opts){ .timeout_s = o->data_timeout_s }, err);

	if (rc)
		return rc;
	rc = prepare_text_tokens(o, &t, folder, err);
	if (!rc)
		rc = tokens_open(ret, folder, o, err);
	if (!rc)
		data_account_add(&(*ret)->account, &t.account, "");
	texts_done(&t);
	return rc;
}

const struct dataset_ops dataset_text = {
	.name = "text",
	.kind = SAMPLE_TOKENS,
	.expects = "*.txt, *.jsonl (texts, conversations)",
	.probe = text_probe,
	.open = text_open,
};

/* ---- mixes: the sampler decides how often each set is drawn (loader/sampler.h) ---- */

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

static bool mixed_notice(struct dataset *base, char *ret, size_t bytes)
{
	struct mixed *d = (struct mixed *)base;

	for (int i = 0; i < d->n; i++)
		if (dataset_notice(d->set[i], ret, bytes))
			return true;
	return false;
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
	b->separator = d->set[0]->separator;
	memcpy(b->tokenizer, d->set[0]->tokenizer, sizeof(b->tokenizer));
	for (int s = 0; s < SPLIT_COUNT; s++)
		b->n_samples[s] = d->first[s][d->n];
	for (int i = 0; i < d->n; i++)
		b->documents |= d->set[i]->documents;
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
	struct mixed *d = mem_zalloc(sizeof(*d));
	int rc;

	d->base.path = mem_strdup(o->path);
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
	for (int i = 0; i < d->n; i++)
		data_account_add(&d->base.account, &d->set[i]->account, d->set[i]->path);
	*ret = &d->base;
	return 0;
}

/* Selected by dataset_opts.mix, never detected in a folder. */
const struct dataset_ops dataset_mix = {
	.name = "mix",
	.read = mixed_read,
	.close = mixed_close,
	.weight = mixed_weight,
	.notice = mixed_notice,
	.where = mixed_where,
	.sum = mixed_sum,
};
