/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: the form that asks a browser for a token, and the session cookie. Knows no sockets and no route. */
#include "web/api/api.h"

#include <ctype.h>
#include <string.h>

/* A browser does not send the part of a URL after #, but keeps it over a redirect, so links into the page survive. Over
 * the pages of a provider the tab remembers the address. */
#define FORM_SCRIPT                                                                                                    \
	"document.forms[0].action += location.hash; try { if (!/[/]login([/]|$)/.test(location.pathname)) "            \
	"sessionStorage.dptrack_return = location.href } catch {}"
#define RETURN_SCRIPT                                                                                                  \
	"try { location.replace(sessionStorage.dptrack_return || \"../../\") } catch { location.replace(\"../../\") }"
/* Exchanges the secret after # for a session, removes it from the address, and opens what the link shows. */
#define SHARE_SCRIPT                                                                                                   \
	"const secret = location.hash.slice(1), say = (t) => document.querySelector(\"h1\").textContent = t; "         \
	"history.replaceState(null, \"\", location.pathname); "                                                        \
	"fetch(\"api/v1/shares/exchange\", { method: \"POST\", headers: { \"Content-Type\": \"application/json\" }, "  \
	"body: JSON.stringify({ secret }) }).then(async (r) => { const j = await r.json(); "                           \
	"if (r.ok) location.replace(\"./\" + j.page); else say(j.error.message); })"                                   \
	".catch(() => say(\"the server does not answer: open the link again\"))"
/* hash: of the page's only script. */
#define LOGIN_CSP(hash)                                                                                                \
	"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" hash                                      \
	"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
#define FORM_CSP LOGIN_CSP("sbNEj+SxAlNdayVjqI9Tqjw4kfdhjyGkcSqdgfmCzyo=")
#define RETURN_CSP LOGIN_CSP("z3CPoX2ceBMXzBKkAW7bpsRMWExfm9o9HSurM/O8VK4=")
#define SHARE_CSP LOGIN_CSP("ObS585jom+SWXcPvIck0WaUI8lo5Szjm4v3a/xzFrlk=") "; connect-src 'self'"

static const char head[] =
	"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>dptrack: sign in</title>\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<meta name=\"referrer\" content=\"same-origin\">\n" /* else the form is sent with Origin: null */
	"<style>\n"
	":root { color-scheme: light dark; --back: light-dark(#f5f6f8, #0e1116); --panel: light-dark(#fff, #161a20);\n"
	"  --line: light-dark(#dde2e8, #2b323b); --text: light-dark(#171a1f, #e6e9ed); "
	"--dim: light-dark(#57606c, #a0a9b4);\n"
	"  --accent: light-dark(#1b5fbd, #7db5f5); --on: light-dark(#fff, #0b1a2c); "
	"--bad: light-dark(#b3261e, #ff8f86);\n"
	"  --bad-lit: light-dark(#fdecea, #3a1f1e) }\n"
	"body { font: 13px/1.45 -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif;\n"
	"  margin: 0; display: grid; place-content: center; min-height: 100vh; background: var(--back); "
	"color: var(--text) }\n"
	"form { display: grid; gap: 12px; width: min(360px, 92vw); box-sizing: border-box; padding: 24px; "
	"background: var(--panel);\n"
	"  border: 1px solid var(--line); border-radius: 10px; box-shadow: 0 8px 28px #1018281f }\n"
	"h1 { display: flex; align-items: center; gap: 8px; font-size: 20px; margin: 0 }\n"
	"svg path { fill: none; stroke: #2f7ec2; stroke-width: 2.4 } svg path + path { stroke: #e0702f }\n"
	"p { margin: 0 } label { font-weight: 600 } small { color: var(--dim); font-size: 12px }\n"
	"input, button, a { font: inherit; min-height: 34px; padding: 4px 10px; border: 1px solid var(--line); "
	"border-radius: 6px }\n"
	"a { display: grid; place-content: center; box-sizing: border-box; font-weight: 600; color: var(--accent); "
	"text-decoration: none }\n"
	"input { background: var(--back); color: inherit }\n"
	"button { background: var(--accent); border-color: var(--accent); color: var(--on); font-weight: 600; "
	"cursor: pointer }\n"
	":focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }\n"
	"[role=alert] { color: var(--bad); background: var(--bad-lit); border-radius: 6px; padding: 8px 10px }\n"
	"code { font: 12px ui-monospace, 'Liberation Mono', monospace; overflow-wrap: anywhere }\n</style>\n"
	"<main><form method=\"post\" action=\"";

