/* SPDX-License-Identifier: Apache-2.0 */
/* client.c: credentials and address, libcurl's handles, retries, and the meaning of answers. */
#include "tracker/object/client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/object/answer.h"
#include "tracker/object/google_auth.h"
#include "tracker/object/identity.h"
#include "tracker/object/sign.h"

#define IDLE 8
#define TIMEOUT_S 60.0
#define STALL_S 20.0
#define CONNECT_S 10L
#define BACKOFF_S 0.1
#define BACKOFF_MOST_S 10.0
#define RETRY_AFTER_MOST_S 60.0
#define LOOK_S 0.1
#define WRONG_MOST 5
#define RENEW_S 225.0 /* before temporary keys expire; Google's metadata server has no newer token earlier */
#define RENEW_AGAIN_S 10.0
#define TEXT_MAX ((size_t)32 << 20)
#define SEND_BYTES (256L << 10) /* per write: the receiver wakes less often */
#define LINE_BYTES (AWS_PROFILE_VALUE_BYTES + 64)
#define SIGNED_HEADERS 4
#define RENEW_MOST 3 /* keys for one request */

struct object_client {
	struct object_opts o;
	struct curlso so;
	const char *scheme;
	struct google_auth *google; /* NULL: S3 */
	char bucket[OBJECT_BUCKET_BYTES];
	pthread_mutex_t lock; /* protects all members below */
	struct settings_place place;
	struct identity identity;
	unsigned number;  /* of the identity, counted up */
	bool stale;	  /* the identity must be loaded again */
	double renew_s;	  /* wall clock: when to load another one; 0: never */
	uint64_t jitter_draws;
	void *idle[IDLE]; /* libcurl's handles, with their connections */
	int n_idle;
};

const char *object_scheme(const char *address)
{
	return !strncmp(address, OBJECT_S3, 5) ? OBJECT_S3 : !strncmp(address, OBJECT_GS, 5) ? OBJECT_GS : NULL;
}

bool object_is_address(const char *address)
{
	return object_scheme(address) != NULL;
}

int object_split(const char *address, char ret_bucket[OBJECT_BUCKET_BYTES], const char **ret_key, struct err *err)
{
	const char *scheme = object_scheme(address), *bucket = address + strlen(OBJECT_S3);
	size_t n = strcspn(bucket, "/");

	if (!n || n >= OBJECT_BUCKET_BYTES || strcspn(bucket, "@?#:% \t") < n)
		return err_set(err, ERR_USAGE, "%.300s%s: expected %sBUCKET/KEY",
			       strchr(bucket, '@') ? scheme : address, strchr(bucket, '@') ? "…" : "", scheme);
	if (strlen(bucket) > n + 1 + OBJECT_KEY_MAX)
		return err_set(err, ERR_USAGE, "%.200s…: a key has at most %d bytes", address, OBJECT_KEY_MAX);
	memcpy(ret_bucket, bucket, n);
	ret_bucket[n] = '\0';
	*ret_key = bucket + n + (bucket[n] == '/');
	return 0;
}

/* Loads place and keys for S3. */
static int load_s3_identity(struct object_client *c, const char *region, struct settings_place *place,
			    struct identity *ret, struct err *err)
{
	struct settings s;
	int rc = settings_load(&s, err);

	if (!rc)
		rc = settings_place(&s, c->bucket, region, place, err);
	if (!rc)
		rc = identity_find(ret, &s, &c->so, err);
	settings_done(&s);
	return rc;
}

static int load_google_identity(struct object_client *c, struct settings_place *place, struct identity *ret,
				struct err *err)
{
	int rc = google_place(c->bucket, place, err);

	if (!rc && !c->google)
		rc = google_auth_open(&c->google, err);
	if (!rc)
		rc = google_auth_identity(c->google, &c->so, ret, err);
	if (rc)
		err_prefix(err, "%s%s", c->scheme, c->bucket);
	return rc;
}

