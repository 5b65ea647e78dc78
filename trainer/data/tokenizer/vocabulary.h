/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.h: what a BPE tokenizer consists of. tokenizer_file.c reads it from files; tokenizer_encode.c uses it.
 * Private to the tokenizer. */
#ifndef DPT_DATA_VOCABULARY_H
#define DPT_DATA_VOCABULARY_H

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "trainer/data/tokenizer/bpe.h"
#include "trainer/data/tokenizer/text_change.h"

#define VOCAB_MAX (1 << 22)

struct vocab_piece { /* the bytes of a token */
	const char *bytes;
	uint32_t n;
};

struct added_token {
	struct vocab_piece text;
	int32_t id;
	bool lstrip, rstrip, single_word, special;
};

/* Added tokens that are found in the original text, or in the normalised one. */
struct added_set {
	struct added_token *item; /* in the order of their bytes */
	size_t n, cap;
	bool first[256]; /* bytes that one begins with */
};

/* Where a text is split, and what happens to the matches of the pattern. */
enum split_behaviour { SPLIT_REMOVED, SPLIT_ISOLATED, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT, SPLIT_CONTIGUOUS };

struct word_split {
	struct text_pattern *pattern;
	enum split_behaviour behaviour;
	bool invert; /* what the pattern does not match counts as its match */
};

#define CHANGES_MAX 16
#define SPLITS_MAX 16
#define FRAME_MAX 16

struct token_frame {
	int32_t token[FRAME_MAX];
	int n;
};

struct bpe {
	struct arena *arena;
	char hash[65];
	struct vocab_piece *pieces; /* by token; bytes NULL: no such token */
	struct vocab_piece *shown;  /* … as decoded */
	int32_t *index;		    /* open addressing over pieces: a token, or -1 */
	size_t n_index;
	int32_t vocab, separator, unknown; /* -1: none */
	bool byte_level;		   /* a word begins as its bytes; otherwise as its characters */
	bool ignore_merges;		   /* a word that is a token is not merged */
	bool fuse_unknown;		   /* neighbours without a token become one unknown token */
	bool strips_first;		   /* the decoder drops a space at the beginning */
	int32_t of_byte[256]; /* token of a byte: of any, or of one without a character's token; -1: none */
	struct merges *merges;
	struct added_set added[2];		   /* of the original and of the normalised text */
	struct text_change change[2][CHANGES_MAX]; /* before and after the second set is searched */
	int n_changes[2];
	struct word_split split[SPLITS_MAX];
	int n_splits;
	struct token_frame before; /* what the post-processor puts in front of a text */
	/* Without splits, words end in front of `space` where no merge joins it with the byte before. */
	const char *space; /* NULL: not used */
	bool joins_space[256];
	bool cuts; /* a text may be cut between a letter and a space */
};

/* Reads a folder's tokenizer.json, or vocab.json and merges.txt. ERR_USAGE. */
int bpe_open(struct bpe **ret, const char *folder, struct err *err);
void bpe_close(struct bpe *b); /* NULL is fine */

void bpe_allocate(struct bpe *b, int32_t vocab); /* pieces and their index */
void bpe_index(struct bpe *b, int32_t token);	 /* makes a piece known to bpe_find */

/* Return a token of the vocabulary, or also an added one, by its bytes; -1: none. */
int32_t bpe_find(const struct bpe *b, const char *bytes, size_t n);
int32_t bpe_token(const struct bpe *b, const char *text);

#endif
