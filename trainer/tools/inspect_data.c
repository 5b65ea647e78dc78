/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_data.c: `dptrain inspect`: the account of a data set, and its first samples with their labels and sizes. */
#include <jansson.h>
#include <stdlib.h>

#include "trainer/data/formats/formats.h"
#include "tracker/mem/mem.h"
#include "trainer/data/pictures/picture.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/program/workload.h"
#include "trainer/tools/subcommands.h"

#define SAMPLES_SHOWN 4	   /* samples shown of each split */
#define TOKENS_SHOWN 12	   /* tokens shown of a sample */
#define SEQ_LEN 1024	   /* default of --seq-len */
#define IMAGE_SIZE 224	   /* default of --image-size */
#define ACCOUNT_NAMES 1000 /* names of classes in JSON */
#define FILE_BYTES_MAX ((size_t)1 << 30)

struct inspection {
	const struct run_config *cfg;
	struct dataset *data;
	struct picture *picture;
	void *pixels, *scratch;
	int32_t *tokens, *targets, *positions;
	struct dataset_file file;
	struct buf *out;
	json_t *samples; /* with --json */
};

/* What is shown of a sample. */
struct inspected_sample {
	enum split split;
	int64_t index;
	char where[320];
	int32_t label; /* -1: none */
	int width, height;
	size_t bytes;	/* as stored; 0: unknown */
	struct err why; /* it is unreadable */
};

/* Opens the set of any kind as a training would, but for what is only refused there. */
static int open_inspected_set(struct inspection *i, struct err *err)
{
	const struct run_config *cfg = i->cfg;
	struct dataset_opts o = workload_data_opts(cfg);
	uint32_t mix[MIX_PARTS_MAX];
	int rc = cfg->mix ? mix_parse(mix, &o.n_mix, "--mix", cfg->mix, err) : 0;

	o.mix = cfg->mix ? mix : NULL;
	o.any_kind = true;
	o.inspected = true;
	if (!o.seq_len)
		o.seq_len = SEQ_LEN;
	if (!o.image_size)
		o.image_size = IMAGE_SIZE;
	if (!o.tokenizer)
		o.tokenizer = cfg->init_from;
	return rc ? rc : formats_open(&i->data, &o, err);
}

static void allocate_sample_buffers(struct inspection *i)
{
	const struct dataset *d = i->data;
	const size_t tokens = d->kind == SAMPLE_TOKENS ? (size_t)d->seq_len : 0;
	const size_t pixels = tokens ? 0 : (size_t)d->height * (size_t)d->width * (size_t)d->channels;

	i->picture = picture_new();
	buf_init(&i->file.bytes, FILE_BYTES_MAX);
	i->pixels = mem_alloc(pixels * dtype_bytes(d->dtype) + 1);
	i->tokens = mem_alloc((tokens + 1) * sizeof(*i->tokens));
	i->targets = mem_alloc((tokens + 1) * sizeof(*i->targets));
	i->positions = mem_array(tokens + 1, sizeof(*i->positions));
	if (d->ops->hand_new)
		i->scratch = d->ops->hand_new();
}

/* Reads a picture as it is stored, to know its own size. */
static int inspect_picture(struct inspection *i, const struct dataset_read *r, struct inspected_sample *ret,
			   struct err *err)
{
	struct picture_size size;
	struct picture_input in;
	int rc = i->data->ops->file(i->data, r, &i->file, err);

	if (rc)
		return rc;
	ret->label = i->file.label;
	ret->bytes = i->file.bytes.len;
	in = (struct picture_input){ ret->where, (const uint8_t *)i->file.bytes.data, i->file.bytes.len };
	rc = picture_load_memory(i->picture, &in, &size, err);
	if (!rc) {
		ret->width = size.width;
		ret->height = size.height;
	}
	return rc;
}

