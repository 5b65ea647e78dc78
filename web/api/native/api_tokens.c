/* api_tokens.c: /tokens: access tokens of the server. Only the reply that creates a token contains its text. */
#include "web/api/api.h"

#include "tracker/base/clock.h"
#include "web/api/handlers.h"
#include "web/api/native/run_json.h"
#include "web/store/auth/token.h"

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
	js_key_str(j, "scope", token_scope_name(row->scope));
	js_key_str(j, "state", token_state_name(row));
	run_json_time(j, "created_time", row->created_ms);
	run_json_time(j, "expires_time", row->expires_ms);
	run_json_time(j, "revoked_time", row->revoked_ms);
	if (text)
		js_key_str(j, "token", text);
	js_close(j, '}');
}

static enum call_next reply_token_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct token_row *rows;
	size_t n, i;

	if (token_list(c->api->store, c->arena, &rows, &n, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key(&j, "tokens");
	js_open(&j, '[');
	for (i = 0; i < n; i++)
		write_token_row(&j, &rows[i], NULL);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_tokens_get(struct call *c)
{
	return call_args_done(c) ? reply_token_list(c) : CALL_DONE;
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
	c->cache = "no-store";
	write_token_row(&j, &m->row, m->text);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static enum call_next submit_new_token(struct call *c, struct token_draft *m)
{
	struct err err = ERR_INIT;
	const struct token_new made = { .name = m->row.name, .hash = m->hash, .scope = m->row.scope,
					.expires_ms = m->row.expires_ms };
	const struct ingest_op op = { .kind = &token_change_new, .more = &made };

	if (token_draw(m->text, m->hash, &err))
		return call_fail_err(c, NULL, &err);
	c->own = m;
	return api_submit(c, &(struct api_change){ .op = &op, .field = "name", .then = reply_new_token });
}

enum call_next on_tokens_post(struct call *c)
{
	struct token_draft *m = arena_alloc(c->arena, sizeof(*m));
	const char *name = NULL, *scope = NULL;
	int64_t expires = INT64_MIN;
	json_t *body = json_body(c);
	enum call_next next = CALL_DONE;
	const struct json_field fields[] = {
		{ "name", JSON_KIND_STRING, true, &name, NULL },
		{ "scope", JSON_KIND_STRING, true, &scope, NULL },
		{ "expires_time", JSON_KIND_INT, false, &expires, NULL },
		{ 0 },
	};

	if (!body)
		return CALL_DONE;
	if (!call_args_done(c) || !json_read(c, body, "", fields)) {
		json_decref(body);
		return CALL_DONE;
	}
	if (!m || !(name = arena_strdup(c->arena, name)))
		next = call_fail(c, CALL_busy, NULL, "out of memory");
	else if (!token_scope_read(scope, &m->row.scope))
		next = call_fail(c, CALL_bad_value, "scope", "scope: expected read, write or admin");
	else if (expires != INT64_MIN && expires <= clock_wall_ms())
		next = call_fail(c, CALL_bad_value, "expires_time", "expires_time: is in the past");
	json_decref(body);
	if (c->status != 200)
		return next;
	m->row.name = name;
	m->row.created_ms = clock_wall_ms();
	m->row.expires_ms = expires;
	m->row.revoked_ms = INT64_MIN;
	return submit_new_token(c, m);
}

static enum call_next reply_revoked_tokens(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return reply_token_list(c);
}

static enum call_next submit_revocation(struct call *c, const char *name)
{
	if (!call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){
				     .op = &(struct ingest_op){ .kind = &token_change_revoke, .name = name },
				     .field = "name", .then = reply_revoked_tokens });
}

enum call_next on_token_delete(struct call *c)
{
	return submit_revocation(c, c->vars[0]);
}

enum call_next on_tokens_delete(struct call *c)
{
	return submit_revocation(c, NULL);
}