/* Loads address and credentials; keeps the old ones after a failure. `region` NULL: the region is loaded too. */
static int load_identity(struct object_client *c, const char *region, struct err *err)
{
	const double now = clock_wall_s();
	struct settings_place place;
	struct identity fresh;
	double left;
	int rc = strcmp(c->scheme, OBJECT_GS) ? load_s3_identity(c, region, &place, &fresh, err)
					      : load_google_identity(c, &place, &fresh, err);

	if (!rc) {
		left = fresh.until_s - now;
		c->place = place;
		c->identity = fresh;
		c->number++;
		c->stale = false;
		c->renew_s = fresh.until_s > 0 ? fresh.until_s - (left / 2 < RENEW_S ? left / 2 : RENEW_S) : 0;
	}
	explicit_bzero(&fresh, sizeof(fresh));
	return rc;
}

/* Loads new credentials if the old ones were refused or expire soon. While they are valid, a failure can wait. The
 * caller holds the lock. */
static int renew_identity(struct object_client *c, struct err *err)
{
	const double now = clock_wall_s();
	char region[sizeof(c->place.region)];
	int rc;

	if (!c->stale && !(c->renew_s > 0 && now > c->renew_s))
		return 0;
	memcpy(region, c->place.region, sizeof(region));
	rc = load_identity(c, region, err);
	if (!rc || c->stale || now > c->identity.until_s - 1) {
		if (!rc && c->renew_s > 0 && clock_wall_s() > c->renew_s) /* the same token again */
			c->renew_s = clock_wall_s() + RENEW_AGAIN_S;
		return rc;
	}
	c->renew_s = now + RENEW_AGAIN_S;
	return 0;
}

