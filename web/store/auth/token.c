/* SPDX-License-Identifier: Apache-2.0 */
/* token.c: rows of tokens and sessions, their copy in memory, and wrong guesses by address. Comparisons look at every
 * entry and every byte, so that timing reveals nothing. Independent of headers or cookies. */
#include "web/store/auth/token.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"

/* --- wrong guesses -------------------------------------------------------------------------------------------- */

#define THROTTLE_PLACES 1024

struct throttle {
	uint64_t seed; /* drawn by the caller, who zeroes the rest */
	struct {
		double wrong; /* wrong guesses that count */
		double at_s;  /* time at which `wrong` was counted */
	} places[THROTTLE_PLACES];
};

#define AT_ONCE 10.0
#define FORGET_S 5.0

static unsigned throttle_slot(const struct throttle *t, uint64_t from)
{
	uint64_t h = (from ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (unsigned)((h ^ h >> 32) % THROTTLE_PLACES);
}

static double failures_now(struct throttle *t, unsigned place, double now_s)
{
	double left = t->places[place].wrong - (now_s - t->places[place].at_s) / FORGET_S;

	return left > 0 ? left : 0;
}

/* 0: may guess now; else the seconds until then, at most five. from: a number made from the address. */
static int throttle_wait_s(struct throttle *t, uint64_t from, double now_s)
{
	double over = failures_now(t, throttle_slot(t, from), now_s) - (AT_ONCE - 1);

	return over > 0 ? (int)(over * FORGET_S + 0.999) : 0;
}

static void throttle_wrong(struct throttle *t, uint64_t from, double now_s)
{
	unsigned place = throttle_slot(t, from);
	double wrong = failures_now(t, place, now_s) + 1;

	t->places[place].wrong = wrong < AT_ONCE ? wrong : AT_ONCE;
	t->places[place].at_s = now_s;
}

enum { FIXED_MAX = 4, SESSIONS_MAX = 512, DRAWN_DIGITS_MIN = 32 };

#define UNHEARD_S 3.0 /* then the rows are read before they are trusted */

struct token_entry {
	char hash[TOKEN_HASH_MAX];
	enum token_scope scope;
	int64_t expires_ms; /* INT64_MIN: never */
	bool revoked, lock_file;
	char *person, *grants; /* NULL: fixed */
	char *share;
};

struct token_cache {
	pthread_mutex_t lock;
	atomic_bool stale;
	atomic_uint generation;
	bool needed;
	struct token_entry *rows;
	size_t row_count, row_cap;
	struct token_entry fixed[FIXED_MAX];
	size_t fixed_count;
	struct session_new sessions[SESSIONS_MAX]; /* copies of rows read so far */
	struct throttle throttle;
	double heard_s; /* last time that no change by other processes was known; 0: there are no others */
};

struct token_cache *tokens_new(void)
{
	struct token_cache *t = mem_zalloc(sizeof(*t));

	if (getrandom(&t->throttle.seed, sizeof(t->throttle.seed), 0) < 0)
		/* predictable, which only lets one client slow another's wrong guesses */
		t->throttle.seed = (uint64_t)(clock_wall_s() * 1e6);
	pthread_mutex_init(&t->lock, NULL);
	atomic_store(&t->stale, true);
	return t;
}

static void forget_token_rows(struct token_cache *t)
{
	while (t->row_count) {
		t->row_count--;
		free(t->rows[t->row_count].person);
		free(t->rows[t->row_count].grants);
		free(t->rows[t->row_count].share);
	}
}

void tokens_free(struct token_cache *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	forget_token_rows(t);
	free(t->rows);
	free(t);
}

static const char *token_person(struct db_rows *q)
{
	const char *person = db_str(q, COL_token_list_person);

	return *person ? person : db_str(q, COL_token_list_name);
}

static void append_token_row(struct token_cache *t, struct db_rows *q)
{
	struct token_entry row = { .scope = (enum token_scope)db_i32(q, COL_token_list_scope),
				   .expires_ms = db_time(q, COL_token_list_expires_ms),
				   .revoked = !db_null(q, COL_token_list_revoked_ms),
				   .person = mem_strdup(token_person(q)),
				   .grants = mem_strdup(db_str(q, COL_token_list_grants)),
				   .share = mem_strdup(db_str(q, COL_token_list_share)) };

	snprintf(row.hash, sizeof(row.hash), "%s", db_str(q, COL_token_list_hash));
	mem_push(&t->rows, &t->row_count, &t->row_cap, row);
}

static int load_token_rows(struct store *s, struct err *err)
{
	struct token_cache *t = s->tokens;
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(store_whole(s), &d, err);

	if (rc)
		return rc;
	forget_token_rows(t);
	rc = db_start(d, &q, DB_token_list, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		append_token_row(t, q);
	readers_give(s, d);
	return rc;
}

/* Under the lock. False: the rows cannot be read, so no token can be trusted. */
static bool refresh_tokens(struct store *s)
{
	struct err err = ERR_INIT;

	if (s->tokens->heard_s > 0 && clock_mono_s() > s->tokens->heard_s + UNHEARD_S)
		atomic_store(&s->tokens->stale, true);
	if (!atomic_exchange(&s->tokens->stale, false))
		return true;
	memset(s->tokens->sessions, 0, sizeof(s->tokens->sessions));
	if (!load_token_rows(s, &err))
		return true;
	forget_token_rows(s->tokens);
	atomic_store(&s->tokens->stale, true);
	return false;
}

static bool is_same_hash(const char *a, const char *b)
{
	unsigned char diff = 0;
	size_t i;

	for (i = 0; i < TOKEN_HASH_MAX; i++)
		diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return !diff;
}

/* The valid token with this hash, or NULL. A row takes precedence over a fixed token: a read token stays one wherever
 * it is used. */
static const struct token_entry *find_valid_token(const struct token_cache *t, const char *hash)
{
	const struct token_entry *row = NULL, *fixed = NULL;
	int64_t now = clock_wall_ms();
	size_t i;

	for (i = 0; i < t->row_count; i++)
		row = is_same_hash(t->rows[i].hash, hash) ? &t->rows[i] : row;
	for (i = 0; i < t->fixed_count; i++)
		fixed = is_same_hash(t->fixed[i].hash, hash) ? &t->fixed[i] : fixed;
	if (!row)
		return fixed;
	return row->revoked || (row->expires_ms != INT64_MIN && row->expires_ms <= now) ? NULL : row;
}

/* A number made from a token's hash. */
static uint64_t token_owner(const char *hash)
{
	uint64_t owner;

	memcpy(&owner, hash, sizeof(owner));
	return owner;
}

/* Under the lock. Fills the results of t from the token with this hash. */
static enum token_scope take_token(const struct token_cache *c, const char *hash, struct token_try *t)
{
	const struct token_entry *e = find_valid_token(c, hash);

	t->owner = token_owner(hash);
	if (e && e->grants && t->arena) {
		t->person = arena_strdup(t->arena, e->person);
		t->grants = arena_strdup(t->arena, e->grants);
		t->share = *e->share ? arena_strdup(t->arena, e->share) : NULL;
	}
	return e ? e->scope : TOKEN_NONE;
}

int token_needed(struct store *s)
{
	int needed;

	pthread_mutex_lock(&s->tokens->lock);
	needed = !refresh_tokens(s) ? ERR_BUSY : s->tokens->needed || s->tokens->row_count;
	pthread_mutex_unlock(&s->tokens->lock);
	return needed;
}

/* Under the lock: another process may have just added it. */
static bool token_may_be_new(const struct token_cache *t, const char *hash)
{
	size_t i;

	for (i = 0; i < t->row_count; i++)
		if (is_same_hash(t->rows[i].hash, hash))
			return false;
	return t->heard_s > 0;
}

/* Under the lock. */
static enum token_scope look_up_token(struct store *s, const char *hash, struct token_try *t, bool *ret_ask)
{
	enum token_scope scope = refresh_tokens(s) ? take_token(s->tokens, hash, t) : TOKEN_UNKNOWN;

	*ret_ask = scope == TOKEN_NONE && token_may_be_new(s->tokens, hash);
	return scope;
}

static enum token_scope known_scope(struct store *s, const char *hash, struct token_try *t, bool *ret_ask)
{
	enum token_scope scope;

	pthread_mutex_lock(&s->tokens->lock);
	scope = look_up_token(s, hash, t, ret_ask);
	pthread_mutex_unlock(&s->tokens->lock);
	return scope;
}

/* Looks up the row of a token that is not known here. */
static enum token_scope ask_scope(struct store *s, const char *hash, struct token_try *t)
{
	struct db *d;
	int64_t n = 0;
	bool ask;
	int rc = readers_take(store_whole(s), &d, NULL);

	if (rc)
		return TOKEN_UNKNOWN;
	rc = db_int(d, &n, DB_token_find, NULL, "t", hash);
	readers_give(s, d);
	if (rc <= 0)
		return rc ? TOKEN_UNKNOWN : TOKEN_NONE;
	atomic_store(&s->tokens->stale, true);
	return known_scope(s, hash, t, &ask);
}

/* At least 32 hex digits, with or without dpt- (earlier: dpt_), as made by token_draw and in the lock file. A
 * truncated or mistyped one is still not guessable. */
static bool is_drawn_token(const struct token_try *t)
{
	size_t i = t->len > 4 && (!memcmp(t->text, "dpt-", 4) || !memcmp(t->text, "dpt_", 4)) ? 4 : 0;

	if (t->len < i + DRAWN_DIGITS_MIN)
		return false;
	for (; i < t->len; i++)
		if (!t->text[i] || !strchr("0123456789abcdef", t->text[i]))
			return false;
	return true;
}

enum token_scope token_check(struct store *s, struct token_try *t)
{
	bool drawn = is_drawn_token(t), limited = t->from && t->len && !drawn, ask = false;
	struct throttle *throttle = &s->tokens->throttle;
	enum token_scope scope = TOKEN_NONE;
	double now_s = clock_mono_s();
	char hash[TOKEN_HASH_MAX];

	sha256_hex(t->text, t->len, hash);
	pthread_mutex_lock(&s->tokens->lock);
	t->wait_s = limited ? throttle_wait_s(throttle, t->from, now_s) : 0;
	if (!t->wait_s)
		scope = look_up_token(s, hash, t, &ask);
	if (limited && !t->wait_s && scope == TOKEN_NONE)
		throttle_wrong(throttle, t->from, now_s);
	pthread_mutex_unlock(&s->tokens->lock);
	return ask && drawn ? ask_scope(s, hash, t) : scope;
}

int token_fix(struct store *s, const char *text, enum token_scope scope, bool needed, struct err *err)
{
	struct token_cache *t = s->tokens;
	struct token_entry *e = &t->fixed[t->fixed_count];

	if (t->fixed_count == FIXED_MAX)
		return err_set(err, ERR_LIMIT, "more than %d fixed tokens", FIXED_MAX);
	sha256_hex(text, strlen(text), e->hash);
	e->scope = scope;
	e->expires_ms = INT64_MIN;
	e->lock_file = !needed;
	t->fixed_count++;
	t->needed = t->needed || needed;
	return 0;
}

enum token_scope token_of_owner(struct store *s, struct token_try *t)
{
	struct token_cache *c = s->tokens;
	enum token_scope scope = TOKEN_NONE;
	const char *hash = NULL;

	pthread_mutex_lock(&c->lock);
	if (!refresh_tokens(s))
		scope = TOKEN_UNKNOWN;
	for (size_t i = 0; i < c->row_count + c->fixed_count; i++) {
		const struct token_entry *e = i < c->row_count ? &c->rows[i] : &c->fixed[i - c->row_count];

		hash = token_owner(e->hash) == t->owner ? e->hash : hash;
	}
	if (hash && scope != TOKEN_UNKNOWN)
		scope = take_token(c, hash, t);
	pthread_mutex_unlock(&c->lock);
	return scope;
}

bool token_of_lock_file(struct store *s, const struct token_try *t)
{
	char hash[TOKEN_HASH_MAX];
	bool is = false;

	sha256_hex(t->text, t->len, hash);
	for (size_t i = 0; i < s->tokens->fixed_count; i++) /* this one never changes */
		is = is || (s->tokens->fixed[i].lock_file && is_same_hash(s->tokens->fixed[i].hash, hash));
	return is;
}

int token_refix(struct store *s, const char *old, const char *text, struct err *err)
{
	struct token_cache *t = s->tokens;
	char was[TOKEN_HASH_MAX], now[TOKEN_HASH_MAX];
	bool found = false;

	sha256_hex(old, strlen(old), was);
	sha256_hex(text, strlen(text), now);
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->fixed_count; i++)
		if (is_same_hash(t->fixed[i].hash, was)) {
			memcpy(t->fixed[i].hash, now, sizeof(now));
			found = true;
		}
	pthread_mutex_unlock(&t->lock);
	atomic_fetch_add(&t->generation, 1); /* event streams check their token again */
	return found ? 0 : err_set(err, ERR_NOENT, "the token to replace is not in use");
}

void token_need(struct store *s)
{
	s->tokens->needed = true;
}

unsigned token_generation(struct store *s)
{
	return atomic_load(&s->tokens->generation);
}

int token_list(struct store *s, struct arena *a, struct token_row **ret, size_t *ret_count, struct err *err)
{
	struct token_row *rows = NULL;
	size_t n = 0;
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(store_whole(s), &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_token_list, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		if (*db_str(q, COL_token_list_share))
			continue;
		list_push(a, &rows, &n,
			  (struct token_row){
				  db_text(a, q, COL_token_list_name), (enum token_scope)db_i32(q, COL_token_list_scope),
				  db_i64(q, COL_token_list_created_ms), db_time(q, COL_token_list_expires_ms),
				  db_time(q, COL_token_list_revoked_ms), arena_strdup(a, token_person(q)),
				  db_text(a, q, COL_token_list_grants) });
	}
	readers_give(s, d);
	*ret = rows;
	*ret_count = n;
	return rc;
}

int token_draw(char text[TOKEN_TEXT_MAX], char hash[TOKEN_HASH_MAX], struct err *err)
{
	memcpy(text, "dpt-", 4);
	if (text_random_hex(text + 4, 20))
		return err_set(err, ERR_IO, "cannot get random bytes");
	sha256_hex(text, strlen(text), hash);
	return 0;
}

void token_heard(struct store *s)
{
	pthread_mutex_lock(&s->tokens->lock);
	s->tokens->heard_s = clock_mono_s();
	pthread_mutex_unlock(&s->tokens->lock);
}

void token_changed(struct store *s)
{
	atomic_store(&s->tokens->stale, true);
	atomic_fetch_add(&s->tokens->generation, 1);
}

void token_hash(const char *text, size_t n, char ret[TOKEN_HASH_MAX])
{
	sha256_hex(text, n, ret);
}

/* Under the lock: a valid session, NULL if it is not known here. */
static const struct session_new *find_session(const struct token_cache *t, const char *hash)
{
	const struct session_new *found = NULL;
	int64_t now = clock_wall_ms();
	size_t i;

	for (i = 0; i < SESSIONS_MAX; i++)
		if (is_same_hash(t->sessions[i].hash, hash) && t->sessions[i].until_ms > now)
			found = &t->sessions[i];
	return found;
}

static void keep_session(struct token_cache *t, const struct session_new *row)
{
	size_t i, oldest = 0;

	pthread_mutex_lock(&t->lock);
	for (i = 1; i < SESSIONS_MAX; i++)
		if (t->sessions[i].until_ms < t->sessions[oldest].until_ms)
			oldest = i;
	t->sessions[oldest] = *row;
	pthread_mutex_unlock(&t->lock);
}

int token_session(struct store *s, struct token_try *given, char ret[TOKEN_TEXT_MAX], struct session_new *ret_row,
		  struct err *err)
{
	struct session_new row = { .until_ms = clock_wall_ms() + TOKEN_SESSION_MS };
	enum token_scope scope = token_check(s, given);
	int rc;

	if (scope == TOKEN_UNKNOWN)
		return err_set(err, ERR_BUSY, "the store cannot be read now: try again soon");
	if (scope == TOKEN_NONE)
		return given->wait_s ? err_set(err, ERR_BUSY, "too many wrong tokens from this address: wait %d s",
					       given->wait_s)
				     : err_set(err, ERR_USAGE, "this token is unknown or expired");
	rc = token_draw(ret, row.hash, err);
	if (rc)
		return rc;
	sha256_hex(given->text, given->len, row.token);
	keep_session(s->tokens, &row);
	*ret_row = row;
	return 0;
}

/* Reads the row of a session made by another process, or evicted here: 1, 0: none, or negative. */
static int read_session(struct store *s, const char *hash, struct session_new *ret)
{
	struct session_new row = { .until_ms = 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(store_whole(s), &d, NULL);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_session_get, NULL, "t", hash);
	if (!rc && (rc = db_next(d, q, NULL)) > 0) {
		snprintf(row.hash, sizeof(row.hash), "%s", hash);
		snprintf(row.token, sizeof(row.token), "%s", db_str(q, COL_session_get_token));
		row.until_ms = db_i64(q, COL_session_get_until_ms);
		db_stop(q);
	}
	readers_give(s, d);
	*ret = row;
	return rc < 0 ? rc : row.until_ms > clock_wall_ms();
}

enum token_scope token_session_check(struct store *s, struct token_try *t)
{
	enum token_scope scope = TOKEN_NONE;
	const struct session_new *found;
	char hash[TOKEN_HASH_MAX];
	struct session_new row;
	bool known, ask;
	int rc;

	sha256_hex(t->text, t->len, hash);
	pthread_mutex_lock(&s->tokens->lock);
	known = refresh_tokens(s);
	found = known ? find_session(s->tokens, hash) : NULL;
	if (found)
		scope = take_token(s->tokens, found->token, t);
	pthread_mutex_unlock(&s->tokens->lock);
	if (found)
		return scope;
	rc = known ? read_session(s, hash, &row) : ERR_BUSY;
	if (rc <= 0)
		return rc ? TOKEN_UNKNOWN : TOKEN_NONE;
	keep_session(s->tokens, &row);
	scope = known_scope(s, row.token, t, &ask);
	return ask ? ask_scope(s, row.token, t) : scope;
}

int token_grants_check(const char *text, enum token_scope scope, struct err *err)
{
	struct arena *a = arena_new();
	struct grants g = { 0 };
	int rc = grants_parse(&g, a, text, err);
	size_t i;

	for (i = 0; i < g.count && !rc; i++)
		if ((int)g.items[i].level > (int)scope)
			rc = err_set(err, ERR_USAGE, "experiments: '%.100s%s=%s' is more than the token's scope, %s",
				     g.items[i].name, g.items[i].prefix ? "*" : "", grant_level_name(g.items[i].level),
				     token_scope_name(scope));
	arena_free(a);
	return rc;
}

static const char *const scope_names[] = { "none", "read", "write", "admin" };

bool token_scope_read(const char *word, enum token_scope *ret)
{
	int i;

	for (i = TOKEN_READ; i <= TOKEN_ADMIN; i++)
		if (!strcmp(word, scope_names[i])) {
			*ret = (enum token_scope)i;
			return true;
		}
	return false;
}

const char *token_scope_name(enum token_scope scope)
{
	return scope_names[scope];
}
