/* login.c: the login form and the session. A token becomes a session in a cookie that scripts cannot read and other
 * sites cannot use. */
#include "web/api/api.h"

#include <string.h>

#include "web/api/handlers.h"
#include "web/api/session.h"
#include "web/store/auth/token.h"

static int form_hex_value(char ch)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = ch ? strchr(digits, ch | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The value of a field of a urlencoded form; "" when absent. */
static const char *find_form_value(struct call *c, const char *name)
{
	const char *at = c->body, *end;
	size_t len = strlen(name), n = 0;
	char *out;

	while (*at && (strncmp(at, name, len) || at[len] != '=')) {
		at += strcspn(at, "&");
		at += *at == '&';
	}
	if (!*at)
		return "";
	at += len + 1;
	end = at + strcspn(at, "&");
	out = arena_alloc(c->arena, (size_t)(end - at) + 1);
	if (!out)
		return "";
	for (; at < end; at++) {
		if (*at == '%' && end - at > 2 && form_hex_value(at[1]) >= 0 && form_hex_value(at[2]) >= 0) {
			out[n++] = (char)(form_hex_value(at[1]) * 16 + form_hex_value(at[2]));
			at += 2;
		} else {
			out[n++] = *at == '+' ? ' ' : *at;
		}
	}
	return out;
}

/* The query is copied into the redirect: returns it, or "" if it contains a character that must be encoded. */
static const char *check_login_query(const char *query)
{
	const char *s;

	for (s = query; *s; s++)
		if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || strchr("\"<>\\#", *s))
			return "";
	return query;
}

/* A cookie that scripts cannot read and other sites cannot send. more: further attributes. */
static const char *format_session_cookie(struct call *c, const char *value, const char *more)
{
	return arena_printf(c->arena, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", session_cookie_name(c), value,
			    more, c->secure ? "; Secure" : "");
}

static enum call_next redirect_after_login(struct call *c, const char *query)
{
	c->status = 303;
	c->cache = "no-store";
	c->location = arena_printf(c->arena, "./%s%s", *query ? "?" : "", query);
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
	const char *token = find_form_value(c, "token"), *query = check_login_query(find_form_value(c, "query"));
	struct token_try try = { .from = c->from, .text = token, .len = strlen(token) };
	char session[TOKEN_TEXT_MAX];
	struct err err = ERR_INIT;
	struct session_new row;
	const struct ingest_op op = { .kind = &session_change_new, .more = &row };

	if (!call_args_done(c))
		return CALL_DONE;
	if (!token_needed(c->api->store))
		return redirect_after_login(c, query);
	if (token_session(c->api->store, &try, session, &row, &err)) {
		session_form(c, query, err.text);
		c->status = try.wait_s ? 429 : err.code == ERR_BUSY ? 503 : c->status;
		c->retry_after_s = try.wait_s;
		return CALL_DONE;
	}
	c->cookie = format_session_cookie(c, session, "");
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
	struct js j = { .out = &c->out };
	const char *id;
	size_t n = 0;

	if (!call_args_done(c))
		return CALL_DONE;
	id = find_request_session(c, &n);
	c->cache = "no-store";
	js_open(&j, '{');
	js_key(&j, "signed_in");
	js_bool(&j, id && token_session_check(c->api->store, id, n) > TOKEN_NONE);
	if (c->has != TOKEN_NONE)
		js_key_str(&j, "scope", token_scope_name(c->has));
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
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
	c->cookie = format_session_cookie(c, "", "; Max-Age=0");
	if (!id)
		return finish_logout(c, NULL);
	token_hash(id, n, hash);
	return api_submit(c, &(struct api_change){ .op = &op, .then = finish_logout });
}