/* Reads a sample, and its own size if it is a picture. */
static void inspect_sample(struct inspection *i, enum split split, int64_t index, struct inspected_sample *ret)
{
	const struct dataset *d = i->data;
	struct dataset_read r = { .split = split,
				  .index = index,
				  .pixels = i->pixels,
				  .label = &ret->label,
				  .tokens = i->tokens,
				  .targets = i->targets,
				  .positions = i->positions,
				  .hand = i->scratch };
	int rc = 0;

	*ret = (struct inspected_sample){ .split = split,
					  .index = index,
					  .label = -1,
					  .width = d->width,
					  .height = d->height,
					  .why = ERR_INIT };
	dataset_where(d, split, index, ret->where, sizeof(ret->where));
	if (d->ops->file)
		rc = inspect_picture(i, &r, ret, &ret->why);
	if (!rc)
		dataset_read(d, &r, &ret->why);
}

static const char *class_name(const struct dataset *d, int32_t label)
{
	return label >= 0 && label < d->n_class_names ? d->class_names[label] : "";
}

static void print_inspected_sample(struct inspection *i, const struct inspected_sample *s)
{
	const struct dataset *d = i->data;
	const char *name = class_name(d, s->label);
	const size_t from = i->out->len;

	buf_addf(i->out, "%s %lld: %s%s", split_name(s->split), (long long)s->index, s->where, *s->where ? ": " : "");
	if (s->why.text[0]) {
		buf_addf(i->out, "unreadable: %s", s->why.text);
	} else if (d->kind == SAMPLE_TOKENS) {
		buf_adds(i->out, "tokens");
		for (int64_t t = 0; t < d->seq_len && t < TOKENS_SHOWN; t++)
			buf_addf(i->out, " %d", i->tokens[t]);
		buf_adds(i->out, d->seq_len > TOKENS_SHOWN ? " …" : "");
	} else {
		buf_addf(i->out, "%d x %d pixels", s->width, s->height);
		if (s->bytes)
			buf_addf(i->out, ", %zu bytes", s->bytes);
		buf_addf(i->out, *name ? ", label %d (%s)" : ", label %d%s", s->label, name);
	}
	dataset_end_line(i->out, from);
}

/* Returns the length of the conversation that was read, without padding. */
static int64_t conversation_length(const struct inspection *i)
{
	int64_t n = i->data->seq_len;

	while (n > 1 && !i->positions[n - 1])
		n--;
	return n;
}

/* Adds a sample; of a conversation all tokens, and whether each is trained. */
static void add_inspected_json(struct inspection *i, const struct inspected_sample *s)
{
	const struct dataset *d = i->data;
	json_t *o = json_pack("{s:s, s:I}", "split", split_name(s->split), "index", (json_int_t)s->index), *tokens;

	json_object_set_new(o, "where", json_string(s->where));
	if (s->why.text[0]) {
		json_object_set_new(o, "unreadable", json_string(s->why.text));
	} else if (d->kind == SAMPLE_TOKENS) {
		const int64_t n = d->ops->say		      ? conversation_length(i)
				  : d->seq_len < TOKENS_SHOWN ? d->seq_len
							      : TOKENS_SHOWN;

		tokens = json_array();
		for (int64_t t = 0; t < n; t++)
			json_array_append_new(tokens, json_integer(i->tokens[t]));
		json_object_set_new(o, "tokens", tokens);
		tokens = d->ops->say ? json_array() : NULL;
		for (int64_t t = 0; t < n && tokens; t++)
			json_array_append_new(tokens, json_boolean(t && i->targets[t - 1] >= 0));
		json_object_set_new(o, "trained", tokens);
	} else {
		json_object_set_new(o, "label", json_integer(s->label));
		json_object_set_new(o, "class", json_string(class_name(d, s->label)));
		json_object_set_new(o, "width", json_integer(s->width));
		json_object_set_new(o, "height", json_integer(s->height));
	}
	json_array_append_new(i->samples, o);
}

/* Prints a conversation token by token: its number, its text, and a star if it is trained. */
static int print_conversation(struct inspection *i, struct err *err)
{
	const char *folder = i->cfg->tokenizer ? i->cfg->tokenizer : i->cfg->init_from;
	struct inspected_sample sample;
	struct tokenizer *t;
	int64_t n;
	int rc = tokenizer_open(&t, folder, err);

	if (rc)
		return rc;
	inspect_sample(i, SPLIT_TRAIN, 0, &sample);
	n = conversation_length(i);
	buf_addf(i->out, "%s, token by token (*: trained)\n", sample.where);
	for (int64_t k = 0; k < n; k++) {
		size_t bytes = 0;
		const char *text = tokenizer_bytes(t, i->tokens[k], k == 0, &bytes);
		json_t *shown = json_stringn(text ? text : "", bytes);
		char *quoted = shown ? json_dumps(shown, JSON_ENCODE_ANY) : NULL;

		buf_addf(i->out, "%c %6d ", k && i->targets[k - 1] >= 0 ? '*' : ' ', i->tokens[k]);
		if (quoted)
			buf_adds(i->out, quoted);
		for (size_t b = 0; !quoted && b < bytes; b++)
			buf_addf(i->out, "\\x%02x", (unsigned char)text[b]);
		buf_addc(i->out, '\n');
		free(quoted);
		json_decref(shown);
	}
	tokenizer_close(t);
	return 0;
}