int object_open(struct object_client **ret, const char *bucket, const struct object_opts *o, struct err *err)
{
	struct object_client *c = calloc(1, sizeof(*c));
	int rc = c ? curlso_load(&c->so, err) : err_nomem(err, NULL);

	if (rc) {
		free(c);
		return rc;
	}
	answer_prepare();
	c->o = *o;
	c->scheme = o->scheme ? o->scheme : OBJECT_S3;
	c->o.timeout_s = o->timeout_s > 0 ? o->timeout_s : TIMEOUT_S;
	snprintf(c->bucket, sizeof(c->bucket), "%s", bucket);
	pthread_mutex_init(&c->lock, NULL);
	rc = load_identity(c, NULL, err);
	if (rc) {
		object_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void object_close(struct object_client *c)
{
	if (!c)
		return;
	for (int i = 0; i < c->n_idle; i++)
		c->so.easy_cleanup(c->idle[i]);
	pthread_mutex_destroy(&c->lock);
	google_auth_close(c->google);
	explicit_bzero(&c->identity, sizeof(c->identity));
	free(c);
}

void object_url(struct object_client *c, char ret[OBJECT_URL_BYTES])
{
	_Static_assert(sizeof(c->place.url) + sizeof(c->place.path) <= OBJECT_URL_BYTES, "space for both");
	pthread_mutex_lock(&c->lock);
	snprintf(ret, OBJECT_URL_BYTES, "%s%s", c->place.url, c->place.path);
	pthread_mutex_unlock(&c->lock);
}

const char *client_scheme(const struct object_client *c)
{
	return c->scheme;
}

int client_nomem(const struct object_client *c, const char *key, struct err *err)
{
	return err_set(err, ERR_NOMEM, "out of memory: %s%s/%.300s", c->scheme, c->bucket, key);
}

/* ---- signing ---- */

static void append_header(struct object_client *c, struct object_signed *s, const char *name, const char *value)
{
	char line[LINE_BYTES];

	snprintf(line, sizeof(line), "%s: %s", name, value);
	s->headers = c->so.slist_append(s->headers, line);
}

/* Adds the signature of a request by keys. path and query: encoded. */
static int add_signature(struct object_client *c, const struct object_ask *a, const struct buf *path,
			 const struct buf *query, struct object_signed *ret)
{
	char date[SIGN_DATE_BYTES];
	const char *payload = a->payload ? a->payload : SIGN_EMPTY;
	const int n = SIGNED_HEADERS - !c->identity.token[0];
	struct sign_header header[SIGNED_HEADERS] = { { "host", c->place.host },
						      { "x-amz-content-sha256", payload },
						      { "x-amz-date", date },
						      { "x-amz-security-token", c->identity.token } };
	struct sign_key key = { c->identity.id, c->identity.secret, c->place.region };
	struct buf signature;
	bool failed;

	buf_init(&signature, LINE_BYTES);
	sign_date((time_t)clock_wall_s(), date);
	sign_v4(&(struct sign_request){ .method = a->method,
					.path = path->data ? path->data : "",
					.query = query->data ? query->data : "",
					.header = header,
					.n_headers = n,
					.payload = payload,
					.date = date },
		&key, &signature);
	failed = buf_failed(&signature);
	if (!failed)
		append_header(c, ret, "Authorization", signature.data);
	for (int i = 1; i < n && !failed; i++)
		append_header(c, ret, header[i].name, header[i].value);
	buf_done(&signature);
	return failed ? ERR_NOMEM : 0;
}

/* Adds the credentials to a request; the caller holds the lock. */
static int sign_object_request(struct object_client *c, const struct object_ask *a, struct object_signed *ret,
			       struct err *err)
{
	struct buf path, query, url, bearer;
	int rc = 0;

	buf_init(&path, 4 * OBJECT_KEY_MAX);
	buf_init(&query, TEXT_MAX);
	buf_init(&url, TEXT_MAX);
	buf_init(&bearer, LINE_BYTES);
	buf_addf(&path, "%s%s", c->place.path, *a->key || !c->place.path[0] ? "/" : "");
	uri_add_path(&path, a->key);
	buf_adds(&query, "");
	uri_add_query(&query, a->query, a->n_query);
	buf_addf(&url, "%s%s%s%s", c->place.url, path.data ? path.data : "", a->n_query ? "?" : "",
		 query.data ? query.data : "");
	buf_addf(&bearer, "Bearer %s", c->identity.token);
	*ret = (struct object_signed){ .ca = c->google ? NULL : settings_env("AWS_CA_BUNDLE"), .identity = c->number };
	if (buf_failed(&path) || buf_failed(&query) || buf_failed(&url) || buf_failed(&bearer))
		rc = ERR_NOMEM;
	else if (c->identity.kind == IDENTITY_KEYS)
		rc = add_signature(c, a, &path, &query, ret);
	else if (c->identity.kind == IDENTITY_BEARER)
		append_header(c, ret, "Authorization", bearer.data);
	if (rc)
		rc = client_nomem(c, a->key, err);
	else
		ret->url = buf_take(&url, NULL);
	buf_done(&path);
	buf_done(&query);
	buf_done(&url);
	buf_done(&bearer);
	return rc;
}

int object_sign(struct object_client *c, const struct object_ask *a, struct object_signed *ret, struct err *err)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = renew_identity(c, err);
	if (!rc)
		rc = sign_object_request(c, a, ret, err);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void object_signed_done(struct object_client *c, struct object_signed *s)
{
	free(s->url);
	c->so.slist_free_all(s->headers);
	*s = (struct object_signed){ .url = NULL };
}

/* Returns true if the request's token or temporary keys are no longer valid, and others can be requested. */
static bool has_expired(const struct object_client *c, const struct object_refusal *r)
{
	if (!c->identity.given)
		return false;
	return c->google ? r->status == 401 && !r->renewed
			 : !strcmp(r->code, "ExpiredToken") && r->renewed < RENEW_MOST;
}

bool object_learn(struct object_client *c, const struct object_refusal *r)
{
	bool again = false;

	pthread_mutex_lock(&c->lock);
	if (r->region[0] && strcmp(r->region, c->place.region) &&
	    (r->status == 301 || r->status == 307 || r->status == 400 || r->status == 403)) {
		again = !load_identity(c, r->region, NULL);
	} else if (has_expired(c, r)) {
		again = true;
		c->stale |= r->identity == c->number; /* else there are newer ones */
	}
	pthread_mutex_unlock(&c->lock);
	return again;
}

void object_advise(struct object_client *c, const struct object_refusal *r, char *text, size_t room)
{
	const size_t n = strlen(text);
	const bool denied = r->status == 401 || r->status == 403;

	if (n + 1 >= room)
		return;
	pthread_mutex_lock(&c->lock);
	if (!strcmp(r->code, "RequestTimeTooSkewed"))
		snprintf(text + n, room - n, ": set this machine's clock");
	else if (c->google && denied && c->identity.kind == IDENTITY_ANONYMOUS)
		snprintf(text + n, room - n, ": no credentials were sent: set GOOGLE_APPLICATION_CREDENTIALS");
	else if (c->google && r->status == 403 && !strcmp(r->code, "AccessDenied"))
		snprintf(text + n, room - n, ": grant %.100s the role Storage Object Viewer for the bucket",
			 c->identity.who[0] ? c->identity.who : "the account");
	else if (c->google && r->status == 401)
		snprintf(text + n, room - n, ": the server does not accept the token");
	pthread_mutex_unlock(&c->lock);
}

/* ---- one attempt ---- */

struct call_attempt {
	struct object_client *c;
	struct object_call *call;
	char error[CURLSO_ERROR_BYTES];
};

static size_t receive_body(char *bytes, size_t size, size_t n, void *user)
{
	struct object_call *call = ((struct call_attempt *)user)->call;

	n *= size;
	if (!call->piece || call->status < 200 || call->status >= 300) {
		buf_add(&call->text, bytes, n);
		return buf_failed(&call->text) ? 0 : n;
	}
	if (call->status == 200 && call->from) /* the whole object instead of a range */
		return 0;
	if (call->piece(call->user, bytes, n)) {
		call->refused = true;
		return 0;
	}
	call->got += n;
	return n;
}

/* Reads one header line of the answer: status, ETag, size, region, wait. */
static size_t receive_header(char *line, size_t size, size_t n, void *user)
{
	struct object_call *call = ((struct call_attempt *)user)->call;
	char value[CURLSO_HEADER_BYTES];

	n *= size;
	if (n > 9 && !strncmp(line, "HTTP/", 5)) {
		const char *space = memchr(line, ' ', n);

		call->status = space ? strtol(space, NULL, 10) : 0;
	} else if (curlso_header(line, n, "ETag", value)) {
		snprintf(call->etag, sizeof(call->etag), "%.*s", OBJECT_ETAG_BYTES - 1, value);
	} else if (curlso_header(line, n, "Content-Length", value) && call->status == 200) {
		call->total = strtoull(value, NULL, 10);
	} else if (curlso_header(line, n, "Content-Range", value)) {
		call->total = strchr(value, '/') ? strtoull(strchr(value, '/') + 1, NULL, 10) : 0;
	} else if (curlso_header(line, n, "Retry-After", value)) {
		call->retry_after_s = strtod(value, NULL);
	} else if (curlso_header(line, n, "x-amz-bucket-region", value)) {
		snprintf(call->region, sizeof(call->region), "%.63s", value);
	} else if (curlso_header(line, n, "x-goog-generation", value)) {
		snprintf(call->generation, sizeof(call->generation), "%.*s", OBJECT_GENERATION_BYTES - 1, value);
	}
	return n;
}

static bool is_stopped(const struct object_client *c)
{
	return c->o.stop && atomic_load(c->o.stop);
}

static int check_stop(void *user, int64_t a, int64_t b, int64_t c, int64_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	return is_stopped(((struct call_attempt *)user)->c);
}

static void *acquire_handle(struct object_client *c)
{
	void *e = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->n_idle)
		e = c->idle[--c->n_idle];
	pthread_mutex_unlock(&c->lock);
	return e ? e : c->so.easy_init();
}

static void release_handle(struct object_client *c, void *e)
{
	bool kept = false;

	c->so.easy_reset(e);
	pthread_mutex_lock(&c->lock);
	if (c->n_idle < IDLE) {
		c->idle[c->n_idle++] = e;
		kept = true;
	}
	pthread_mutex_unlock(&c->lock);
	if (!kept)
		c->so.easy_cleanup(e);
}

static void set_transfer_options(struct call_attempt *t, void *e)
{
	const struct curlso *so = &t->c->so;

	so->easy_setopt(e, CURLSO_PROTOCOLS, (long)CURLSO_HTTP_AND_HTTPS);
	so->easy_setopt(e, CURLSO_NOSIGNAL, 1L);
	so->easy_setopt(e, CURLSO_USERAGENT, "dptrack");
	so->easy_setopt(e, CURLSO_CONNECTTIMEOUT, CONNECT_S);
	so->easy_setopt(e, CURLSO_LOW_SPEED_LIMIT, 1L);
	so->easy_setopt(e, CURLSO_LOW_SPEED_TIME,
			t->c->o.timeout_s < STALL_S ? (long)t->c->o.timeout_s + 1 : (long)STALL_S);
	so->easy_setopt(e, CURLSO_ERRORBUFFER, t->error);
	so->easy_setopt(e, CURLSO_WRITEFUNCTION, receive_body);
	so->easy_setopt(e, CURLSO_WRITEDATA, t);
	so->easy_setopt(e, CURLSO_HEADERFUNCTION, receive_header);
	so->easy_setopt(e, CURLSO_HEADERDATA, t);
	so->easy_setopt(e, CURLSO_NOPROGRESS, 0L);
	so->easy_setopt(e, CURLSO_XFERINFOFUNCTION, check_stop);
	so->easy_setopt(e, CURLSO_XFERINFODATA, t);
}

/* Sets the request's body, headers and range. */
static void set_request_options(struct call_attempt *t, void *e, struct object_signed *s)
{
	const struct curlso *so = &t->c->so;
	const struct object_call *call = t->call;
	const char *match = call->got && call->etag[0] ? call->etag : call->match; /* continue with the same version */
	char range[64];

	if (!strcmp(call->ask.method, "HEAD"))
		so->easy_setopt(e, CURLSO_NOBODY, 1L);
	else if (strcmp(call->ask.method, "GET"))
		so->easy_setopt(e, CURLSO_CUSTOMREQUEST, call->ask.method);
	if (call->bytes) {
		so->easy_setopt(e, CURLSO_POSTFIELDSIZE_LARGE, (int64_t)call->n);
		so->easy_setopt(e, CURLSO_POSTFIELDS, call->bytes);
		so->easy_setopt(e, CURLSO_UPLOAD_BUFFERSIZE, SEND_BYTES);
		append_header(t->c, s, "Content-Type", call->type ? call->type : "application/octet-stream");
		s->headers = so->slist_append(s->headers, "Expect:");
	}
	if (call->header)
		s->headers = so->slist_append(s->headers, call->header);
	if (match)
		append_header(t->c, s, "If-Match", match);
	if (call->end)
		snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)call->from,
			 (unsigned long long)(call->end - 1));
	else
		snprintf(range, sizeof(range), "%llu-", (unsigned long long)call->from);
	if (call->from || call->end)
		so->easy_setopt(e, CURLSO_RANGE, range);
	if (s->ca)
		so->easy_setopt(e, CURLSO_CAINFO, s->ca);
	so->easy_setopt(e, CURLSO_URL, s->url);
	so->easy_setopt(e, CURLSO_PATH_AS_IS, 1L);
	so->easy_setopt(e, CURLSO_HTTPHEADER, s->headers);
}

