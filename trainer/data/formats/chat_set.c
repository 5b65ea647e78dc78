/* SPDX-License-Identifier: Apache-2.0 */
/* chat_set.c: conversations. Their files are made into marked tokens (chat.h) once, in a cache folder named after the
 * files, the tokenizer, the template and what is trained. A sample is one conversation, padded; a target that is not
 * trained is -1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/mem/mem.h"
#include "trainer/data/chat/chat.h"
#include "trainer/data/corpus/documents.h"
#include "trainer/data/corpus/job_ring.h"
#include "trainer/data/corpus/tokenize.h"
#include "trainer/data/formats/pieces.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/tokenizer/token_file.h"

#define NOTES "notes.json"
#define ROUND 64 /* --seq-len that is derived */

/* A split: its tokens, and the samples dealt to it. */
struct chat_rows {
	struct token_set set;
	struct pieces pieces;
};

struct chat_set {
	struct dataset base;
	struct chat_rows split[SPLIT_COUNT];
	json_t *notes; /* mapping, records, tokens, trained, missed */
	int64_t longest, n_long;
	char notice[400], long_notice[400], ends_notice[CHAT_NOTICE_BYTES];
};

/* ---- making tokens ---- */

#define JOB_BYTES ((size_t)1 << 18) /* of records: a job this large is submitted */

struct chat_record {
	int file;	/* of the texts */
	int64_t number; /* in its file, from 1 */
	size_t bytes, tokens;
	int64_t trained, missed;	  /* as in struct chat_sample */
	char why[CONVERSATION_WHY_BYTES]; /* … */
};

struct chat_filling {
	const struct texts *texts;
	struct chat *chat;
	struct token_writer *to;
	struct job_ring *ring;	     /* parts of a job: struct chat_record */
	struct buf record;	     /* being read */
	enum conversation_form form; /* CONVERSATION_FORMS: before the first record */
	struct data_account left;
	int file;
	int64_t n, in_file; /* records, all and of this file */
	int64_t used, tokens, trained, missed;
};

static int begin_record(void *user, uint64_t bytes, struct err *err)
{
	struct chat_filling *f = user;

	(void)bytes;
	(void)err;
	buf_reset(&f->record);
	return 0;
}

static int add_record_bytes(void *user, const char *text, size_t n, struct err *err)
{
	struct chat_filling *f = user;

	(void)err;
	buf_add(&f->record, text, n);
	return 0;
}

static int refuse_first_record(const char *name, const json_t *record, struct err *err)
{
	const char *key;
	json_t *value;
	struct buf keys;
	int rc;

	buf_init(&keys, 300);
	json_object_foreach((json_t *)record, key, value)
		buf_addf(&keys, "%s%.40s", keys.len ? ", " : "", key);
	rc = err_set(
		err, ERR_USAGE,
		"%.200s: its first record has %.200s: expected messages, conversations, instruction and output, or "
		"prompt and completion",
		name, keys.len && !buf_failed(&keys) ? keys.data : "other members");
	buf_done(&keys);
	return rc;
}

static int refuse_no_object(const char *name, int64_t number, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.300s: record %lld is not a JSON object", name, (long long)number);
}

static int find_form(struct chat_filling *f, struct err *err)
{
	const char *name = f->texts->file[f->file].name;
	json_t *record = json_loadb(f->record.data, f->record.len, 0, NULL);
	int rc = json_is_object(record) ? 0 : refuse_no_object(name, f->in_file, err);

	f->form = conversation_form_of(record);
	if (!rc && f->form == CONVERSATION_FORMS)
		rc = refuse_first_record(name, record, err);
	json_decref(record);
	return rc;
}

/* Adds the record to the job being filled. */
static int end_record(void *user, struct err *err)
{
	struct chat_filling *f = user;
	struct encode_job *j = job_ring_filling(f->ring);
	const struct chat_record r = { .file = f->file, .number = ++f->in_file, .bytes = f->record.len };
	int rc = f->form == CONVERSATION_FORMS ? find_form(f, err) : 0;

	f->n++;
	buf_add(&j->text, f->record.data, f->record.len);
	buf_add(&j->parts, &r, sizeof(r));
	return rc || j->text.len < JOB_BYTES ? rc : job_ring_submit(f->ring, err);
}

