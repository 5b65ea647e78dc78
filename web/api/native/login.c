/* login.c: the form that a browser gets instead of the page while it has no token, and what it sends. The token
 * becomes a session in a cookie that scripts cannot read and other sites cannot use. Knows no sockets. */
#include "web/api/api.h"

#include <string.h>

#include "web/store/auth/token.h"

/* What stands behind # in an address is not sent, but a browser carries it over a redirect: links into the page survive. */
#define LOGIN_SCRIPT "<script>document.forms[0].action = \"login\" + location.hash</script>\n"
#define LOGIN_CSP                                                                                                          \
	"default-src 'none'; style-src 'unsafe-inline'; "                                                                  \
	"script-src 'sha256-7LuvNIZpUQcO+AYL4kwiJgDNvcjVKddn+TyCsla/JpU='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

static const char head[] =
	"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>dptrack: sign in</title>\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<meta name=\"referrer\" content=\"same-origin\">\n" /* else the form is sent with Origin: null */
	"<style>\n"
	":root { color-scheme: light dark }\n"
	"body { font: 16px system-ui, sans-serif; display: grid; place-content: center; min-height: 90vh }\n"
	"form { display: grid; gap: .8em; width: min(26em, 90vw) }\n"
	"input, button { font: inherit; padding: .5em }\n</style>\n"
	"<form method=\"post\" action=\"login\">\n<h1>dptrack</h1>\n";

static const char tail[] =
	"<label for=\"token\">This server asks for a token</label>\n"
	"<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\n"
	"<button>Sign in</button>\n"
	"<p><small>Whoever runs the server makes one with <code>dptrack token add NAME --scope read</code>.</small></p>\n"
	"</form>\n" LOGIN_SCRIPT "</html>\n";

static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"'", *text))
			buf_addf(out, "&#%d;", *text);
		else
			buf_addc(out, *text);
}

enum call_next api_login_form(struct call *c, const char *query, const char *problem)
{
	buf_reset(&c->out);
	c->status = 401;
	c->type = "text/html; charset=utf-8";
	c->csp = LOGIN_CSP;
	c->cache = "no-store";
	buf_adds(&c->out, head);
	if (query && *query) {
		buf_adds(&c->out, "<input type=\"hidden\" name=\"query\" value=\"");
		add_escaped(&c->out, query);
		buf_adds(&c->out, "\">\n");
	}
	if (problem) {
		buf_adds(&c->out, "<p role=\"alert\">");
		add_escaped(&c->out, problem);
		buf_adds(&c->out, "</p>\n");
	}
	buf_adds(&c->out, tail);
	return CALL_DONE;
}

static int hex_value(char ch)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = ch ? strchr(digits, ch | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The value of a field of a form that came urlencoded; "" when it is not there. */
static const char *form_value(struct call *c, const char *name)
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
		if (*at == '%' && end - at > 2 && hex_value(at[1]) >= 0 && hex_value(at[2]) >= 0) {
			out[n++] = (char)(hex_value(at[1]) * 16 + hex_value(at[2]));
			at += 2;
		} else {
			out[n++] = *at == '+' ? ' ' : *at;
		}
	}
	return out;
}

/* A query goes back into an address as it is: only what may stand in one. */
static const char *safe_query(const char *query)
{
	const char *s;

	for (s = query; *s; s++)
		if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || strchr("\"<>\\#", *s))
			return "";
	return query;
}

/* No script reads it, no other site's request carries it. more: further attributes. */
static const char *cookie(struct call *c, const char *value, const char *more)
{
	return arena_printf(c->arena, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", api_cookie_name(c), value, more,
			    c->secure ? "; Secure" : "");
}

const char *api_cookie_name(const struct call *c)
{
	return arena_printf(c->arena, "dptrack_%.12s", store_id(c->api->store));
}

enum call_next login_post(struct call *c)
{
	const char *token = form_value(c, "token"), *query = safe_query(form_value(c, "query"));
	struct token_try try = { .from = c->from, .text = token, .len = strlen(token) };
	char session[TOKEN_TEXT_MAX];
	struct err err = ERR_INIT;

	if (!call_args_done(c))
		return CALL_DONE;
	if (token_needed(c->api->store)) {
		if (token_session(c->api->store, &try, session, &err)) {
			api_login_form(c, query, err.text);
			c->status = try.wait_s ? 429 : c->status;
			c->retry_after_s = try.wait_s;
			return CALL_DONE;
		}
		c->cookie = cookie(c, session, "");
	}
	c->status = 303;
	c->cache = "no-store";
	c->location = arena_printf(c->arena, "./%s%s", *query ? "?" : "", query);
	return CALL_DONE;
}

const char *api_cookie_value(const char *cookies, const char *name, size_t *ret_len)
{
	const char *at = cookies;
	size_t len = strlen(name), n;

	for (; at && *at; at += n) {
		at += strspn(at, "; ");
		n = strcspn(at, ";");
		if (n > len && !strncmp(at, name, len) && at[len] == '=') {
			*ret_len = n - len - 1;
			return at + len + 1;
		}
	}
	return NULL;
}

/* The session that the request's cookie names; NULL without. */
static const char *session_of(struct call *c, size_t *ret_len)
{
	return api_cookie_value(c->host->header(c, "Cookie"), api_cookie_name(c), ret_len);
}

enum call_next session_get(struct call *c)
{
	struct js j = { .out = &c->out };
	const char *id;
	size_t n = 0;

	if (!call_args_done(c))
		return CALL_DONE;
	id = session_of(c, &n);
	c->cache = "no-store";
	js_open(&j, '{');
	js_key(&j, "signed_in");
	js_bool(&j, id && token_session_check(c->api->store, id, n) != TOKEN_NONE);
	if (c->has != TOKEN_NONE)
		js_key_str(&j, "scope", token_scope_name(c->has));
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next session_delete(struct call *c)
{
	const char *id;
	size_t n = 0;

	if (!call_args_done(c))
		return CALL_DONE;
	id = session_of(c, &n);
	if (id)
		token_session_end(c->api->store, id, n);
	c->cookie = cookie(c, "", "; Max-Age=0");
	buf_adds(&c->out, "{}\n");
	return CALL_DONE;
}