static const char title[] = "\">\n<h1><svg width=\"24\" height=\"24\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">"
			    "<path d=\"M1 3c4 9 7 9 14 10\"/>"
			    "<path d=\"M1 13C6 5 9 4 15 3\"/></svg>";

static const char tail[] =
	"<label for=\"token\">Token</label>\n"
	"<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\n"
	"<button>Sign in</button>\n"
	"<p><small>This server requires a token. Its administrator creates one with "
	"<code>dptrack token add NAME --scope "
	"read</code>.</small></p>\n"
	"</form></main>\n<script>" FORM_SCRIPT "</script>\n</html>\n";

void session_add_text(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"'", *text))
			buf_addf(out, "&#%d;", *text);
		else
			buf_addc(out, *text);
}

void session_add_hidden(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
	session_add_text(out, value);
	buf_adds(out, "\">\n");
}

/* Writes a message of REST, which begins in lower case and has no full stop, as a sentence. */
static void add_sentence(struct buf *out, const char *text)
{
	size_t n = strlen(text);

	if (!n)
		return;
	buf_addc(out, (char)toupper((unsigned char)*text));
	session_add_text(out, text + 1);
	if (text[n - 1] != '.')
		buf_addc(out, '.');
}

void session_page(struct call *c, int status, const char *action, const char *heading)
{
	buf_reset(&c->out);
	c->status = status;
	c->type = "text/html; charset=utf-8";
	c->reply.csp = FORM_CSP;
	c->reply.cache = "no-store";
	buf_adds(&c->out, head);
	session_add_text(&c->out, action);
	buf_addf(&c->out, "%s%s</h1>\n", title, heading);
}

/* The way from the form's address to the page's: "../" for each folder. */
static const char *make_root_prefix(struct call *c, const char *target)
{
	const char *root = "";

	for (size_t n = strcspn(target, "?"), i = 1; i < n; i++)
		if (target[i] == '/')
			root = arena_printf(c->arena, "../%s", root);
	return root;
}

enum call_next session_form(struct call *c, const char *target, const char *problem)
{
	const char *root = make_root_prefix(c, target), *query = strchr(target, '?');
	const struct oidc *oidc = c->api->oidc;
	struct buf *out = &c->out;

	session_page(c, 401, arena_printf(c->arena, "%slogin", root), "Sign in to dptrack");
	if (query && query[1])
		session_add_hidden(out, "query", query + 1);
	if (!strncmp(target, "/device?", 8))
		session_add_hidden(out, "page", "device");
	if (problem) {
		buf_adds(out, "<p role=\"alert\">");
		add_sentence(out, problem);
		buf_adds(out, "</p>\n");
	}
	for (size_t i = 0; i < oidc_count(oidc); i++) {
		buf_addf(out, "<a href=\"%slogin/%s\">Sign in with ", root, oidc_name(oidc, i));
		session_add_text(out, oidc_label(oidc, i));
		buf_adds(out, "</a>\n");
	}
	buf_adds(out, tail);
	return CALL_DONE;
}

enum call_next session_return(struct call *c)
{
	session_page(c, 200, "", "Signed in");
	c->reply.csp = RETURN_CSP;
	buf_adds(&c->out,
		 "<a href=\"../../\">Continue</a>\n</form></main>\n<script>" RETURN_SCRIPT "</script>\n</html>\n");
	return CALL_DONE;
}

enum call_next session_share(struct call *c)
{
	session_page(c, 200, "", "<span role=\"status\">Opening the link …</span>");
	c->reply.csp = SHARE_CSP;
	buf_adds(&c->out, "</form></main>\n<script>" SHARE_SCRIPT "</script>\n</html>\n");
	return CALL_DONE;
}

const char *session_cookie(struct call *c, const char *value, const char *more)
{
	return arena_printf(c->arena, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", session_cookie_name(c), value,
			    more, c->client.secure ? "; Secure" : "");
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