static void *open_another_chat(const void *user)
{
	return chat_another(((const struct chat_filling *)user)->chat);
}

static void close_another_chat(void *chat)
{
	chat_close(chat);
}

static struct chat_record *records_of(const struct encode_job *j, size_t *ret_n)
{
	*ret_n = j->parts.len / sizeof(struct chat_record);
	return (struct chat_record *)(void *)j->parts.data;
}

/* Thread: makes tokens of the records of a job. */
static int encode_records(void *user, void *chat, struct encode_job *j, struct err *err)
{
	const struct chat_filling *f = user;
	struct chat_sample sample = { .trained = 0 };
	size_t n, at = 0;
	struct chat_record *r = records_of(j, &n);
	int rc = 0;

	buf_init(&sample.marked, SIZE_MAX);
	for (size_t i = 0; !rc && i < n; at += r[i++].bytes) {
		json_t *record = json_loadb(r[i].bytes ? j->text.data + at : "", r[i].bytes, 0, NULL);

		rc = json_is_object(record) ? chat_encode(chat, f->form, record, &sample, err)
					    : refuse_no_object(f->texts->file[r[i].file].name, r[i].number, err);
		json_decref(record);
		r[i].tokens = sample.marked.len / sizeof(int32_t);
		r[i].trained = sample.trained;
		r[i].missed = sample.missed;
		memcpy(r[i].why, sample.why, sizeof(r[i].why));
		buf_add(&j->tokens, sample.marked.data, sample.marked.len);
	}
	buf_done(&sample.marked);
	return rc;
}

/* Writes the tokens of a job and counts what is left out. */
static int take_records(void *user, const struct encode_job *j, struct err *err)
{
	struct chat_filling *f = user;
	size_t n;
	const struct chat_record *r = records_of(j, &n);
	const int32_t *marked = (const int32_t *)(const void *)j->tokens.data;
	char example[DATA_ACCOUNT_TEXT_BYTES];
	int rc = 0;

	for (size_t i = 0; !rc && i < n; marked += r[i++].tokens) {
		if (r[i].why[0]) {
			const char *name = f->texts->file[r[i].file].name + f->texts->file[r[i].file].below;

			snprintf(example, sizeof(example), "%.180s: record %lld", name, (long long)r[i].number);
			data_account_leave_samples(&f->left, 1, example, "%s", r[i].why);
			continue;
		}
		f->used++;
		f->tokens += (int64_t)r[i].tokens;
		f->trained += r[i].trained;
		f->missed += r[i].missed;
		rc = token_writer_add(f->to, marked, r[i].tokens, err);
		if (!rc)
			rc = token_writer_end(f->to, err);
	}
	return rc;
}

static const struct documents_sink record_sink = { begin_record, add_record_bytes, end_record, NULL };

static int walk_file_records(struct objects *store, int object, const struct documents_sink *to, struct err *err)
{
	const struct documents_opts o = { .store = store, .object = object, .field = "", .takes = conversation_takes };

	return documents_walk(&o, to, err);
}

/* Walks the records of all files, or those of one split. */
static int walk_records(struct chat_filling *f, enum split split, struct err *err)
{
	struct objects *store = objects_open(&(struct objects_opts){ .timeout_s = 0 });
	struct documents_sink sink = record_sink;
	int rc = 0;

	sink.user = f;
	for (int i = 0; rc >= 0 && i < f->texts->n; i++)
		rc = objects_add(store, f->texts->file[i].name, err);
	rc = rc < 0 ? rc : objects_measure(store, err);
	for (int i = 0; !rc && i < f->texts->n; i++) {
		f->file = i;
		f->in_file = 0;
		if (f->texts->file[i].val == (split == SPLIT_VAL))
			rc = walk_file_records(store, i, &sink, err);
	}
	objects_close(store);
	return rc ? rc : job_ring_finish(f->ring, err);
}

