/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize.c: splits documents into a training and a validation part, cuts these into pieces, and encodes the pieces
 * on all cores. */
#include "trainer/data/corpus/tokenize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/mem/mem.h"
#include "trainer/data/corpus/documents.h"
#include "trainer/data/corpus/job_ring.h"
#include "trainer/data/tokenizer/token_file.h"

struct encode_piece {
	enum split split;
	int file;	  /* of the texts */
	const char *text; /* n bytes, copied */
	size_t n;
	bool begins, ends; /* first and last part of a document: adds the separator before it, its end after it */
};

#define JOB_BYTES ((size_t)1 << 20) /* bytes of text: a job this large is submitted */

struct encoder_piece {
	enum split split;
	int file;
	bool begins, ends;
	size_t n;	 /* bytes of text */
	size_t n_tokens; /* set by encoding */
};

struct encode {
	const struct tokenizer *tokenizer; /* borrowed, as are the writers and the texts */
	struct token_writer *const *to;	   /* of each split */
	const struct texts *texts;
	struct job_ring *ring; /* parts of a job: struct encoder_piece */
};

/* Encodes the pieces of a job; an error names the file of its piece. */
static int run_encoder_job(void *user, void *encoder, struct encode_job *j, struct err *err)
{
	const struct encode *e = user;
	struct encoder_piece *piece = (struct encoder_piece *)(void *)j->parts.data;
	size_t n = j->parts.len / sizeof(*piece), at = 0, before;
	int32_t separator = tokenizer_separator(e->tokenizer);
	int rc = 0;

	for (size_t i = 0; !rc && i < n; at += piece[i++].n) {
		before = j->tokens.len;
		if (piece[i].begins && separator >= 0) /* in front of each text, as GPT-2 was trained */
			buf_add(&j->tokens, &separator, sizeof(separator));
		rc = token_encode(encoder,
				  &(struct token_request){ .text = j->text.data + at,
							   .n = piece[i].n,
							   .continues = !piece[i].begins,
							   .tokens = &j->tokens },
				  err);
		if (rc)
			rc = err_prefix(err, "%.300s", e->texts->file[piece[i].file].name);
		piece[i].n_tokens = (j->tokens.len - before) / sizeof(int32_t);
	}
	return rc;
}

/* Writes the tokens of a job. */
static int write_job_tokens(void *user, const struct encode_job *j, struct err *err)
{
	const struct encode *e = user;
	const struct encoder_piece *piece = (const struct encoder_piece *)(const void *)j->parts.data;
	const int32_t *tokens = (const int32_t *)(const void *)j->tokens.data;
	int rc = 0;

	for (size_t i = 0; !rc && i < j->parts.len / sizeof(*piece); tokens += piece[i++].n_tokens) {
		struct token_writer *to = e->to[piece[i].split];

		rc = token_writer_add(to, tokens, piece[i].n_tokens, err);
		if (!rc && piece[i].ends)
			rc = token_writer_end(to, err);
	}
	return rc;
}

static void *open_encoder(const void *user)
{
	return token_encoder_new(((const struct encode *)user)->tokenizer);
}

static void close_encoder(void *encoder)
{
	token_encoder_free(encoder);
}

static int encode_open(struct encode *e, struct err *err)
{
	const struct job_ring_opts o = { .open = open_encoder,
					 .close = close_encoder,
					 .run = run_encoder_job,
					 .take = write_job_tokens,
					 .user = e };

	return job_ring_new(&e->ring, &o, err);
}

/* Adds a piece, of at most PIECE_MAX bytes. A write error. */
static int encode_add(struct encode *e, const struct encode_piece *p, struct err *err)
{
	struct encode_job *j = job_ring_filling(e->ring);
	struct encoder_piece piece = { p->split, p->file, p->begins, p->ends, .n = p->n };

	buf_add(&j->text, p->text, p->n);
	buf_add(&j->parts, &piece, sizeof(piece));
	return j->text.len < JOB_BYTES ? 0 : job_ring_submit(e->ring, err);
}

#define PATH_BYTES 4200
#define PIECE ((size_t)1 << 20)		 /* a long text is cut at the first word end after this size */
#define PIECE_MAX ((size_t)64 << 20)	 /* … and at this size in any case */
#define LINE_MAX_BYTES ((size_t)1 << 20) /* search range for the line end where validation begins */

struct tokenize_job {
	const struct tokenize_opts *o;
	struct objects *store;
	struct token_writer *to[SPLIT_COUNT];
	char path[SPLIT_COUNT][PATH_BYTES];
	struct encode encode;
	int file;      /* of the texts */
	bool in_val;   /* the file is for validation */
	uint64_t read; /* bytes of text so far */
	struct data_account left;
	/* Of the current document: */
	struct buf text;  /* read, not submitted */
	enum split split; /* split that the text belongs to */
	bool begun;	  /* a piece of this part was submitted */
	uint64_t at, cut; /* bytes read; offset from which validation begins at the next line */
};

