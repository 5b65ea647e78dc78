/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c: the thread that posts alerts. It claims an alert with a lease longer than a post: only one of several
 * processes posts it, and another one takes over if that process dies. A post that fails is retried after twice the
 * previous wait, at most five minutes. */
#include "web/webhook/webhook.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/base/thread.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "tracker/sink/http_client.h"
#include "web/api/api.h"
#include "web/store/alert/alert.h"
#include "web/store/auth/token.h"

/* ---- the bodies ----
 * The bodies of posted alerts: dptrack's own JSON, and the messages that incoming webhooks of Slack, Discord and
 * Microsoft Teams accept. Names and texts come from clients, so they must not mention people, link or format in a chat:
 * Slack and Discord get them escaped, Teams in an element that has no markup. The shapes:
 * https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks,
 * https://discord.com/developers/docs/resources/webhook#execute-webhook,
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using */

#define DISCORD_MAX 2000 /* characters of a message */
#define ALERT_TEXT_BYTES 1200

struct webhook_format {
	const char *name;
	const char *hosts[5]; /* of such receivers, also their subdomains; NULL after the last */
	void (*escape)(struct buf *out, const char *text);
	const char *before, *after;
};

static void write_json_alert(struct buf *out, const struct alert_fired *f, const char *text)
{
	struct js j = { .out = out };
	char id[24];

	snprintf(id, sizeof(id), "%" PRId64, f->id);
	js_open(&j, '{');
	js_key_str(&j, "id", id);
	js_key_str(&j, "kind", f->kind);
	js_key_str(&j, "text", text);
	js_key_str(&j, "experiment", f->experiment);
	js_key_str(&j, "run", f->run);
	js_key_str(&j, "run_name", f->run_name);
	js_key_str(&j, "metric", f->metric);
	js_key_int(&j, "step", f->step);
	js_key_double(&j, "value", f->value);
	js_key_int(&j, "time", f->time_ms);
	js_close(&j, '}');
}

/* Slack reads <...> as a link or a mention; these three characters are all that it unescapes. */
static void escape_slack_text(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '&')
			buf_adds(out, "&amp;");
		else if (*text == '<')
			buf_adds(out, "&lt;");
		else if (*text == '>')
			buf_adds(out, "&gt;");
		else
			buf_addc(out, *text);
}

/* Discord takes a backslash before punctuation as an escape, and refuses longer messages. */
static void escape_discord_text(struct buf *out, const char *text)
{
	size_t step;

	for (; *text; text += step) {
		bool markup = strchr("\\*_~`|>#[]<@:-+", *text) != NULL;

		step = utf8_step((const unsigned char *)text, strlen(text));
		step += !step;
		if (out->len + markup + step > DISCORD_MAX)
			break;
		if (markup)
			buf_addc(out, '\\');
		buf_add(out, text, step);
	}
}

static void copy_text(struct buf *out, const char *text)
{
	buf_adds(out, text);
}

#define CARD "{\"contentType\":\"application/vnd.microsoft.card.adaptive\",\"contentUrl\":null,\"content\":{" \
	     "\"$schema\":\"http://adaptivecards.io/schemas/adaptive-card.json\",\"type\":\"AdaptiveCard\"," \
	     "\"version\":\"1.4\",\"body\":[{\"type\":\"RichTextBlock\",\"inlines\":[{\"type\":\"TextRun\",\"text\":"

/* A message is: before, the escaped text as a JSON string, after. escape is NULL for dptrack's own JSON. */
static const struct webhook_format formats[] = {
	{ .name = "json" },
	{ .name = "slack", .hosts = { "hooks.slack.com", "hooks.slack-gov.com" }, .escape = escape_slack_text,
	  .before = "{\"text\":", .after = ",\"mrkdwn\":false,\"unfurl_links\":false}" },
	{ .name = "discord", .hosts = { "discord.com", "discordapp.com" }, .escape = escape_discord_text,
	  .before = "{\"content\":",
	  .after = ",\"allowed_mentions\":{\"parse\":[]},\"flags\":4}" }, /* 4: no previews of links */
	{ .name = "teams",
	  .hosts = { "webhook.office.com", "logic.azure.com", "powerplatform.com", "powerautomate.com" },
	  .escape = copy_text, .before = "{\"type\":\"message\",\"attachments\":[" CARD, .after = "}]}]}}]}" },
};