static int write_notes(const struct chat_filling *f, const char *folder, struct err *err)
{
	char path[CACHE_DIR_PATH_BYTES];
	json_t *notes = json_pack("{s:s, s:I, s:I, s:I, s:I}", "mapping", conversation_mapping(f->form), "records",
				  (json_int_t)f->used, "tokens", (json_int_t)f->tokens, "trained",
				  (json_int_t)f->trained, "missed", (json_int_t)f->missed);
	int rc = cache_dir_join(path, folder, NOTES) && !json_dump_file(notes, path, 0)
			 ? 0
			 : err_set(err, ERR_IO, "cannot write %.300s/" NOTES, folder);

	json_decref(notes);
	return rc;
}

/* Refuses a set of which nothing, or unexpectedly everything, is trained. */
static int check_trained(const struct chat_filling *f, struct err *err)
{
	const char *name = f->texts->file[0].name;
	struct buf why;
	int rc = 0;

	buf_init(&why, 300);
	data_account_say_left(&f->left, 1, &why);
	if (!f->n)
		rc = err_set(err, ERR_USAGE, "%.300s: has no records", name);
	else if (!f->used)
		rc = err_set(
			err, ERR_USAGE,
			"%.200s: none of its %lld records can be trained: %.200s: mend them, or see --chat-template, "
			"--train-on and --allow-special",
			name, (long long)f->n, why.data ? why.data : "");
	buf_done(&why);
	return rc;
}

/* Makes the token file of a split. The training split is the last: its file marks the folder as complete. */
static int fill_split(struct chat_filling *f, const char *folder, enum split split, struct err *err)
{
	const struct tokenizer *t = chat_tokenizer(f->chat);
	char path[CACHE_DIR_PATH_BYTES], name[32];
	int rc;

	snprintf(name, sizeof(name), "%s" TOKEN_FILE_SUFFIX, split_name(split));
	if (!cache_dir_join(path, folder, name))
		return err_set(err, ERR_USAGE, "%.300s…: the path is too long", folder);
	rc = token_writer_open(&f->to,
			       &(struct token_writer_opts){ .path = path,
							    .tokenizer = tokenizer_name(t),
							    .vocab = CHAT_TOKEN(tokenizer_vocab(t), 0),
							    .separator = -1 },
			       err);
	if (rc)
		return rc;
	rc = walk_records(f, split, err);
	if (!rc && split == SPLIT_TRAIN) {
		rc = check_trained(f, err);
		if (!rc)
			rc = write_notes(f, folder, err);
		if (!rc)
			rc = tokenize_write_left_out(folder, &f->left, err);
	}
	if (!rc && token_writer_count(f->to))
		rc = token_writer_commit(f->to, err);
	token_writer_close(f->to);
	return rc;
}

static int open_filling(struct chat_filling *f, struct err *err)
{
	const struct job_ring_opts o = { .open = open_another_chat,
					 .close = close_another_chat,
					 .run = encode_records,
					 .take = take_records,
					 .user = f };

	buf_init(&f->record, SIZE_MAX);
	return job_ring_new(&f->ring, &o, err);
}

static int fill_chat_folder(void *user, const char *folder, struct err *err)
{
	struct chat_filling *f = user;
	int rc = 0;

	if (mkdir(folder, 0777) && access(folder, W_OK))
		return err_set(err, ERR_IO, "cannot create the folder %.300s", folder);
	rc = open_filling(f, err);
	for (int s = SPLIT_COUNT - 1; !rc && s >= 0; s--)
		rc = fill_split(f, folder, (enum split)s, err);
	job_ring_free(f->ring);
	buf_done(&f->record);
	return rc;
}

/* Reads --template-date, or the last change of the files, as the seconds of its day. */
static int find_date(const struct dataset_opts *o, const struct texts *t, double *ret, struct err *err)
{
	struct stat st;
	time_t last = 0;

	for (int i = 0; i < t->n; i++)
		if (!stat(t->file[i].name, &st) && st.st_mtim.tv_sec > last)
			last = st.st_mtim.tv_sec;
	*ret = (double)(last - last % 86400);
	return o->template_date ? chat_parse_date(ret, o->template_date, err) : 0;
}

