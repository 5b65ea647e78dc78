/* SPDX-License-Identifier: Apache-2.0 */
/* client_call.c: a request with its attempts: handles of libcurl, what an answer means, the wait before a retry. */
#include "tracker/object/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"

#define STALL_S 20.0
#define CONNECT_S 10L
#define BACKOFF_S 0.1
#define BACKOFF_MOST_S 10.0
#define RETRY_AFTER_MOST_S 60.0
#define LOOK_S 0.1
#define WRONG_MOST 5
#define SEND_BYTES (256L << 10) /* per write: the receiver wakes less often */

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
	if (c->n_idle < CLIENT_IDLE) {
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
		client_add_header(t->c, s, "Content-Type", call->type ? call->type : "application/octet-stream");
		s->headers = so->slist_append(s->headers, "Expect:");
	}
	if (call->header)
		s->headers = so->slist_append(s->headers, call->header);
	if (match)
		client_add_header(t->c, s, "If-Match", match);
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
	snprintf(call->why, sizeof(call->why), "the server answered status %ld%s%.100s", s, code[0] ? ", " : "", code);
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
		buf_init(&call->text, CLIENT_TEXT_MAX);
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
