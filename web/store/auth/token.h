/* SPDX-License-Identifier: Apache-2.0 */
/* token.h: access to the server. Tokens and page sessions are rows of the store (only their SHA-256). This process
 * also has fixed tokens (of the lock file, of DPTRACK_TOKEN). Checks use a copy of the rows that is read again after
 * each change, so revoking works at once in every process. Any thread. */
#ifndef DPT_STORE_TOKEN_H
#define DPT_STORE_TOKEN_H

#include "web/store/base/grants.h"
#include "web/store/write/ingest.h"

/* TOKEN_UNKNOWN: the rows cannot be read, so access is denied. */
enum token_scope { TOKEN_UNKNOWN = -1, TOKEN_NONE, TOKEN_READ, TOKEN_WRITE, TOKEN_ADMIN };

#define TOKEN_TEXT_MAX 72 /* dpt- and 40 hex digits, of which W&B's clients want as many */
#define TOKEN_HASH_MAX 65
#define TOKEN_SESSION_MS (INT64_C(12) * 3600 * 1000)

struct db;
struct token_cache;

/* For store.c. */
struct token_cache *tokens_new(void);
void tokens_free(struct token_cache *t); /* NULL is fine */

struct token_row {
	const char *name;
	enum token_scope scope;
	int64_t created_ms;
	int64_t expires_ms; /* INT64_MIN: never */
	int64_t revoked_ms; /* INT64_MIN: valid */
	const char *person; /* who has it */
	const char *grants; /* text of grants.h; "": the scope in all experiments */
};

/* All rows but those of links (share.h), oldest first, in the arena. */
int token_list(struct store *s, struct arena *a, struct token_row **ret, size_t *ret_count, struct err *err);

/* A new token of 256 random bits, and its hash for the row. */
int token_draw(char text[TOKEN_TEXT_MAX], char hash[TOKEN_HASH_MAX], struct err *err);

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/auth/changes.def"
#undef CHANGE

struct token_new {
	const char *name, *hash;
	enum token_scope scope;
	int64_t expires_ms;	     /* INT64_MIN: never */
	const char *person, *grants; /* "": as name; the scope in all experiments */
};

struct token_revoke {
	const char *name;
	bool keep_admin; /* refuses to revoke the last token that is an admin of all experiments */
};

/* Checks the text of grants of a token with this scope: grants.h, and no level above the scope. */
int token_grants_check(const char *grants, enum token_scope scope, struct err *err);

/* Later checks read the rows again. Any thread. */
void token_changed(struct store *s);
/* Within a change: notifies other processes with the commit. */
int token_tell(struct db *d, struct err *err);
void token_heard(struct store *s); /* no other writer has changed the tokens until now */

/* Within a change, for the audit log: its author is whose token the session is of. No such session, or one of a link:
 * no entry. */
struct change;
struct state;
int token_describe_session(struct state *st, struct change *c, const char *hash, struct err *err);

/* Adds a token without a row; needed: all requests need a token from now on; else it is that of the lock file.
 * Call before threads start. */
int token_fix(struct store *s, const char *text, enum token_scope scope, bool needed, struct err *err);
/* Replaces a fixed token by another. ERR_NOENT: there is no such token. */
int token_refix(struct store *s, const char *old, const char *text, struct err *err);
void token_need(struct store *s); /* requires tokens, as if a row existed */

/* True if requests need a token: once a row exists, revoked or not. Negative: the rows cannot be read. */
int token_needed(struct store *s);

/* A guess at a token. Addresses with many wrong guesses must wait (see token.h), and their guesses are ignored
 * meanwhile. Tokens in the form of token_draw are exempt: they cannot be guessed, so their owners are never locked
 * out. */
struct token_try {
	uint64_t from; /* a number made from the address; 0: not limited */
	const char *text;
	size_t len;
	struct arena *arena; /* for the result's texts; NULL: without texts */
	/* results */
	int wait_s;		     /* 0, or the seconds until the next guess counts */
	uint64_t owner;		     /* a number made from the token; 0: it is not known */
	const char *person, *grants; /* as in struct token_row; NULL: a token without a row */
	const char *share;	     /* what the link shows that it is the secret of (share.h); NULL: a token */
};

/* The scope of a token; TOKEN_NONE: no such row, revoked or expired. */
enum token_scope token_check(struct store *s, struct token_try *t);

/* The same by its number: t->owner, with the results in t. */
enum token_scope token_of_owner(struct store *s, struct token_try *t);

/* Returns true for the token of the lock file, which only the server's user can read. */
bool token_of_lock_file(struct store *s, const struct token_try *t);

/* Creates a session of 12 hours with the token's scope at each moment: its cookie text, and the row for
 * session_change_new. This process accepts it at once, even if the disk is full. ERR_USAGE: the token is not valid;
 * ERR_BUSY: see t->wait_s; if that is 0 the rows cannot be read. */
struct session_new {
	char hash[TOKEN_HASH_MAX], token[TOKEN_HASH_MAX];
	int64_t until_ms;
};

int token_session(struct store *s, struct token_try *t, char ret[TOKEN_TEXT_MAX], struct session_new *ret_row,
		  struct err *err);
/* The same for a session: the text is its id, the results are those of its token. */
enum token_scope token_session_check(struct store *s, struct token_try *t);
void token_hash(const char *text, size_t n, char ret[TOKEN_HASH_MAX]); /* as in rows */

/* Grows with every change of the rows. */
unsigned token_generation(struct store *s);

/* --- chosen_token.c: the one rule for tokens and secrets that people choose ------------------------------------- */

/* At least 16 visible ASCII characters, which cannot be guessed soon and fit into a header; at most room - 1. */
struct token_chosen {
	char *ret;
	size_t room;
	const char *from; /* the flag or variable, for messages */
};

/* ERR_USAGE; the text is never part of the message. */
int token_chosen_take(const struct token_chosen *c, const char *text, size_t n, struct err *err);
/* Takes the first line of a file, and warns if other users can open it. */
int token_chosen_file(const struct token_chosen *c, const char *path, struct err *err);

bool token_scope_read(const char *word, enum token_scope *ret); /* read, write, admin */
const char *token_scope_name(enum token_scope scope);

#endif
