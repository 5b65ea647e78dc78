/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c: the bytes tokenizer, and BPE with GPT-2's vocabulary files. Both files write each byte as a printable
 * character: bytes printable in Latin-1 as themselves, the others in order as U+0100 and up. */
#include "trainer/data/tokenizer/tokenizer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/arena.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "trainer/data/tokenizer/bpe.h"

struct bpe;

#define FILE_BYTES_MAX ((size_t)1 << 28)
#define VOCAB_MAX (1 << 24)
#define SHIFTED 0x100 /* first of the characters that represent the unprintable bytes */

struct bpe_token { /* the bytes of a token */
	const char *bytes;
	uint32_t n;
};

struct bpe {
	struct arena *arena;
	struct bpe_token *pieces; /* by token */
	int32_t *index;		  /* open addressing over pieces: a token, or -1 */
	size_t n_index;
	int32_t vocab, separator;
	int16_t byte_of[SHIFTED * 2]; /* by character; -1: represents no byte */
	int32_t of_byte[256];
	struct merges *merges;
	char hash[65];
};

static void map_characters(struct bpe *b)
{
	int next = SHIFTED;

	memset(b->byte_of, -1, sizeof(b->byte_of));
	for (int i = 0; i < 256; i++) {
		bool prints = (i > 32 && i < 127) || (i > 160 && i != 173);

		b->byte_of[prints ? i : next++] = (int16_t)i;
	}
}

/* Converts characters to the bytes that they represent, in the arena. False: a character represents no byte. */
static bool map_to_bytes(struct bpe *b, const char *text, size_t n, struct bpe_token *ret)
{
	char *bytes = arena_alloc(b->arena, n + 1);

	*ret = (struct bpe_token){ bytes, 0 };
	for (size_t at = 0; at < n;) {
		int32_t code;

		at += words_char(text + at, n - at, &code);
		if (code < 0 || code >= SHIFTED * 2 || b->byte_of[code] < 0)
			return false;
		bytes[ret->n++] = (char)b->byte_of[code];
	}
	return true;
}

static int32_t *find_token_slot(const struct bpe *b, const char *bytes, size_t n)
{
	size_t i = crc32c(0, bytes, n) & (b->n_index - 1);

	for (;; i = (i + 1) & (b->n_index - 1)) {
		const struct bpe_token *p = b->index[i] < 0 ? NULL : &b->pieces[b->index[i]];

		if (!p || (p->n == n && !memcmp(p->bytes, bytes, n)))
			return &b->index[i];
	}
}

/* Reads a tokenizer's file into an empty buffer, without a byte order mark. */
static int read_tokenizer_file(struct buf *to, const char *folder, const char *name, struct err *err)
{
	char path[4200];
	int rc, why;

	if (!file_join(path, sizeof(path), folder, name))
		return err_set(err, ERR_USAGE, "tokenizer %.300s: the path is too long", folder);
	rc = file_load(to, path, err);
	why = errno;
	if (!rc) {
		buf_consume(to, utf8_mark(to->data ? to->data : "", to->len));
		return file_refuse_pointer(path, to->data, to->len, err);
	}
	if (rc != ERR_USAGE)
		return rc;
	if (why == EFBIG)
		return err_set(err, ERR_USAGE, "%.300s: is larger than the maximum of 256 MiB", path);
	return err_set(err, ERR_USAGE,
		       "tokenizer %.300s: %s: expected a folder with vocab.json and merges.txt, or the word bytes",
		       path, strerror(why));
}

static int allocate_vocab(struct bpe *b, size_t n, const char *folder, struct err *err)
{
	if (n < 256 || n > VOCAB_MAX)
		return err_set(err, ERR_USAGE, "%.300s/vocab.json: %zu tokens: expected 256 to %d", folder, n,
			       VOCAB_MAX);
	b->vocab = (int32_t)n;
	for (b->n_index = 1024; b->n_index < 2 * n;)
		b->n_index *= 2;
	b->pieces = arena_array(b->arena, n, sizeof(*b->pieces));
	b->index = arena_array(b->arena, b->n_index, sizeof(*b->index));
	memset(b->index, -1, b->n_index * sizeof(*b->index));
	return 0;
}