/* Returns the folder of a set's marked tokens, after making them if needed. Adds its files to the account. */
static int prepare_chat_tokens(struct chat_set *d, const struct dataset_opts *o, const char *path,
			       char folder[CACHE_DIR_PATH_BYTES], struct err *err)
{
	struct chat_opts chat = { .tokenizer = o->tokenizer,
				  .template_name = o->chat_template,
				  .train = (enum chat_train)o->train_on,
				  .allow_special = o->allow_special };
	struct chat_filling f = { .form = CONVERSATION_FORMS };
	struct texts t;
	struct buf about;
	char key[17];
	int rc;

	if (!o->tokenizer || !strcmp(o->tokenizer, "bytes"))
		return err_set(err, ERR_USAGE,
			       "%.300s: conversations need a tokenizer and its chat template: give --init-from or "
			       "--tokenizer a folder with tokenizer.json",
			       path);
	rc = texts_find(&t, path, &(struct texts_opts){ .records = true, .timeout_s = o->data_timeout_s }, err);
	if (rc)
		return rc;
	f.texts = &t;
	buf_init(&about, SIZE_MAX);
	rc = find_date(o, &t, &chat.date, err);
	if (!rc)
		rc = chat_open(&f.chat, &chat, err);
	if (!rc) {
		chat_compare_ends(f.chat, d->ends_notice);
		if (o->chat_template && !d->base.chat_template)
			d->base.chat_template = mem_strdup(chat_template_text(f.chat));
		chat_identify(f.chat, &about);
		rc = texts_key(&t, &about, key, err);
	}
	if (!rc)
		rc = cache_dir_fill(
			&(struct cache_filling){ path, key, "train" TOKEN_FILE_SUFFIX, fill_chat_folder, &f }, folder,
			err);
	if (!rc)
		data_account_add(&d->base.account, &t.account, "");
	if (!rc)
		tokenize_read_left_out(folder, &d->base.account);
	chat_close(f.chat);
	buf_done(&about);
	texts_done(&t);
	return rc;
}

/* ---- samples ---- */

static void count_lengths(struct chat_set *d, const struct chat_rows *r)
{
	for (int64_t i = 0; i < r->set.documents; i++) {
		int64_t begin, n = token_set_document(&r->set, i, &begin) - begin;

		d->longest = n > d->longest ? n : d->longest;
		d->n_long += n > d->base.seq_len;
	}
}

static bool has_target(const struct chat_rows *r, const struct document_piece *row)
{
	int32_t marked;

	for (int64_t i = row->begin + 1; i < row->begin + row->n + !row->ends; i++) {
		token_set_read(&r->set, i, 1, &marked);
		if (CHAT_IS_TRAINED(marked))
			return true;
	}
	return false;
}

/* Adds a conversation to a split: whole, in pieces that have targets, or not if it is too long. */
static void add_conversation(struct chat_set *d, const struct chat_rows *from, int64_t i, struct chat_rows *to)
{
	int64_t begin, end = token_set_document(&from->set, i, &begin);
	const int64_t most = d->base.seq_len;

	for (int64_t at = begin; at < end; at += most) {
		const int64_t n = end - at < most ? end - at : most;
		const struct document_piece row = { at, (uint32_t)n, (uint32_t)i, at + n == end };

		if (end - begin <= most || has_target(from, &row))
			mem_push(&to->pieces.piece, &to->pieces.n, &to->pieces.cap, row);
	}
}

static int refuse_long(struct chat_set *d, const struct dataset_opts *o, struct err *err)
{
	if (!d->n_long || o->long_samples != DATASET_LONG_REFUSE)
		return 0;
	snprintf(d->long_notice, sizeof(d->long_notice),
		 "%.200s: samples longer than %lld tokens: %lld, the longest has %lld: give --seq-len %lld, or "
		 "--long-samples drop or split",
		 d->base.path, (long long)d->base.seq_len, (long long)d->n_long, (long long)d->longest,
		 (long long)((d->longest + ROUND - 1) / ROUND * ROUND));
	return o->inspected ? 0 : err_set(err, ERR_USAGE, "%s", d->long_notice);
}