/* Sends the request once. Returns libcurl's code, or a negative error if it could not be sent. */
static int attempt_call(struct call_attempt *t, struct err *err)
{
	struct object_call *call = t->call;
	struct object_signed s;
	void *e;
	int code, rc = object_sign(t->c, &call->ask, &s, err);

	if (rc)
		return rc;
	e = acquire_handle(t->c);
	if (!e) {
		object_signed_done(t->c, &s);
		return client_nomem(t->c, call->ask.key, err);
	}
	call->status = 0;
	call->from = call->begin + call->got;
	call->total = 0;
	call->retry_after_s = 0;
	call->identity = s.identity;
	call->region[0] = t->error[0] = '\0';
	buf_reset(&call->text);
	set_transfer_options(t, e);
	set_request_options(t, e, &s);
	code = t->c->so.easy_perform(e);
	release_handle(t->c, e);
	object_signed_done(t->c, &s);
	return code;
}

/* ---- classification of answers ---- */

static int set_call_error(const struct call_attempt *t, int rc, struct err *err)
{
	return err_set(err, rc, "%s%s/%.150s: %s", t->c->scheme, t->c->bucket, t->call->ask.key, t->call->why);
}

/* Returns 0: done; ERR_BUSY: try again; else the error. */
static int classify_status(struct call_attempt *t, struct err *err)
{
	struct object_call *call = t->call;
	char code[OBJECT_CODE_BYTES];
	const struct object_refusal refusal = { call->status, code, call->region, call->identity, call->renewed };
	long s = call->status;

	object_code(call->text.data ? call->text.data : "", call->text.len, code);
	if (s >= 200 && s < 300 && strcmp(code, "InternalError") && strcmp(code, "SlowDown"))
		return 0;
	snprintf(call->why, sizeof(call->why), "the server answered status %ld%s%.100s", s, code[0] ? ", " : "",
		 code);
	if (s == 408 || s == 429 || s >= 500 || (s >= 200 && s < 300))
		return ERR_BUSY;
	if (object_learn(t->c, &refusal)) {
		call->renewed++;
		return ERR_BUSY;
	}
	if (s == 404) {
		snprintf(call->why, sizeof(call->why), "not found%s%.100s", code[0] ? ": " : "", code);
		return set_call_error(t, ERR_NOENT, err);
	}
	if (s == 409 || s == 412) {
		snprintf(call->why, sizeof(call->why), call->header ? "already exists" : "has changed");
		return set_call_error(t, ERR_EXISTS, err);
	}
	object_advise(t->c, &refusal, call->why, sizeof(call->why));
	return set_call_error(t, ERR_USAGE, err);
}