/* Returns false for dptrack's own JSON, whose receiver verifies a signature. */
static bool webhook_format_is_chat(const struct webhook_format *w)
{
	return w->escape != NULL;
}

/* Appends the body of one alert. out fails if memory or its maximum does not suffice. */
static void webhook_format_write(const struct webhook_format *w, struct buf *out, const struct alert_fired *f)
{
	struct js j = { .out = out };
	char text[ALERT_TEXT_BYTES];
	struct buf escaped;

	snprintf(text, sizeof(text), "%.300s / %.300s: %.500s", f->experiment, f->run_name, f->text);
	if (!w->escape) {
		write_json_alert(out, f, text);
		return;
	}
	buf_init(&escaped, out->max);
	w->escape(&escaped, text);
	buf_adds(out, w->before);
	js_str(&j, escaped.data ? escaped.data : "");
	buf_adds(out, w->after);
	out->failed |= buf_failed(&escaped);
	buf_done(&escaped);
}

#define FORMATS (sizeof(formats) / sizeof(*formats))

/* Returns true if the URL's host is `domain` or below it. */
static bool is_below_domain(const char *url, const char *domain)
{
	const char *host = strstr(url, "://"), *at;
	size_t n, length = strlen(domain);

	host = host ? host + 3 : url;
	n = strcspn(host, "/?#");
	at = memrchr(host, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	n = strcspn(host, ":/?#") < n ? strcspn(host, ":/?#") : n;
	return n >= length && !strncasecmp(host + n - length, domain, length) &&
	       (n == length || host[n - length - 1] == '.');
}

/* The format called name, or by the host of the URL if name is NULL (JSON for other hosts). ERR_USAGE: unknown name. */
static int webhook_format_choose(const struct webhook_format **ret, const char *name, const char *url, struct err *err)
{
	size_t i, k;

	for (i = 0; name && i < FORMATS; i++)
		if (!strcmp(formats[i].name, name)) {
			*ret = &formats[i];
			return 0;
		}
	if (name)
		return err_set(err, ERR_USAGE, "--webhook-format %.40s: expected json, slack, discord or teams", name);
	*ret = &formats[0];
	for (i = 0; i < FORMATS; i++)
		for (k = 0; formats[i].hosts[k]; k++)
			if (is_below_domain(url, formats[i].hosts[k]))
				*ret = &formats[i];
	return 0;
}

#define POST_S 10.0    /* limit for one post, and so the longest delay between a signal and the end */
#define LEASE_MS 60000 /* time of a claim; longer than a post */
#define RETRY_MS 2000  /* wait after the first failure */
#define RETRY_MAX_MS 300000
#define GIVE_UP_AFTER_MS INT64_C(604800000) /* a week after the alert fired */
#define PAUSE_S 1.0

struct webhook {
	struct store *s;
	struct http *http;
	const struct webhook_format *format;
	char secret[256]; /* "": not signed */
	bool failing;	  /* the failure of the receiver is logged already */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* protects stop */
	pthread_cond_t wake;
	bool stop;
};

int webhook_new(struct webhook **ret, struct store *s, const struct webhook_opts *opts, struct err *err)
{
	struct webhook *w = mem_zalloc(sizeof(*w));
	int rc;

	w->s = s;
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->wake);
	rc = webhook_format_choose(&w->format, opts->format, opts->url, err);
	if (!rc && opts->secret_file)
		rc = token_chosen_file(&(struct token_chosen){ w->secret, sizeof(w->secret), "--webhook-secret-file" },
				       opts->secret_file, err);
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
	text_hex(ret + n, mac, sizeof(mac));
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
		return err_set(err, ERR_LIMIT, "alert %" PRId64 ": the post does not fit into 64 KiB", f->id);
	}
	sign_webhook_body(w, &body, signature);
	snprintf(delivery, sizeof(delivery), "X-Dptrack-Delivery: %" PRId64, f->id);
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
	int rc = alert_due(w->s, now_ms, a, &due, err);

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