/* Deals the conversations to the splits: those of files for validation, else a share that the seed draws. */
static int deal_conversations(struct chat_set *d, const struct dataset_opts *o, struct err *err)
{
	const struct rng_key key = { o->seed, rng_stream("conversations for validation") };
	struct chat_rows *train = &d->split[SPLIT_TRAIN], *val = &d->split[SPLIT_VAL];
	int64_t dropped = 0;
	int rc = 0;

	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->split[s].set.documents; i++) {
			const bool drawn =
				s == SPLIT_VAL || (!val->set.n && rng_uniform(key, (uint64_t)i) < o->val_share);
			int64_t begin, end = token_set_document(&d->split[s].set, i, &begin);

			if (end - begin > d->base.seq_len && o->long_samples == DATASET_LONG_DROP)
				dropped++;
			else
				add_conversation(d, &d->split[s], i, drawn ? val : train);
		}
	if (dropped)
		data_account_leave_samples(&d->base.account, dropped, NULL,
					   "longer than --seq-len %lld (--long-samples drop)",
					   (long long)d->base.seq_len);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++) {
		rc = pieces_group(&d->split[s].pieces, d->base.seq_len, o->pack_conversations, d->base.path, err);
		d->base.n_samples[s] = d->split[s].pieces.samples;
	}
	d->base.documents = o->pack_conversations;
	if (!rc && (!train->pieces.n || train->pieces.n > DATASET_SAMPLES_MAX))
		rc = err_set(err, ERR_USAGE,
			     "%.300s: %lld conversations to train on: see --val-split and --long-samples", d->base.path,
			     (long long)train->pieces.n);
	return rc;
}

static void chat_set_close(struct dataset *base)
{
	struct chat_set *d = (struct chat_set *)base;

	for (int s = 0; s < SPLIT_COUNT; s++) {
		token_set_close(&d->split[s].set);
		pieces_done(&d->split[s].pieces);
	}
	json_decref(d->notes);
	free(d->base.chat_template);
	free(d->base.path);
	free(d);
}

static long long note_of(const struct chat_set *d, const char *name)
{
	return json_integer_value(json_object_get(d->notes, name));
}

/* Maps the marked tokens of --data-path and --val-path. */
static int open_marked(struct chat_set *d, const struct dataset_opts *o, struct err *err)
{
	char folder[CACHE_DIR_PATH_BYTES], path[CACHE_DIR_PATH_BYTES];
	int rc = prepare_chat_tokens(d, o, o->path, folder, err);

	if (!rc)
		rc = token_set_open(&d->split[SPLIT_TRAIN].set, folder, split_name(SPLIT_TRAIN), err);
	if (!rc && cache_dir_join(path, folder, NOTES))
		d->notes = json_load_file(path, 0, NULL);
	if (!rc && o->val_path)
		rc = prepare_chat_tokens(d, o, o->val_path, folder, err);
	if (!rc)
		rc = token_set_open(&d->split[SPLIT_VAL].set, folder, split_name(o->val_path ? SPLIT_TRAIN : SPLIT_VAL),
				    err);
	if (!rc && !d->notes)
		rc = err_set(err, ERR_USAGE, "%.300s: is damaged: remove it", path);
	if (rc)
		return rc;
	if (o->train_on != CHAT_TRAIN_ALL && note_of(d, "trained") == note_of(d, "tokens"))
		return err_set(err, ERR_USAGE,
			       "%.300s: the template marks all tokens as trained: use --train-on all if you mean it",
			       o->path);
	if (note_of(d, "missed"))
		snprintf(d->notice, sizeof(d->notice),
			 "%.200s: earlier answers that are not trained: %lld: the template writes an answer otherwise "
			 "once others follow (as templates that drop thoughts do)",
			 o->path, note_of(d, "missed"));
	return 0;
}