/* Classifies an attempt by libcurl's code, then by the answer: 0, ERR_BUSY to try again, else the error. */
static int classify_attempt(struct call_attempt *t, int code, struct err *err)
{
	struct object_call *call = t->call;

	if (code < 0)
		return code;
	if (code == CURLSO_OK)
		return classify_status(t, err);
	if (call->got && call->begin + call->got == call->end) /* all bytes arrived; ignore later errors */
		return 0;
	snprintf(call->why, sizeof(call->why), "%.190s", t->error[0] ? t->error : t->c->so.easy_strerror(code));
	if (call->refused || code == CURLSO_ABORTED) {
		snprintf(call->why, sizeof(call->why), "was stopped");
		return set_call_error(t, ERR_CANCELED, err);
	}
	if (call->status == 200 && call->piece && call->from) {
		snprintf(call->why, sizeof(call->why), "the server ignores ranges");
		return ++call->wrong < WRONG_MOST ? ERR_BUSY : set_call_error(t, ERR_UNSUPPORTED, err);
	}
	if (buf_failed(&call->text)) {
		snprintf(call->why, sizeof(call->why), "the answer is too long");
		return set_call_error(t, ERR_LIMIT, err);
	}
	return curlso_for_good(code) ? set_call_error(t, ERR_USAGE, err) : ERR_BUSY;
}

