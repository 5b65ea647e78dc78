/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_format.c: names and texts come from clients, so they must not mention people, link or format in a chat:
 * Slack and Discord get them escaped, Teams in an element that has no markup. The shapes:
 * https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks,
 * https://discord.com/developers/docs/resources/webhook#execute-webhook,
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using */
#include "web/webhook/webhook_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/utf8.h"
#include "web/api/api.h"
#include "web/store/alert/alert.h"

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

	snprintf(id, sizeof id, "%" PRId64, f->id);
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

bool webhook_format_is_chat(const struct webhook_format *w)
{
	return w->escape != NULL;
}

void webhook_format_write(const struct webhook_format *w, struct buf *out, const struct alert_fired *f)
{
	struct js j = { .out = out };
	char text[ALERT_TEXT_BYTES];
	struct buf escaped;

	snprintf(text, sizeof text, "%.300s / %.300s: %.500s", f->experiment, f->run_name, f->text);
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

#define FORMATS (sizeof formats / sizeof *formats)

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

int webhook_format_choose(const struct webhook_format **ret, const char *name, const char *url, struct err *err)
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