static int add_vocab_token(struct bpe *b, const char *text, const json_t *id, const char *folder, struct err *err)
{
	json_int_t v = json_is_integer(id) ? json_integer_value(id) : -1;
	struct bpe_token p;

	if (v < 0 || v >= b->vocab || b->pieces[v].bytes)
		return err_set(err, ERR_USAGE,
			       "%.300s/vocab.json: token '%.60s' has number %lld: expected unique numbers "
			       "from 0 to %d",
			       folder, text, (long long)v, b->vocab - 1);
	if (!map_to_bytes(b, text, strlen(text), &p))
		return err_set(err, ERR_USAGE,
			       "%.300s/vocab.json: token '%.60s' has a character that represents no byte", folder,
			       text);
	b->pieces[v] = p;
	*find_token_slot(b, p.bytes, p.n) = (int32_t)v;
	if (!strcmp(text, "<|endoftext|>"))
		b->separator = (int32_t)v;
	return 0;
}

/* Parses vocab.json and looks up the token of each byte. */
static int read_bpe_vocab(struct bpe *b, const struct buf *text, const char *folder, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(text->data ? text->data : "", text->len, 0, &why), *id;
	const char *key;
	int rc = 0;

	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(err, ERR_USAGE,
			       "%.300s/vocab.json:%d: is not a JSON object of tokens and numbers%s%.80s", folder,
			       root ? 1 : why.line, root ? "" : ": ", root ? "" : why.text);
	}
	rc = allocate_vocab(b, json_object_size(root), folder, err);
	json_object_foreach(root, key, id) if (!rc) rc = add_vocab_token(b, key, id, folder, err);
	json_decref(root);
	for (int i = 0; !rc && i < 256; i++) {
		char byte = (char)i;

		b->of_byte[i] = *find_token_slot(b, &byte, 1);
		if (b->of_byte[i] < 0)
			rc = err_set(err, ERR_USAGE, "%.300s/vocab.json: byte %d has no token", folder, i);
	}
	return rc;
}

/* Parses one line "A B": the tokens of A, of B and of AB. Returns -1 if one is missing. */
static int parse_merge_line(struct bpe *b, const char *line, size_t n, struct merge *ret)
{
	const char *space = memchr(line, ' ', n);
	struct bpe_token left, right;
	char *both;

	if (!space || !map_to_bytes(b, line, (size_t)(space - line), &left) ||
	    !map_to_bytes(b, space + 1, n - (size_t)(space - line) - 1, &right) || !left.n || !right.n)
		return -1;
	both = arena_alloc(b->arena, left.n + right.n);
	memcpy(both, left.bytes, left.n);
	memcpy(both + left.n, right.bytes, right.n);
	ret->left = *find_token_slot(b, left.bytes, left.n);
	ret->right = *find_token_slot(b, right.bytes, right.n);
	ret->to = *find_token_slot(b, both, left.n + right.n);
	return ret->left < 0 || ret->right < 0 || ret->to < 0 ? -1 : 0;
}

/* Parses merges.txt: one merge per line, in the order of their rank. */
static int read_bpe_merges(struct bpe *b, const struct buf *text, const char *folder, struct err *err)
{
	const char *at = text->data, *end = at + text->len;
	int line = 0;

	b->merges = merges_new(b->vocab);
	while (at && at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);
		struct merge m;

		line++;
		n -= n && at[n - 1] == '\r';
		if (n && !(line == 1 && at[0] == '#')) {
			if (parse_merge_line(b, at, n, &m))
				return err_set(err, ERR_USAGE,
					       "%.300s/merges.txt:%d: expected two tokens of the vocabulary whose "
					       "concatenation is a token too",
					       folder, line);
			merges_add(b->merges, &m);
		}
		at = stop ? stop + 1 : end;
	}
	return 0;
}

static void bpe_close(struct bpe *b)
{
	if (!b)
		return;
	merges_free(b->merges);
	arena_free(b->arena);
}