/* Waits longer after each attempt, with jitter, so that many clients do not retry at the same time. */
static void wait_before_retry(struct object_client *c, int tries, double retry_after_s)
{
	double wait = BACKOFF_S, until;
	uint64_t x;

	for (; tries > 1 && wait < BACKOFF_MOST_S; tries--)
		wait *= 2;
	pthread_mutex_lock(&c->lock);
	x = (++c->jitter_draws + (uint64_t)(uintptr_t)c) * 0x9e3779b97f4a7c15u;
	pthread_mutex_unlock(&c->lock);
	wait *= 0.5 + 0.5 * (double)(x >> 40) / (double)(1 << 24);
	if (retry_after_s > wait)
		wait = retry_after_s < RETRY_AFTER_MOST_S ? retry_after_s : RETRY_AFTER_MOST_S;
	until = clock_mono_s() + wait;
	while (!is_stopped(c) && clock_mono_s() < until)
		clock_sleep_s(until - clock_mono_s() < LOOK_S ? until - clock_mono_s() : LOOK_S);
}

int client_call(struct object_client *c, struct object_call *call, struct err *err)
{
	struct call_attempt t = { .c = c, .call = call };
	const char *given = call->ask.payload;
	double progress_s = clock_mono_s();
	char hex[65];
	int rc = ERR_BUSY;

	if (!call->text.max)
		buf_init(&call->text, TEXT_MAX);
	if (call->bytes && !given) {
		sha256_hex(call->bytes, call->n, hex);
		call->ask.payload = hex;
	}
	for (int tries = 1; rc == ERR_BUSY; tries++) {
		uint64_t before = call->got;

		rc = classify_attempt(&t, attempt_call(&t, err), err);
		if (rc != ERR_BUSY)
			break;
		if (call->got > before) {
			progress_s = clock_mono_s();
			tries = 1;
		}
		if (clock_mono_s() - progress_s > c->o.timeout_s)
			rc = set_call_error(&t, ERR_IO, err);
		else
			wait_before_retry(c, tries, call->retry_after_s);
	}
	call->ask.payload = given;
	return rc;
}

void client_call_done(struct object_call *call)
{
	buf_done(&call->text);
}
