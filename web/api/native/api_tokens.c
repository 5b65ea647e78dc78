/* SPDX-License-Identifier: Apache-2.0 */
/* api_tokens.c: who may ask: /tokens, the access tokens of the server, and the login of a browser. Only the reply that
 * creates a token contains its text. */
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"
#include "web/api/native/native_inside.h"

static const char *token_state_name(const struct token_row *row)
{
	if (row->revoked_ms != INT64_MIN)
		return "revoked";
	return row->expires_ms != INT64_MIN && row->expires_ms <= clock_wall_ms() ? "expired" : "valid";
}

static void write_token_row(struct js *j, const struct token_row *row, const char *text)
{
	js_open(j, '{');
	js_key_str(j, "name", row->name);
	js_key_str(j, "person", row->person);
	js_key_str(j, "scope", token_scope_name(row->scope));
	js_key_str(j, "experiments", *row->grants ? row->grants : NULL);
	js_key_str(j, "state", token_state_name(row));
	run_json_time(j, "created_time", row->created_ms);
	run_json_time(j, "expires_time", row->expires_ms);
	run_json_time(j, "revoked_time", row->revoked_ms);
	if (text)
		js_key_str(j, "token", text);
	js_close(j, '}');
}

/* person: only the tokens that this person can use; NULL: all. */
static enum call_next reply_token_list(struct call *c, const char *person)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct token_row *rows;
	size_t n, i;

	if (token_list(c->api->store, c->arena, &rows, &n, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key_open(&j, "tokens", '[');
	for (i = 0; i < n; i++)
		if (!person || (!strcmp(rows[i].person, person) && !strcmp(token_state_name(&rows[i]), "valid")))
			write_token_row(&j, &rows[i], NULL);
	js_close(&j, ']');
	return js_reply(c, &j);
}

enum call_next on_tokens_get(struct call *c)
{
	return call_args_done(c) ? reply_token_list(c, NULL) : CALL_DONE;
}

enum call_next on_session_tokens(struct call *c)
{
	return call_args_done(c) ? reply_token_list(c, c->client.person ? c->client.person : "") : CALL_DONE;
}

/* A new token, kept until it is durable. */
struct token_draft {
	struct token_row row;
	char text[TOKEN_TEXT_MAX];
	char hash[TOKEN_HASH_MAX];
};

static enum call_next reply_new_token(struct call *c, const struct ingest_result *res)
{
	const struct token_draft *m = c->own;
	struct js j = { .out = &c->out };

	(void)res;
	c->status = 201;
	c->reply.cache = "no-store";
	write_token_row(&j, &m->row, m->text);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static enum call_next fail_new_token(struct call *c, const struct err *err)
{
	return call_fail_err(c, *err->field ? NULL : "name", err);
}

static enum call_next submit_new_token(struct call *c, struct token_draft *m)
{
	struct err err = ERR_INIT;
	const struct token_new made = { .name = m->row.name,
					.hash = m->hash,
					.scope = m->row.scope,
					.expires_ms = m->row.expires_ms,
					.person = m->row.person,
					.grants = m->row.grants };
	const struct ingest_op op = { .kind = &token_change_new, .more = &made };

	if (token_draw(m->text, m->hash, &err))
		return call_fail_err(c, NULL, &err);
	c->own = m;
	return api_submit(c, &(struct api_change){ .op = &op, .fail = fail_new_token, .then = reply_new_token });
}

enum call_next on_tokens_post(struct call *c)
{
	struct token_draft *m = arena_alloc(c->arena, sizeof(*m));
	const char *name = NULL, *scope = NULL, *person = NULL, *grants = NULL;
	int64_t expires = INT64_MIN;
	const struct json_field fields[] = {
		{ "name", JSON_KIND_STRING, true, &name, NULL },
		{ "scope", JSON_KIND_STRING, true, &scope, NULL },
		{ "expires_time", JSON_KIND_INT, false, &expires, NULL },
		{ "person", JSON_KIND_STRING, false, &person, NULL },
		{ "experiments", JSON_KIND_STRING, false, &grants, NULL },
		{ 0 },
	};

	if (!json_args(c, fields) || !request_name(c, "name", name) || !request_name(c, "person", person))
		return CALL_DONE;
	if (!api_owner(c) && !token_needed(c->api->store))
		return call_fail(c, CALL_forbidden, NULL,
				 "the first token is the owner's, who runs on the server's machine: dptrack token add "
				 "NAME --scope admin");
	if (!token_scope_read(scope, &m->row.scope))
		return call_fail(c, CALL_bad_value, "scope", "scope: expected read, write or admin");
	if (expires != INT64_MIN && expires <= clock_wall_ms())
		return call_fail(c, CALL_bad_value, "expires_time", "expires_time: is in the past");
	if (grants && !*grants)
		return call_fail(c, CALL_bad_value, "experiments", "experiments: is empty: omit it to grant all");
	m->row.name = name;
	m->row.person = person ? person : name;
	m->row.grants = grants ? grants : "";
	m->row.created_ms = clock_wall_ms();
	m->row.expires_ms = expires;
	m->row.revoked_ms = INT64_MIN;
	return submit_new_token(c, m);
}

static enum call_next reply_revoked_tokens(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return reply_token_list(c, NULL);
}

static enum call_next submit_revocation(struct call *c, const char *name)
{
	const struct token_revoke revoke = { .name = name, .keep_admin = !api_owner(c) };

	if (!call_args_done(c))
		return CALL_DONE;
	return api_submit(
		c, &(struct api_change){ .op = &(struct ingest_op){ .kind = &token_change_revoke, .more = &revoke },
					 .field = "name",
					 .then = reply_revoked_tokens });
}

enum call_next on_token_delete(struct call *c)
{
	return submit_revocation(c, c->address.vars[0]);
}

enum call_next on_tokens_delete(struct call *c)
{
	return submit_revocation(c, NULL);
}

/* The login form and the session. A token becomes a session in a cookie that scripts cannot read and other
 * sites cannot use. */

/* The query is copied into the redirect: returns it, or "" if it contains a character that must be encoded. */
static const char *check_login_query(const char *query)
{
	const char *s;

	for (s = query; *s; s++)
		if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || strchr("\"<>\\#", *s))
			return "";
	return query;
}

static enum call_next redirect_after_login(struct call *c, const char *query)
{
	c->status = 303;
	c->reply.cache = "no-store";
	c->reply.location =
		arena_printf(c->arena, "./%s%s%s", strcmp(request_form_value(c, "page"), "device") ? "" : "device",
			     *query ? "?" : "", query);
	return CALL_DONE;
}

/* If the row could not be written, the session is valid in this process only. */
static enum call_next finish_login(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return redirect_after_login(c, c->own);
}

enum call_next on_login_post(struct call *c)
{
	const char *token = request_form_value(c, "token"), *query = check_login_query(request_form_value(c, "query"));
	struct token_try try = { .from = c->client.from, .text = token, .len = strlen(token) };
	char session[TOKEN_TEXT_MAX];
	struct err err = ERR_INIT;
	struct session_new row;
	const struct ingest_op op = { .kind = &session_change_new, .more = &row };

	if (!call_args_done(c))
		return CALL_DONE;
	if (!token_needed(c->api->store))
		return redirect_after_login(c, query);
	if (token_session(c->api->store, &try, session, &row, &err)) {
		session_form(c, arena_printf(c->arena, "/%s?%s", request_form_value(c, "page"), query), err.text);
		c->status = try.wait_s ? 429 : err.code == ERR_BUSY ? 503 : c->status;
		c->reply.retry_after_s = try.wait_s;
		return CALL_DONE;
	}
	c->reply.cookie = session_cookie(c, session, "");
	c->own = (void *)(uintptr_t)query;
	return api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = finish_login });
}

