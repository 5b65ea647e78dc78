/* SPDX-License-Identifier: Apache-2.0 */
/* client_call.c: a request with its attempts: handles of libcurl, what an answer means, the wait before a retry. */
#include "tracker/object/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"

#define STALL_S 20.0
#define CONNECT_S 10.0
#define LOOK_S 0.1
#define WRONG_MOST 5

/* ---- one attempt ---- */

struct call_attempt {
	struct object_client *c;
	struct object_call *call;
};

static bool receive_body(void *user, const char *bytes, size_t n)
{
	struct object_call *call = ((struct call_attempt *)user)->call;
	const long status = call->curl.answer.status;

	if (!call->piece || status < 200 || status >= 300) {
		buf_add(&call->text, bytes, n);
		return !buf_failed(&call->text);
	}
	if (status == 200 && call->from) /* the whole object instead of a range */
		return false;
	if (call->piece(call->user, bytes, n)) {
		call->refused = true;
		return false;
	}
	call->got += n;
	return true;
}

static bool is_stopped(const struct object_client *c)
{
	return c->o.stop && atomic_load(c->o.stop);
}

static bool check_stop(void *user)
{
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

/* Adds the headers that are not signed. */
static bool add_call_headers(const struct call_attempt *t, struct object_signed *s)
{
	const struct curlso *so = &t->c->so;
	const struct object_call *call = t->call;
	const char *match = call->got && call->etag[0] ? call->etag : call->match; /* continue with the same version */
	bool ok = true;

	if (call->bytes)
		ok = curl_add_header(so, &s->headers, "Content-Type: %s",
				     call->type ? call->type : "application/octet-stream") &&
		     curl_add_header(so, &s->headers, "Expect:");
	if (ok && call->header)
		ok = curl_add_header(so, &s->headers, "%s", call->header);
	if (ok && match)
		ok = curl_add_header(so, &s->headers, "If-Match: %s", match);
	return ok;
}

/* Sends the signed request once. Returns libcurl's code. */
static int perform_call(struct call_attempt *t, void *e, const struct object_signed *s)
{
	struct object_call *call = t->call;
	char range[64];
	int code;

	call->from = call->begin + call->got;
	if (call->end)
		snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)call->from,
			 (unsigned long long)(call->end - 1));
	else
		snprintf(range, sizeof(range), "%llu-", (unsigned long long)call->from);
	call->curl = (struct curl_request){
		.url = s->url, .method = call->ask.method, .headers = s->headers, .body = call->bytes,
		.body_bytes = call->n, .range = call->from || call->end ? range : NULL, .agent = "dptrack",
		.ca = s->ca, .connect_s = CONNECT_S,
		.stall_s = t->c->o.timeout_s < STALL_S ? t->c->o.timeout_s + 1 : STALL_S,
		.bulk = call->bytes != NULL, .receive = receive_body, .stopped = check_stop, .user = t,
	};
	code = curl_request_perform(&t->c->so, e, &call->curl);
	if (call->curl.answer.etag[0])
		memcpy(call->etag, call->curl.answer.etag, sizeof(call->etag));
	return code;
}

/* Signs and sends the request once. Returns libcurl's code, or a negative error if it could not be sent. */
static int attempt_call(struct call_attempt *t, struct err *err)
{
	struct object_call *call = t->call;
	struct object_signed s;
	void *e;
	int code, rc = object_sign(t->c, &call->ask, &s, err);

	if (rc)
		return rc;
	e = acquire_handle(t->c);
	if (!e || !add_call_headers(t, &s)) {
		if (e)
			release_handle(t->c, e);
		object_signed_done(t->c, &s);
		return client_nomem(t->c, call->ask.key, err);
	}
	call->identity = s.identity;
	buf_reset(&call->text);
	code = perform_call(t, e, &s);
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
	const long s = call->curl.answer.status;
	const struct object_refusal refusal = { s, code, call->curl.answer.region, call->identity, call->renewed };

	object_code(call->text.data ? call->text.data : "", call->text.len, code);
	if (s >= 200 && s < 300 && strcmp(code, "InternalError") && strcmp(code, "SlowDown"))
		return 0;
	snprintf(call->why, sizeof(call->why), "the server answered status %ld%s%.100s", s, code[0] ? ", " : "", code);
	if (curl_may_pass(s) || (s >= 200 && s < 300))
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
	snprintf(call->why, sizeof(call->why), "%.190s", call->curl.error);
	if (call->refused || code == CURLSO_ABORTED) {
		snprintf(call->why, sizeof(call->why), "was stopped");
		return set_call_error(t, ERR_CANCELED, err);
	}
	if (call->curl.answer.status == 200 && call->piece && call->from) {
		snprintf(call->why, sizeof(call->why), "the server ignores ranges");
		return ++call->wrong < WRONG_MOST ? ERR_BUSY : set_call_error(t, ERR_UNSUPPORTED, err);
	}
	if (buf_failed(&call->text)) {
		snprintf(call->why, sizeof(call->why), "the answer is too long");
		return set_call_error(t, ERR_LIMIT, err);
	}
	return curlso_for_good(code) ? set_call_error(t, ERR_USAGE, err) : ERR_BUSY;
}

static void wait_before_retry(struct object_client *c, int tries, double retry_after_s)
{
	double until;
	uint64_t draw;

	pthread_mutex_lock(&c->lock);
	draw = ++c->jitter_draws + (uint64_t)(uintptr_t)c;
	pthread_mutex_unlock(&c->lock);
	until = clock_mono_s() + curl_backoff_s(tries, retry_after_s, draw);
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
			wait_before_retry(c, tries, call->curl.answer.retry_after_s);
	}
	call->ask.payload = given;
	return rc;
}

void client_call_done(struct object_call *call)
{
	buf_done(&call->text);
}

int client_read(struct object_client *c, struct object_call *call, const struct answer_reader *to, struct err *err)
{
	int rc = client_call(c, call, err);

	if (!rc)
		rc = answer_read(call->text.data ? call->text.data : "", call->text.len, to, err);
	client_call_done(call);
	return rc;
}

void client_add_xml(struct buf *to, const char *text)
{
	for (; *text; text++)
		if (strchr("&<>\"", *text))
			buf_addf(to, "&#%d;", *text);
		else
			buf_addc(to, *text);
}
