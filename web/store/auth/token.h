/* token.h: who may use the server. Tokens and the page's sessions are rows of the store (their SHA-256 only); beside
 * them stand fixed tokens of this process (the lock file's, the one in DPTRACK_TOKEN). Checks use a copy of the rows
 * that is read again after each change, so that revoking works at once, in every process. Any thread. */
#ifndef DPT_STORE_TOKEN_H
#define DPT_STORE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "web/store/write/ingest.h"

/* TOKEN_UNKNOWN: the rows cannot be read now, so that nobody is let in. */
enum token_scope { TOKEN_UNKNOWN = -1, TOKEN_NONE, TOKEN_READ, TOKEN_WRITE, TOKEN_ADMIN };

#define TOKEN_TEXT_MAX 72 /* dpt_ and 64 hex digits */
#define TOKEN_HASH_MAX 65

struct db;
struct tokens;

/* For store.c. */
int tokens_new(struct tokens **ret, struct err *err);
void tokens_free(struct tokens *t); /* NULL is fine */

struct token_row {
	const char *name;
	enum token_scope scope;
	int64_t created_ms;
	int64_t expires_ms; /* INT64_MIN: never */
	int64_t revoked_ms; /* INT64_MIN: in force */
};

/* Every row, oldest first, in the arena. */
int token_list(struct store *s, struct arena *a, struct token_row **ret, size_t *ret_count, struct err *err);

/* A new token of 256 random bits, and what is stored of it. */
int token_draw(char text[TOKEN_TEXT_MAX], char hash[TOKEN_HASH_MAX], struct err *err);

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/auth/changes.def"
#undef CHANGE

struct token_new {
	const char *name, *hash;
	enum token_scope scope;
	int64_t expires_ms; /* INT64_MIN: never */
};

/* Checks from now on see what stands in the rows. Any thread. */
void token_changed(struct store *s);
/* Within a change: other processes hear of it with the commit. */
int token_tell(struct db *d, struct err *err);
void token_heard(struct store *s); /* where others change tokens too: they have not, until now */

/* A token that is no row; needed: from now on everybody needs one. Before threads ask. */
int token_fix(struct store *s, const char *text, enum token_scope scope, bool needed, struct err *err);
void token_need(struct store *s); /* as if a row existed */

/* Whether a token is needed: once a row exists, revoked or not. Negative: the rows cannot be read now. */
int token_needed(struct store *s);

/* What somebody says is a token. Who is often wrong must wait (see throttle.h) and is not heard meanwhile; but not who
 * shows a token of the form that token_draw makes: those cannot be guessed, so their owners are never locked out. */
struct token_try {
	uint64_t from; /* who, a number made of the address; 0: not limited */
	const char *text;
	size_t len;
	int wait_s;    /* set: 0, or the seconds until the next try is heard */
};

/* What a token allows now; TOKEN_NONE when there is no such row, or it is revoked or expired. */
enum token_scope token_check(struct store *s, struct token_try *t);

/* A session of 12 hours that allows what the token allows at each moment: what its cookie holds, and the row for
 * session_change_new. This process knows it at once, so that a disk that is full keeps nobody out. ERR_USAGE: the token
 * is not valid; ERR_BUSY: see t->wait_s; when that is 0 the rows cannot be read now. */
struct session_new {
	char hash[TOKEN_HASH_MAX], token[TOKEN_HASH_MAX];
	int64_t until_ms;
};

int token_session(struct store *s, struct token_try *t, char ret[TOKEN_TEXT_MAX], struct session_new *ret_row,
		  struct err *err);
enum token_scope token_session_check(struct store *s, const char *id, size_t n);
void token_hash(const char *text, size_t n, char ret[TOKEN_HASH_MAX]); /* as rows have it */

/* Grows with every change of the rows. */
unsigned token_generation(struct store *s);

bool token_scope_read(const char *word, enum token_scope *ret); /* read, write, admin */
const char *token_scope_name(enum token_scope scope);

#endif