static int submit_piece(struct tokenize_job *j, size_t n, bool ends, struct err *err)
{
	int rc = 0;

	if (n || (ends && j->begun))
		rc = encode_add(&j->encode,
				&(struct encode_piece){ j->split, j->file, j->text.data, n, !j->begun, ends }, err);
	j->begun |= n > 0;
	buf_consume(&j->text, n);
	return rc;
}

/* Submits the text up to the last word end. */
static int submit_whole_words(struct tokenize_job *j, struct err *err)
{
	size_t n = 0;

	if (j->text.len >= PIECE)
		n = tokenizer_cut(j->o->tokenizer, j->text.data, j->text.len);
	if (!n && j->text.len >= PIECE_MAX)
		n = PIECE_MAX;
	return submit_piece(j, n, false, err);
}

static int append_text_bytes(struct tokenize_job *j, const char *text, size_t n, struct err *err)
{
	buf_add(&j->text, text, n);
	j->at += n;
	return submit_whole_words(j, err);
}

/* Ends the training part after the first n bytes of the buffered text. */
static int begin_val_part(struct tokenize_job *j, size_t n, struct err *err)
{
	int rc = submit_piece(j, n, true, err);

	j->split = SPLIT_VAL;
	j->begun = false;
	return rc ? rc : submit_whole_words(j, err);
}

/* After the cut, text is buffered until the line ends, so that training ends there. last: no text follows. */
static int cut_at_line(struct tokenize_job *j, bool last, struct err *err)
{
	size_t after_cut = (size_t)(j->at - j->cut), from = j->text.len - after_cut;
	size_t seen = after_cut < LINE_MAX_BYTES ? after_cut : LINE_MAX_BYTES;
	const char *line = memchr(j->text.data + from, '\n', seen);

	if (line && line + 1 < j->text.data + j->text.len)
		return begin_val_part(j, (size_t)(line + 1 - j->text.data), err);
	if (last || (!line && after_cut > LINE_MAX_BYTES))
		return begin_val_part(j, from, err);
	return 0;
}

static int begin_document(void *user, uint64_t bytes, struct err *err)
{
	struct tokenize_job *j = user;

	(void)err;
	buf_reset(&j->text);
	j->split = j->in_val ? SPLIT_VAL : SPLIT_TRAIN;
	j->begun = false;
	j->at = 0;
	j->cut = UINT64_MAX;
	if (!j->o->texts->has_val && j->o->val_share > 0)
		j->cut = bytes - (uint64_t)((double)bytes * j->o->val_share);
	return 0;
}

static int append_split_text(struct tokenize_job *j, const char *text, size_t n, struct err *err)
{
	size_t before = j->at < j->cut && n > j->cut - j->at ? (size_t)(j->cut - j->at) : n;
	int rc = 0;

	if (j->split == SPLIT_VAL || j->at >= j->cut)
		before = 0;
	if (before)
		rc = append_text_bytes(j, text, before, err);
	if (rc || before == n)
		return rc;
	if (j->split == SPLIT_VAL)
		return append_text_bytes(j, text, n, err);
	buf_add(&j->text, text + before, n - before);
	j->at += n - before;
	return cut_at_line(j, false, err);
}

static int append_document_text(void *user, const char *text, size_t n, struct err *err)
{
	struct tokenize_job *j = user;
	int rc = 0;

	for (size_t at = 0; !rc && at < n; at += PIECE) {
		size_t some = n - at < PIECE ? n - at : PIECE;

		rc = append_split_text(j, text + at, some, err);
		j->read += some;
		if (j->o->progress)
			j->o->progress(j->o->user, j->read);
	}
	return rc;
}

static int end_document(void *user, struct err *err)
{
	struct tokenize_job *j = user;
	int rc = 0;

	if (j->split == SPLIT_TRAIN && j->at > j->cut)
		rc = cut_at_line(j, true, err);
	return rc ? rc : submit_piece(j, j->text.len, true, err);
}

static int tokenize_file(struct tokenize_job *j, int i, struct err *err)
{
	const struct tokenize_opts *o = j->o;
	const struct documents_sink sink = { begin_document, append_document_text, end_document, j };

	j->file = i;
	j->in_val = o->texts->file[i].val;
	return documents_walk(&(struct documents_opts){ .store = j->store,
							.object = i,
							.field = o->field,
							.account = &j->left,
							.sizes = !o->texts->has_val && o->val_share > 0 },
			      &sink, err);
}