/* The session in the request's cookie; NULL when absent. */
static const char *find_request_session(struct call *c, size_t *ret_len)
{
	return session_cookie_value(c->host->header(c, "Cookie"), session_cookie_name(c), ret_len);
}

enum call_next on_session_get(struct call *c)
{
	const char *name = call_arg(c, "experiment");
	const struct grants g = request_grants(c);
	struct js j = { .out = &c->out };
	struct token_try session = { 0 };

	if (!call_args_done(c))
		return CALL_DONE;
	session.text = find_request_session(c, &session.len);
	c->reply.cache = "no-store";
	js_open(&j, '{');
	js_key_bool(&j, "signed_in", session.text && token_session_check(c->api->store, &session) > TOKEN_NONE);
	if (c->client.has != TOKEN_NONE)
		js_key_str(&j, "scope", token_scope_name(c->client.has));
	if (c->client.person && !c->client.share)
		js_key_str(&j, "person", c->client.person);
	if (c->client.share)
		share_write_session(c, &j);
	else if (c->client.grants)
		js_key_str(&j, "experiments", c->client.grants);
	js_key_str(&j, "all", request_level(c, &g, NULL));
	if (name)
		js_key_str(&j, "may", request_level(c, &g, name));
	return js_reply(c, &j);
}

static enum call_next finish_logout(struct call *c, const struct ingest_result *res)
{
	(void)res;
	buf_adds(&c->out, "{}\n");
	return CALL_DONE;
}

enum call_next on_session_delete(struct call *c)
{
	char hash[TOKEN_HASH_MAX] = "";
	const struct ingest_op op = { .kind = &session_change_end, .name = hash };
	const char *id;
	size_t n = 0;

	if (!call_args_done(c))
		return CALL_DONE;
	id = find_request_session(c, &n);
	c->reply.cookie = session_cookie(c, "", "; Max-Age=0");
	if (!id)
		return finish_logout(c, NULL);
	token_hash(id, n, hash);
	return api_submit(c, &(struct api_change){ .op = &op, .then = finish_logout });
}
