/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_share.c: `dptrack share`: makes, lists and revokes links that show one thing of a server. */
#include "web/cli/cli.h"

#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"

struct share_options {
	struct cli_common common;
	const char *expires;
};

/* Makes a link and prints it. words: the kind, and what it shows. */
static int make_share(struct source *s, const struct share_options *o, const struct flag_list *words, struct err *err)
{
	const bool runs = !strcmp(words->items[0], "run") || !strcmp(words->items[0], "comparison");
	json_t *target = json_array(), *body, *reply = NULL;
	const char *url = o->common.source.url;
	char id[33];
	int rc = 0;

	for (size_t i = 1; i < words->count && !rc; i++) {
		rc = runs ? cli_find_run(s, words->items[i], id, err) : 0;
		json_array_append_new(target, json_string(runs ? id : words->items[i]));
	}
	body = json_pack("{s:s, s:o}", "kind", words->items[0], "target", target);
	if (!rc && o->expires) {
		int64_t ms = 0;

		rc = cli_expiry(o->expires, &ms, err);
		json_object_set_new(body, "expires_time", json_integer(ms));
	}
	if (rc) {
		json_decref(body);
		return rc;
	}
	rc = cli_send(s, &(struct cli_request){ "POST", "/api/v1/shares", body, o->common.json }, &reply, err);
	if (rc || !reply)
		return rc;
	printf("%s%s%s\n", url ? url : "", url && url[strlen(url) - 1] != '/' ? "/" : "", cli_text(reply, "path"));
	fflush(stdout);
	log_info("this link (%s) is shown only once%s", cli_text(reply, "id"),
		 url ? "" : "; put the address of the server in front of it");
	json_decref(reply);
	return 0;
}

/* Prints the links as a table, CSV or JSON. */
static int list_shares(struct source *s, const struct share_options *o, struct err *err)
{
	static const char *const texts[] = { "id", "kind", "name", "experiment", "person", "state" };
	static const char *const times[] = { "created_time", "expires_time", "used_time" };
	struct table *table;
	json_t *reply = NULL, *row;
	char text[32];
	size_t i, k;
	int rc = cli_send(s, &(struct cli_request){ "GET", "/api/v1/shares", NULL, o->common.json }, &reply, err);

	if (rc || !reply)
		return rc;
	table = table_new();
	table_columns(table, "id,kind,name,experiment,person,state,created,expires,used");
	json_array_foreach(json_object_get(reply, "shares"), i, row) {
		for (k = 0; k < 6; k++)
			table_cell(table, cli_text(row, texts[k]));
		for (k = 0; k < 3; k++)
			table_cell(table, table_time(text, json_integer_value(json_object_get(row, times[k]))));
	}
	table_print(table, stdout, cli_table_form(&o->common));
	table_free(table);
	json_decref(reply);
	return 0;
}

static int end_share(struct source *s, const struct share_options *o, const char *id, struct err *err)
{
	struct buf target;
	json_t *reply = NULL;
	int rc;

	buf_init(&target, 65536);
	buf_adds(&target, "/api/v1/shares/");
	source_escape(&target, id);
	rc = cli_send(s, &(struct cli_request){ "DELETE", target.data, NULL, o->common.json }, &reply, err);
	buf_done(&target);
	if (rc || !reply)
		return rc;
	log_info("link %s is revoked", id);
	json_decref(reply);
	return 0;
}

static int run_share_action(const struct share_options *o, const struct flag_list *words, struct err *err)
{
	const char *verb = words->count ? words->items[0] : "";
	bool lists = !strcmp(verb, "list"), revokes = !strcmp(verb, "revoke");
	struct source *s = NULL;
	int rc;

	if (words->count != (lists ? 1u : 2u) && (strcmp(verb, "comparison") != 0 || words->count < 3))
		return err_set(err, ERR_USAGE,
			       "share: expected run RUN, comparison RUN RUN…, view ID, report ID, list, or revoke ID");
	if (o->expires && (lists || revokes))
		return err_set(err, ERR_USAGE, "share %s: --expires is for a new link", verb);
	rc = source_open(&s, &o->common.source, err);
	if (!rc)
		rc = lists     ? list_shares(s, o, err)
		     : revokes ? end_share(s, o, words->items[1], err)
			       : make_share(s, o, words, err);
	source_close(s);
	return rc;
}

static int run_share_command(int argc, char **argv, struct err *err)
{
	struct share_options o = { 0 };
	const struct flag table[] = {
		{ "expires", FLAG_TEXT, "WHEN", "for a new link: 12h, 30d, 8w or a date, at most a year (30d)",
		  &o.expires, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_share, .table = table, .help = &o.common.help, .words_max = 101 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = run_share_action(&o, &line.words, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_share = { .name = "share",
				       .group = "Serve",
				       .words =
					       "run RUN | comparison RUN RUN… | view ID | report ID | list | revoke ID",
				       .summary = "make, list and revoke links that show one thing without a token",
				       .examples = "  dptrack share run base --expires 7d --url http://127.0.0.1:6007\n"
						   "  dptrack share list\n"
						   "  dptrack share revoke 0123456789abcdef\n",
				       .run = run_share_command };