static int open_token_writers(struct tokenize_job *j, struct err *err)
{
	const struct tokenize_opts *o = j->o;
	int rc = 0;

	if (mkdir(o->out, 0777) && errno != EEXIST)
		return err_set_errno(err, errno, "cannot create the folder %.300s", o->out);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++) {
		snprintf(j->path[s], sizeof(j->path[s]), "%s/%s" TOKEN_FILE_SUFFIX, o->out, split_name((enum split)s));
		rc = token_writer_open(&j->to[s],
				       &(struct token_writer_opts){ .path = j->path[s],
								    .tokenizer = tokenizer_name(o->tokenizer),
								    .vocab = tokenizer_vocab(o->tokenizer),
								    .separator = tokenizer_separator(o->tokenizer) },
				       err);
	}
	return rc;
}

static int open_text_objects(struct tokenize_job *j, struct err *err)
{
	const struct texts *t = j->o->texts;
	int rc = 0;

	j->store = objects_open(&(struct objects_opts){ .timeout_s = j->o->data_timeout_s });
	for (int i = 0; rc >= 0 && i < t->n; i++)
		rc = objects_add(j->store, t->file[i].name, err);
	return rc < 0 ? rc : objects_measure(j->store, err);
}

static int open_tokenize_job(struct tokenize_job *j, struct err *err)
{
	int rc = open_text_objects(j, err);

	if (!rc)
		rc = open_token_writers(j, err);
	j->encode = (struct encode){ .tokenizer = j->o->tokenizer, .to = j->to, .texts = j->o->texts };
	return rc ? rc : encode_open(&j->encode, err);
}

int tokenize_write_left_out(const char *folder, const struct data_account *left, struct err *err)
{
	char path[PATH_MAX];
	FILE *f;
	bool bad;

	snprintf(path, sizeof(path), "%.4000s/" TOKENIZE_LEFT_OUT, folder);
	if (!left->n_left) {
		unlink(path);
		return 0;
	}
	f = fopen(path, "we");
	if (!f)
		return err_set_errno(err, errno, "cannot write %.300s", path);
	for (int i = 0; i < left->n_left; i++)
		fprintf(f, "%lld\t%s\t%s\n", (long long)left->left[i].n, left->left[i].why, left->left[i].example);
	bad = ferror(f);
	return fclose(f) || bad ? err_set_errno(err, errno, "cannot write %.300s", path) : 0;
}

void tokenize_read_left_out(const char *folder, struct data_account *a)
{
	char path[PATH_MAX], line[2 * DATA_ACCOUNT_TEXT_BYTES + 32], *why, *example;
	FILE *f;

	snprintf(path, sizeof(path), "%.4000s/" TOKENIZE_LEFT_OUT, folder);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		why = strchr(line, '\t');
		example = why ? strchr(why + 1, '\t') : NULL;
		if (!example)
			continue;
		*example = '\0';
		data_account_leave_samples(a, strtoll(line, NULL, 10), example + 1, "%s", why + 1);
	}
	if (f)
		fclose(f);
}

static int commit_token_files(struct tokenize_job *j, struct tokenize_made *ret, struct err *err)
{
	int rc = 0;

	if (token_writer_count(j->to[SPLIT_TRAIN]) < 2)
		return err_set(err, ERR_USAGE, "%.300s%s: too short to learn from: %lld tokens",
			       j->o->texts->file[0].name, j->o->texts->n > 1 ? " and the other texts" : "",
			       (long long)token_writer_count(j->to[SPLIT_TRAIN]));
	rc = tokenize_write_left_out(j->o->out, &j->left, err);
	ret->left = j->left;
	for (int s = SPLIT_COUNT - 1; !rc && s >= 0; s--) { /* train.tokens last: it marks the set as complete */
		ret->tokens[s] = token_writer_count(j->to[s]);
		ret->documents[s] = token_writer_documents(j->to[s]);
		if (ret->tokens[s])
			rc = token_writer_commit(j->to[s], err);
		else
			unlink(j->path[s]); /* left by an earlier call */
	}
	return rc;
}

int tokenize(const struct tokenize_opts *o, struct tokenize_made *ret, struct err *err)
{
	struct tokenize_job j = { .o = o };
	int rc = open_tokenize_job(&j, err);

	buf_init(&j.text, 2 * PIECE_MAX);
	for (int i = 0; !rc && i < o->texts->n; i++)
		rc = tokenize_file(&j, i, err);
	if (!rc)
		rc = job_ring_finish(j.encode.ring, err);
	if (!rc)
		rc = commit_token_files(&j, ret, err);
	job_ring_free(j.encode.ring);
	for (int s = 0; s < SPLIT_COUNT; s++)
		token_writer_close(j.to[s]);
	objects_close(j.store);
	buf_done(&j.text);
	return rc;
}