static void inspect_first_samples(struct inspection *i)
{
	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t n = 0; n < i->data->n_samples[s] && n < SAMPLES_SHOWN; n++) {
			struct inspected_sample sample;

			inspect_sample(i, (enum split)s, n, &sample);
			if (i->cfg->json)
				add_inspected_json(i, &sample);
			else
				print_inspected_sample(i, &sample);
		}
}

static void add_account_line(void *user, bool warns, const char *text)
{
	struct buf *out = user;
	const size_t from = out->len;

	(void)warns;
	buf_adds(out, text);
	dataset_end_line(out, from);
}

/* Prints a line about the set, and its account. */
static void print_inspected_account(struct inspection *i)
{
	struct dataset *d = i->data;
	const struct dataset_facts f = dataset_facts(d, SPLIT_TRAIN);

	buf_addf(i->out, "%s: %s, %lld training and %lld evaluation samples of ", d->path, f.format,
		 (long long)d->n_samples[SPLIT_TRAIN], (long long)d->n_samples[SPLIT_VAL]);
	if (d->kind == SAMPLE_TOKENS)
		buf_addf(i->out, "%lld tokens, vocabulary of %lld\n", (long long)d->seq_len, (long long)d->vocab);
	else
		buf_addf(i->out, "%d x %d x %d%s%s\n", d->height, d->width, d->channels,
			 d->columns && *d->columns ? ", columns " : "", d->columns ? d->columns : "");
	if (d->account.hidden)
		buf_addf(i->out, "%lld hidden\n", (long long)d->account.hidden);
	dataset_tell(d, DATA_ACCOUNT_REASONS, add_account_line, i->out);
}

/* Adds the account and the samples as one JSON object. */
static int print_inspection_json(struct inspection *i, struct err *err)
{
	json_t *root = NULL;
	struct buf account;
	char *text = NULL;
	int rc;

	buf_init(&account, (size_t)1 << 24);
	rc = dataset_account_json(i->data, ACCOUNT_NAMES, &account, err);
	if (!rc)
		root = json_loadb(account.data, account.len, 0, NULL);
	json_object_set(root, "first", i->samples);
	if (root)
		text = json_dumps(root, JSON_INDENT(2));
	if (!rc && !text)
		rc = err_nomem(err, "the account");
	if (text)
		buf_addf(i->out, "%s\n", text);
	free(text);
	json_decref(root);
	buf_done(&account);
	return rc;
}

static void close_inspection(struct inspection *i)
{
	if (i->scratch)
		i->data->ops->hand_free(i->scratch);
	dataset_close(i->data);
	picture_free(i->picture);
	free(i->pixels);
	free(i->tokens);
	free(i->targets);
	free(i->positions);
	buf_done(&i->file.bytes);
	json_decref(i->samples);
}

int inspect_data(const struct run_config *cfg, struct buf *out, struct err *err)
{
	struct inspection i = { .cfg = cfg, .out = out, .samples = cfg->json ? json_array() : NULL };
	int rc = cfg->data_path ? open_inspected_set(&i, err)
				: err_set(err, ERR_USAGE, "dptrain inspect needs --data-path SET");

	if (!rc)
		allocate_sample_buffers(&i);
	if (!rc && !cfg->json)
		print_inspected_account(&i);
	if (!rc)
		inspect_first_samples(&i);
	if (!rc && !cfg->json && i.data->ops->say)
		rc = print_conversation(&i, err);
	if (!rc && cfg->json)
		rc = print_inspection_json(&i, err);
	close_inspection(&i);
	return rc;
}
