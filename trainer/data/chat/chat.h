/* SPDX-License-Identifier: Apache-2.0 */
/* chat.h: conversations as tokens, some of which are trained. A conversation is rendered by the folder's chat template
 * and encoded whole; the answers are spans of its text, and a token is trained if it overlaps one.
 *
 * Where the template has {% generation %}, that is what it encloses. Elsewhere the answer of message i begins after the
 * text of messages 0 … i-1 with the generation prompt, and ends with the text of messages 0 … i; both must be literal
 * prefixes of the whole. White space after the token that ends a turn is not trained. */
#ifndef DPT_DATA_CHAT_H
#define DPT_DATA_CHAT_H

#include "trainer/data/chat/conversation.h"
#include "trainer/data/tokenizer/tokenizer.h"

/* CHAT_TRAIN_FORM: completion for prompt and completion, else assistant. */
enum chat_train { CHAT_TRAIN_FORM, CHAT_TRAIN_ASSISTANT, CHAT_TRAIN_LAST, CHAT_TRAIN_COMPLETION, CHAT_TRAIN_ALL };

struct chat_opts {
	const char *tokenizer;	   /* folder with tokenizer.json, tokenizer_config.json, chat_template.jinja */
	const char *template_name; /* "chatml" or a file; NULL: the folder's */
	enum chat_train train;
	bool allow_special; /* content may spell special tokens */
	double date;	    /* for templates that ask for it: seconds since 1970, UTC */
};

/* Reads a date like 2026-01-31 as the first second of its day. ERR_USAGE. */
int chat_parse_date(double *ret, const char *text, struct err *err);

struct chat; /* one thread at a time */

/* Opens tokenizer and template. ERR_USAGE names the file. */
int chat_open(struct chat **ret, const struct chat_opts *o, struct err *err);
/* The same for another thread; borrows tokenizer and template. */
struct chat *chat_another(const struct chat *c);
void chat_close(struct chat *c); /* NULL is fine */

const struct tokenizer *chat_tokenizer(const struct chat *c);

/* Appends the tokens (int32_t) of messages, and of what asks the model to answer them. ERR_USAGE: there is no template,
 * it refuses them, or they spell a special token without allow_special. */
int chat_encode_prompt(struct chat *c, json_t *messages, struct buf *tokens, struct err *err);

/* The tokens that end an answer: by the template, the first special token after it; by tokenizer_config.json, its
 * eos_token. -1: none is known. */
struct chat_ends {
	int32_t of_template, of_tokenizer;
};
struct chat_ends chat_find_ends(struct chat *c);

#define CHAT_NOTICE_BYTES 500

/* Says that other programs will not stop where the template ends an answer: its token is not in eos_token_id of the
 * folder's generation_config.json or, without that, config.json; without both it is not the tokenizer's. "": they will,
 * or the token is not known. */
void chat_compare_ends(struct chat *c, char ret[CHAT_NOTICE_BYTES]);

const char *chat_template_text(const struct chat *c); /* NULL: the folder has none */

/* The token that tokenizer_config.json gives that name ("bos_token"), or -1. */
int32_t chat_special_token(struct chat *c, const char *name);

/* Appends what the tokens depend on besides the records. */
void chat_identify(const struct chat *c, struct buf *to);

/* A token and whether it is trained, in one number. */
#define CHAT_TOKEN(token, trained) (2 * (token) + (trained))
#define CHAT_TOKEN_OF(marked) ((marked) / 2)
#define CHAT_IS_TRAINED(marked) ((marked) % 2)

struct chat_sample {
	struct buf marked; /* int32_t, CHAT_TOKEN each; initialised by the caller; replaced */
	int64_t trained;   /* tokens */
	int64_t missed;	   /* earlier answers that the template writes otherwise once others follow: not trained */
	char why[CONVERSATION_WHY_BYTES]; /* set: the record is left out, and why */
};

/* Makes tokens of a record. A failure is one of the whole set. */
int chat_encode(struct chat *c, enum conversation_form form, const json_t *record, struct chat_sample *ret,
		struct err *err);

#endif