/* Makes or finds the tokens, then decides on the length and the split of the samples. */
static int chat_set_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct chat_set *d = mem_zalloc(sizeof(*d));
	struct dataset *b = &d->base;
	int rc;

	b->path = mem_strdup(o->path);
	b->ops = &dataset_chat;
	b->kind = SAMPLE_TOKENS;
	b->separator = -1;
	b->seq_len = o->seq_len > 0 ? o->seq_len : 1024;
	rc = open_marked(d, o, err);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		count_lengths(d, &d->split[s]);
	if (!rc)
		rc = refuse_long(d, o, err);
	if (!rc && o->fit_seq_len && d->longest < b->seq_len)
		b->seq_len = (d->longest + ROUND - 1) / ROUND * ROUND < b->seq_len
				     ? (d->longest + ROUND - 1) / ROUND * ROUND
				     : b->seq_len;
	if (!rc)
		rc = deal_conversations(d, o, err);
	if (rc) {
		chat_set_close(b);
		return rc;
	}
	b->vocab = CHAT_TOKEN_OF(d->split[SPLIT_TRAIN].set.vocab);
	snprintf(b->tokenizer, sizeof(b->tokenizer), "%.70s", d->split[SPLIT_TRAIN].set.tokenizer);
	snprintf(b->hash, sizeof(b->hash), "chat-%08x-%08x-%lld-%lld%s", token_set_sum(&d->split[SPLIT_TRAIN].set),
		 d->split[SPLIT_VAL].set.n ? token_set_sum(&d->split[SPLIT_VAL].set) : 0,
		 (long long)b->n_samples[SPLIT_TRAIN], (long long)b->n_samples[SPLIT_VAL],
		 b->documents ? "-packed" : "");
	*ret = b;
	return 0;
}

/* Returns the tokens of a row's split; drawn ones are in the file of the training split. */
static const struct token_set *find_row_set(const struct chat_set *d, enum split split)
{
	return d->split[split].set.n ? &d->split[split].set : &d->split[SPLIT_TRAIN].set;
}

/* Reads a row to the places from `at` on. */
static void read_row(const struct token_set *set, const struct document_piece *row, const struct dataset_read *r,
		     int64_t at)
{
	int32_t *tokens = r->tokens + at, *targets = r->targets + at;
	const int64_t n = row->n, known = n - row->ends;

	token_set_read(set, row->begin, n, tokens);
	token_set_read(set, row->begin + 1, known, targets);
	for (int64_t i = 0; i < n; i++) {
		tokens[i] = CHAT_TOKEN_OF(tokens[i]);
		targets[i] = i < known && CHAT_IS_TRAINED(targets[i]) ? CHAT_TOKEN_OF(targets[i]) : -1;
		if (r->positions)
			r->positions[at + i] = (int32_t)i;
	}
}

static int chat_set_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	const struct chat_set *d = (const struct chat_set *)base;
	const struct chat_rows *rows = &d->split[r->split];
	int64_t at = 0;

	(void)err;
	for (int64_t i = rows->pieces.first[r->index]; i < rows->pieces.first[r->index + 1];
	     at += rows->pieces.piece[i++].n)
		read_row(find_row_set(d, r->split), &rows->pieces.piece[i], r, at);
	for (; at < base->seq_len; at++) {
		r->tokens[at] = 0;
		r->targets[at] = -1;
		if (r->positions)
			r->positions[at] = 0;
	}
	return 0;
}

static int64_t chat_set_weight(const struct dataset *base, enum split split, int64_t index)
{
	const struct chat_set *d = (const struct chat_set *)base;
	const struct chat_rows *rows = &d->split[split];
	int64_t sum = 0;
	int32_t marked;

	for (int64_t k = rows->pieces.first[index]; k < rows->pieces.first[index + 1]; k++) {
		const struct document_piece *row = &rows->pieces.piece[k];

		for (int64_t i = row->begin + 1; i < row->begin + row->n + !row->ends; i++) {
			token_set_read(find_row_set(d, split), i, 1, &marked);
			sum += CHAT_IS_TRAINED(marked);
		}
	}
	return sum;
}