/* Opens a folder's BPE, as tokenizer_open. */
static int bpe_open(struct bpe **ret, const char *folder, struct err *err)
{
	struct arena *arena = arena_new();
	struct bpe *b = arena_alloc(arena, sizeof(*b));
	struct buf vocab, merges;
	int rc;

	buf_init(&vocab, FILE_BYTES_MAX);
	buf_init(&merges, FILE_BYTES_MAX);
	b->arena = arena;
	b->separator = -1;
	map_characters(b);
	rc = read_tokenizer_file(&vocab, folder, "vocab.json", err);
	if (!rc)
		rc = read_tokenizer_file(&merges, folder, "merges.txt", err);
	if (!rc)
		rc = read_bpe_vocab(b, &vocab, folder, err);
	if (!rc)
		rc = read_bpe_merges(b, &merges, folder, err);
	if (!rc) {
		vocab.max = 2 * FILE_BYTES_MAX;
		buf_add(&vocab, merges.data, merges.len);
		sha256_hex(vocab.data, vocab.len, b->hash);
	}
	buf_done(&vocab);
	buf_done(&merges);
	if (rc) {
		bpe_close(b);
		return rc;
	}
	*ret = b;
	return 0;
}

static int bpe_encode(const struct bpe *b, const char *text, size_t n, const struct tokenizer_sink *to, struct err *err)
{
	struct merger *m = merger_new(b->merges);
	int rc = 0;

	for (size_t at = 0; !rc && at < n;) {
		size_t bytes = words_next(text + at, n - at), n_tokens;
		const int32_t *tokens;

		if (bytes > MERGER_WORD_MAX) {
			rc = err_set(err, ERR_USAGE, "a word of %zu bytes: expected at most %zu", bytes,
				     MERGER_WORD_MAX);
			break;
		}
		tokens = merger_word(m, b->of_byte, text + at, bytes, &n_tokens);
		rc = to->emit(to->user, tokens, n_tokens, err);
		at += bytes;
	}
	merger_free(m);
	return rc;
}

#define BYTES "bytes"
#define CHUNK 4096

struct tokenizer {
	struct bpe *bpe; /* NULL: bytes */
	char byte[256];
};

int tokenizer_open(struct tokenizer **ret, const char *spec, struct err *err)
{
	struct tokenizer *t = mem_zalloc(sizeof(*t));
	int rc = 0;

	for (int i = 0; i < 256; i++)
		t->byte[i] = (char)i;
	if (strcmp(spec, BYTES))
		rc = bpe_open(&t->bpe, spec, err);
	if (rc) {
		free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void tokenizer_close(struct tokenizer *t)
{
	if (!t)
		return;
	bpe_close(t->bpe);
	free(t);
}

const char *tokenizer_name(const struct tokenizer *t)
{
	return t->bpe ? t->bpe->hash : BYTES;
}

int64_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->bpe ? t->bpe->vocab : 256;
}

int32_t tokenizer_separator(const struct tokenizer *t)
{
	return t->bpe ? t->bpe->separator : -1;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, const struct tokenizer_sink *to,
		     struct err *err)
{
	int32_t tokens[CHUNK];
	int rc = 0;

	if (t->bpe)
		return bpe_encode(t->bpe, text, n, to, err);
	for (size_t at = 0; !rc && at < n; at += CHUNK) {
		size_t k = n - at < CHUNK ? n - at : CHUNK;

		for (size_t i = 0; i < k; i++)
			tokens[i] = (unsigned char)text[at + i];
		rc = to->emit(to->user, tokens, k, err);
	}
	return rc;
}

size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n)
{
	return t->bpe ? words_cut(text, n) : n;
}

const char *tokenizer_bytes(const struct tokenizer *t, int32_t token, size_t *ret_n)
{
	if (token < 0 || token >= tokenizer_vocab(t))
		return NULL;
	*ret_n = t->bpe ? t->bpe->pieces[token].n : 1;
	return t->bpe ? t->bpe->pieces[token].bytes : &t->byte[token];
}
