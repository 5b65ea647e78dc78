/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c: the thread that posts alerts. It claims an alert with a lease longer than a post: only one of several
 * processes posts it, and another one takes over if that process dies. A post that fails is retried after twice the
 * previous wait, at most five minutes. */
#include "web/webhook/webhook.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/base/thread.h"
#include "tracker/sink/http_client.h"
#include "web/store/alert/alert.h"
#include "web/webhook/webhook_format.h"

#define POST_S 10.0          /* limit for one post, and so the longest delay between a signal and the end */
#define LEASE_MS 60000       /* time of a claim; longer than a post */
#define RETRY_MS 2000        /* wait after the first failure */
#define RETRY_MAX_MS 300000
#define GIVE_UP_AFTER_MS INT64_C(604800000) /* a week after the alert fired */
#define PAUSE_S 1.0
#define SECRET_MIN 16

struct webhook {
	struct store *s;
	struct http *http;
	const struct webhook_format *format;
	char secret[256]; /* "": not signed */
	bool failing; /* the failure of the receiver is logged already */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* protects stop */
	pthread_cond_t wake;
	bool stop;
};

static int read_webhook_secret(struct webhook *w, const char *path, struct err *err)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return err_set_errno(err, errno, "--webhook-secret-file %s", path);
	if (!fgets(w->secret, sizeof w->secret, f))
		w->secret[0] = '\0';
	fclose(f);
	w->secret[strcspn(w->secret, "\r\n")] = '\0';
	if (strlen(w->secret) >= SECRET_MIN)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--webhook-secret-file %s: the first line must hold a secret of %d characters or more", path,
		       SECRET_MIN);
}

int webhook_new(struct webhook **ret, struct store *s, const struct webhook_opts *opts, struct err *err)
{
	struct webhook *w = calloc(1, sizeof *w);
	int rc;

	if (!w)
		return err_nomem(err, NULL);
	w->s = s;
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->wake);
	rc = webhook_format_choose(&w->format, opts->format, opts->url, err);
	if (!rc && opts->secret_file)
		rc = read_webhook_secret(w, opts->secret_file, err);
	else if (!rc && !webhook_format_is_chat(w->format))
		rc = err_set(err, ERR_USAGE,
			     "--webhook: posts of JSON are signed: add --webhook-secret-file, or the "
			     "--webhook-format of a chat");
	if (!rc)
		rc = http_open(&w->http, opts->url, NULL, err);
	if (rc) {
		webhook_free(w);
		return rc;
	}
	http_hide_path(w->http);
	*ret = w;
	return 0;
}

