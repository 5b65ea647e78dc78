/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: the form that asks a browser for a token, and the session cookie. Knows no sockets and no route. */
#include "web/api/session.h"

#include <string.h>

#include "web/api/api.h"

/* A browser does not send the part of a URL after #, but keeps it over a redirect, so links into the page survive. */
#define LOGIN_SCRIPT "<script>document.forms[0].action = \"login\" + location.hash</script>\n"
#define LOGIN_CSP                                                                                                      \
	"default-src 'none'; style-src 'unsafe-inline'; "                                                              \
	"script-src 'sha256-7LuvNIZpUQcO+AYL4kwiJgDNvcjVKddn+TyCsla/JpU='; form-action 'self'; base-uri 'none'; "      \
	"frame-ancestors 'none'"

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
	"<label for=\"token\">This server requires a token</label>\n"
	"<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\n"
	"<button>Sign in</button>\n"
	"<p><small>The administrator creates one with <code>dptrack token add NAME --scope "
	"read</code>.</small></p>\n"
	"</form>\n" LOGIN_SCRIPT "</html>\n";

static void add_html_escaped(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"'", *text))
			buf_addf(out, "&#%d;", *text);
		else
			buf_addc(out, *text);
}

enum call_next session_form(struct call *c, const char *query, const char *problem)
{
	buf_reset(&c->out);
	c->status = 401;
	c->type = "text/html; charset=utf-8";
	c->reply.csp = LOGIN_CSP;
	c->reply.cache = "no-store";
	buf_adds(&c->out, head);
	if (query && *query) {
		buf_adds(&c->out, "<input type=\"hidden\" name=\"query\" value=\"");
		add_html_escaped(&c->out, query);
		buf_adds(&c->out, "\">\n");
	}
	if (problem) {
		buf_adds(&c->out, "<p role=\"alert\">");
		add_html_escaped(&c->out, problem);
		buf_adds(&c->out, "</p>\n");
	}
	buf_adds(&c->out, tail);
	return CALL_DONE;
}

const char *session_cookie_name(const struct call *c)
{
	return arena_printf(c->arena, "dptrack_%.12s", store_id(c->api->store));
}

const char *session_cookie_value(const char *cookies, const char *name, size_t *ret_len)
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