static void chat_set_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	const struct chat_set *d = (const struct chat_set *)base;

	const struct chat_rows *rows = &d->split[split];
	const int64_t first = rows->pieces.first[index], others = rows->pieces.first[index + 1] - first - 1;

	if (others)
		snprintf(ret, bytes, "conversation %u and %lld more", rows->pieces.piece[first].document + 1,
			 (long long)others);
	else
		snprintf(ret, bytes, "conversation %u", rows->pieces.piece[first].document + 1);
}

static bool chat_set_notice(struct dataset *base, char *ret, size_t bytes)
{
	struct chat_set *d = (struct chat_set *)base;
	char *next = d->ends_notice[0] ? d->ends_notice : d->notice[0] ? d->notice : d->long_notice;
	const bool any = *next;

	snprintf(ret, bytes, "%s", next);
	*next = '\0';
	return any;
}

static void say_packed(const struct pieces *p, int64_t seq_len, struct buf *out)
{
	int64_t tokens = 0;

	for (int64_t i = 0; i < p->n; i++)
		tokens += p->piece[i].n;
	buf_addf(out, "; packed into %lld samples of %lld, %.1f %% full", (long long)p->samples, (long long)seq_len,
		 100.0 * (double)tokens / (double)(p->samples * seq_len));
}

static void chat_set_say(const struct dataset *base, struct buf *out)
{
	const struct chat_set *d = (const struct chat_set *)base;
	const long long tokens = note_of(d, "tokens"), trained = note_of(d, "trained");

	buf_addf(out, "%s: %lld conversations, %lld tokens, of which %lld are trained (%.1f %%), the longest has %lld",
		 json_string_value(json_object_get(d->notes, "mapping")), note_of(d, "records"), tokens, trained,
		 100.0 * (double)trained / (double)(tokens ? tokens : 1), (long long)d->longest);
	if (base->documents)
		say_packed(&d->split[SPLIT_TRAIN].pieces, base->seq_len, out);
}

/* ---- detection ---- */

/* Reads the form of the first record, and ends the walk. */
static int probe_record(void *user, struct err *err)
{
	struct chat_filling *f = user;
	json_t *record = json_loadb(f->record.data, f->record.len, 0, NULL);

	f->form = conversation_form_of(record);
	f->n = json_is_object(record);
	json_decref(record);
	return err_set(err, ERR_CANCELED, "the first record is known");
}

/* Recognises conversations by the members of the first record. */
static bool chat_set_probe(const char *path)
{
	struct chat_filling f = { .form = CONVERSATION_FORMS };
	struct documents_sink sink = { begin_record, add_record_bytes, probe_record, &f };
	struct objects *store;
	struct err err = ERR_INIT;
	enum text_packing packing;
	struct texts t;
	bool array;
	int rc;

	if (texts_find(&t, path, &(struct texts_opts){ .records = true, .incomplete = true }, NULL))
		return false;
	store = objects_open(&(struct objects_opts){ .timeout_s = 0 });
	buf_init(&f.record, SIZE_MAX);
	array = texts_kind(path, &packing) == TEXT_ARRAY;
	rc = objects_add(store, t.file[0].name, &err);
	rc = rc < 0 ? rc : objects_measure(store, &err);
	if (!rc)
		walk_file_records(store, 0, &sink, &err);
	buf_done(&f.record);
	objects_close(store);
	texts_done(&t);
	/* an array of objects can be nothing else: open says what is wrong */
	return f.form != CONVERSATION_FORMS || (array && f.n);
}

const struct dataset_ops dataset_chat = {
	.name = "chat",
	.kind = SAMPLE_TOKENS,
	.probe = chat_set_probe,
	.open = chat_set_open,
	.read = chat_set_read,
	.close = chat_set_close,
	.notice = chat_set_notice,
	.weight = chat_set_weight,
	.where = chat_set_where,
	.say = chat_set_say,
};