void webhook_free(struct webhook *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (w->started)
		pthread_join(w->thread, NULL); /* a running post ends first: after an abort the receiver might get it
					        * twice */
	http_close(w->http);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Formats the header line by which the receiver verifies that the body is from this server. */
static void sign_webhook_body(const struct webhook *w, const struct buf *body, char ret[128])
{
	unsigned char mac[32];
	int n = snprintf(ret, 128, "X-Dptrack-Signature: sha256=");

	sha256_hmac(w->secret, body->data, body->len, mac);
	text_hex(ret + n, mac, sizeof mac);
}

/* Posts one alert; 0: the receiver accepted it. *ret_later_ms: the wait that the receiver demands. */
static int post_alert(struct webhook *w, const struct alert_fired *f, int64_t *ret_later_ms, struct err *err)
{
	char signature[128], delivery[64];
	const char *const headers[] = { delivery, *w->secret ? signature : NULL, NULL };
	struct http_reply reply = { 0 };
	struct buf body;
	int rc;

	buf_init(&body, 1 << 16);
	webhook_format_write(w->format, &body, f);
	if (buf_failed(&body)) {
		buf_done(&body);
		return err_nomem(err, NULL);
	}
	sign_webhook_body(w, &body, signature);
	snprintf(delivery, sizeof delivery, "X-Dptrack-Delivery: %" PRId64, f->id);
	rc = http_send(w->http, &(struct http_request){ .method = "POST", .path = "", .body = body.data,
		.body_bytes = body.len, .content_type = "application/json", .headers = headers,
		.deadline_s = clock_mono_s() + POST_S }, &reply, err);
	buf_done(&body);
	if (rc)
		return rc;
	if (reply.status < 200 || reply.status > 299)
		rc = err_set(err, ERR_PEER, "%s: status %ld", http_url(w->http), reply.status);
	*ret_later_ms = (int64_t)(fmin(reply.retry_after_s, 3600) * 1000);
	http_reply_done(&reply);
	return rc;
}

static int submit_alert_change(struct webhook *w, const struct alert_op *op, bool *ret_existed, struct err *err)
{
	const struct ingest_op ingest = alert_ingest(op);
	struct ingest_result res;
	int rc = ingest_submit(w->s, &ingest, NULL, &res, err);

	*ret_existed = !rc && res.existed;
	return rc;
}

static int64_t retry_wait_ms(int tries)
{
	int64_t wait = (int64_t)RETRY_MS << (tries < 8 ? tries : 8);

	return wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS;
}

static void log_delivery_state(struct webhook *w, int rc, const struct err *err)
{
	if (rc && !w->failing)
		log_warn("alerts are not accepted (they are posted again later): %s", err->text);
	else if (!rc && w->failing)
		log_info("alerts are accepted again by %s", http_url(w->http));
	w->failing = rc;
}

/* Claims one alert and posts it; *ret_taken is false if the receiver did not accept it. */
static int deliver_alert(struct webhook *w, const struct alert_fired *f, int64_t now_ms, bool *ret_taken,
			 struct err *err)
{
	struct alert_op op = { .kind = &alert_change_claim, .id = f->id, .due_ms = f->due_ms,
			       .time_ms = now_ms + LEASE_MS };
	struct err why = ERR_INIT;
	int64_t later_ms = 0;
	bool elsewhere;
	int rc = submit_alert_change(w, &op, &elsewhere, err), failed;

	if (rc || elsewhere)
		return rc;
	failed = post_alert(w, f, &later_ms, &why);
	log_delivery_state(w, failed, &why);
	*ret_taken = !failed;
	op = (struct alert_op){ .kind = &alert_change_settle, .id = f->id, .due_ms = INT64_MIN, .time_ms = now_ms };
	if (failed) {
		int64_t wait = retry_wait_ms(f->tries);

		op.time_ms = INT64_MIN;
		if (now_ms - f->time_ms < GIVE_UP_AFTER_MS)
			op.due_ms = now_ms + (later_ms > wait ? later_ms : wait);
	}
	return submit_alert_change(w, &op, &elsewhere, err);
}

int webhook_turn(struct webhook *w, int64_t now_ms, struct err *err)
{
	struct arena *a = arena_new();
	struct alerts due = { 0 };
	bool taken = true;
	size_t i;
	int rc = a ? alert_due(w->s, now_ms, a, &due, err) : err_nomem(err, NULL);

	for (i = 0; i < due.count && taken && !rc; i++)
		rc = deliver_alert(w, &due.items[i], now_ms, &taken, err);
	arena_free(a);
	return rc;
}

static void *run_webhook(void *arg)
{
	struct webhook *w = arg;
	bool stop = false;

	while (!stop) {
		double until_s = clock_mono_s() + PAUSE_S;

		webhook_turn(w, clock_wall_ms(), NULL);
		pthread_mutex_lock(&w->lock);
		while (!w->stop && cond_wait_until(&w->wake, &w->lock, until_s))
			;
		stop = w->stop;
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

int webhook_start(struct webhook *w, struct err *err)
{
	int rc = thread_start(&w->thread, run_webhook, w);

	w->started = !rc;
	return rc ? err_set_errno(err, rc, "alerts: cannot start a thread") : 0;
}
