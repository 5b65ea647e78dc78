/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c: `dptrack token add|list|revoke`: manages the access tokens of the server. */
#include "web/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/text.h"

struct token_options {
	struct cli_common common;
	const char *scope, *expires, *person, *experiments;
	bool all;
};

int cli_expiry(const char *text, int64_t *ret_ms, struct err *err)
{
	int64_t span_ms;
	double day_s;

	if (cli_span(text, &span_ms) && span_ms > 0) {
		*ret_ms = clock_wall_ms() + span_ms;
		return 0;
	}
	if (strlen(text) != strlen("2027-01-31") || !text_iso_time(text, &day_s))
		return err_set(err, ERR_USAGE,
			       "--expires %s: expected a time such as 12h, 30d or 8w, or a date such as 2027-01-31",
			       text);
	*ret_ms = ((int64_t)day_s + 86399) * 1000;
	if (*ret_ms <= clock_wall_ms())
		return err_set(err, ERR_USAGE, "--expires %s: is in the past", text);
	return 0;
}

static bool is_token_scope(const char *scope)
{
	return !strcmp(scope, "read") || !strcmp(scope, "write") || !strcmp(scope, "admin");
}

/* Creates a token and prints its text. */
static int create_access_token(struct source *s, const struct token_options *t, const char *name, struct err *err)
{
	json_t *body, *reply = NULL;
	int64_t expires_ms = 0;
	int rc;

	rc = t->expires ? cli_expiry(t->expires, &expires_ms, err) : 0;
	if (rc)
		return rc;
	body = json_pack("{s:s, s:s}", "name", name, "scope", t->scope);
	if (!body)
		return err_set(err, ERR_USAGE, "token add: the name must be UTF-8");
	if (t->expires)
		json_object_set_new(body, "expires_time", json_integer(expires_ms));
	if (t->person)
		json_object_set_new(body, "person", json_string(t->person));
	if (t->experiments)
		json_object_set_new(body, "experiments", json_string(t->experiments));
	rc = cli_send(s, &(struct cli_request){ "POST", "/api/v1/tokens", body, t->common.json }, &reply, err);
	if (rc || !reply)
		return rc;
	printf("%s\n", cli_text(reply, "token"));
	fflush(stdout);
	log_info("this is token %s (%s%s%s); it is shown only once: store it where programs find it as DPTRACK_TOKEN",
		 name, t->scope, t->experiments ? ": " : "", t->experiments ? t->experiments : "");
	json_decref(reply);
	return 0;
}

/* Prints the tokens as a table, CSV or JSON. */
static int list_tokens(struct source *s, const struct token_options *t, struct err *err)
{
	static const char *const texts[] = { "name", "person", "scope", "state" };
	static const char *const times[] = { "created_time", "expires_time" };
	struct table *table;
	json_t *reply = NULL, *row;
	char text[32];
	size_t i, k;
	int rc = cli_send(s, &(struct cli_request){ "GET", "/api/v1/tokens", NULL, t->common.json }, &reply, err);

	if (rc || !reply)
		return rc;
	table = table_new();
	table_columns(table, "name,person,scope,state,created,expires,experiments");
	json_array_foreach(json_object_get(reply, "tokens"), i, row) {
		const char *experiments = cli_text(row, "experiments");

		for (k = 0; k < 4; k++)
			table_cell(table, cli_text(row, texts[k]));
		for (k = 0; k < 2; k++)
			table_cell(table, table_time(text, json_integer_value(json_object_get(row, times[k]))));
		table_cell(table, *experiments ? experiments : "all");
	}
	table_print(table, stdout, cli_table_form(&t->common));
	table_free(table);
	json_decref(reply);
	return 0;
}

/* Revokes one token, or removes all of them (name NULL). */
static int revoke_tokens(struct source *s, const struct token_options *t, const char *name, struct err *err)
{
	struct buf target;
	json_t *reply = NULL;
	int rc;

	buf_init(&target, 65536);
	buf_adds(&target, "/api/v1/tokens");
	if (name) {
		buf_addc(&target, '/');
		source_escape(&target, name);
	}
	rc = cli_send(s, &(struct cli_request){ "DELETE", target.data, NULL, t->common.json }, &reply, err);
	buf_done(&target);
	if (rc || !reply)
		return rc;
	if (name)
		log_info("token %s is revoked", name);
	else
		log_info("all tokens are removed; requests to a loopback address need none now");
	json_decref(reply);
	return 0;
}

/* Checks the words and runs add, list or revoke. */
static int run_token_action(const struct token_options *t, const struct flag_list *words, struct err *err)
{
	const char *verb = words->count ? words->items[0] : "", *name = words->count > 1 ? words->items[1] : NULL;
	bool adds = !strcmp(verb, "add"), lists = !strcmp(verb, "list"), revokes = !strcmp(verb, "revoke");
	struct source *s = NULL;
	int rc = 0;

	if (!adds && !lists && !revokes)
		return err_set(err, ERR_USAGE, "token: expected add NAME --scope SCOPE, list, or revoke NAME");
	if ((adds && !name) || (revokes && !name && !t->all))
		return err_set(err, ERR_USAGE, "token %s: the name of the token is missing", verb);
	if (!adds && (t->experiments || t->person))
		return err_set(err, ERR_USAGE, "token %s: --experiments and --person are for add", verb);
	if (t->experiments && !*t->experiments)
		return err_set(err, ERR_USAGE, "--experiments: is empty: omit it to grant all");
	if ((lists && name) || (name && t->all))
		return err_set(err, ERR_USAGE, "token %s: unexpected word %s", verb, name);
	if (adds && !t->scope)
		return err_set(err, ERR_USAGE, "token add %s: --scope is missing: expected read, write or admin", name);
	if (adds && !is_token_scope(t->scope))
		return err_set(err, ERR_USAGE, "--scope %s: expected read, write (and read) or admin (everything)",
			       t->scope);
	rc = source_open(&s, &t->common.source, err);
	if (!rc)
		rc = adds    ? create_access_token(s, t, name, err)
		     : lists ? list_tokens(s, t, err)
			     : revoke_tokens(s, t, name, err);
	source_close(s);
	return rc;
}

/* Reads the flags of `dptrack token` and runs it. */
static int run_token_command(int argc, char **argv, struct err *err)
{
	struct token_options t = { 0 };
	const struct flag table[] = {
		{ "scope", FLAG_TEXT, "SCOPE", "for add: read, write (and read) or admin (everything)", &t.scope, 0,
		  0 },
		{ "expires", FLAG_TEXT, "WHEN",
		  "for add: 12h, 30d, 8w or a date; without it the token is valid until it is revoked", &t.expires, 0,
		  0 },
		{ "experiments", FLAG_TEXT, "GRANTS",
		  "for add: only these, such as 'open*=read,own*=write+create': a star ends a prefix; none, read, "
		  "write or "
		  "admin, never more than the scope; +create: names below the prefix may be created",
		  &t.experiments, 0, 0 },
		{ "person", FLAG_TEXT, "NAME", "for add: who has it (the token's name)", &t.person, 0, 0 },
		{ "all", FLAG_SWITCH, "", "for revoke: remove every token, so that a loopback address needs none",
		  &t.all, 0, 0 },
		CLI_COMMON_FLAGS(&t.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_token, .table = table, .help = &t.common.help, .words_max = 2 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = run_token_action(&t, &line.words, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_token = { .name = "token",
				       .group = "Serve",
				       .words = "add NAME | list | revoke NAME",
				       .summary = "create, list and revoke access tokens of the server",
				       .examples = "  dptrack token add laptop --scope write\n"
						   "  dptrack token add bea --scope write --experiments "
						   "'open*=read,bea*=write+create'\n"
						   "  dptrack token list\n"
						   "  dptrack token revoke laptop\n",
				       .run = run_token_command };
