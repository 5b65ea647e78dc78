/* SPDX-License-Identifier: Apache-2.0 */
/* api_login.c: the sign-in of a person by a provider, /login/{provider}, and of a program by a person, /device. Both
 * end in rows of the store: a session, or a token with the person's rights. */
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"
#include "web/api/native/native_inside.h"
#include "web/oidc/oidc.h"
#include "web/store/auth/person.h"

#define FLOW_S "600" /* a sign-in may take ten minutes */
#define DEVICE_TOKEN_MS (INT64_C(90) * 24 * 3600 * 1000)
#define DEVICE_NAME_MAX 64

/* ---- a person: two steps, between which the browser is at the provider. The cookie holds a secret from which state,
 * nonce and PKCE's verifier follow, so any process can do the second step. It must come with a link from the provider,
 * hence Lax. */

static const char *flow_cookie_name(const struct call *c)
{
	return arena_printf(c->arena, "%s_flow", session_cookie_name(c));
}

static const char *flow_cookie(struct call *c, const char *value, const char *more)
{
	return arena_printf(c->arena, "%s=%s; Path=/; HttpOnly; SameSite=Lax%s%s", flow_cookie_name(c), value, more,
			    c->client.secure ? "; Secure" : "");
}

/* Replies with the form and a reason. */
static enum call_next refuse_sign_in(struct call *c, int status, const char *why)
{
	const char *end = strstr(c->route->pattern, "/callback") ? "/callback" : "";

	session_form(c, arena_printf(c->arena, "/login/provider%s", end), why);
	c->status = status;
	if (status == 503)
		c->reply.retry_after_s = 5;
	return CALL_DONE;
}

static enum call_next refuse_step(struct call *c, const struct err *err)
{
	return refuse_sign_in(c, err->code == ERR_PEER || err->code == ERR_BUSY ? 503 : 403, err->text);
}

static void wake_sign_in(void *arg)
{
	call_wake(arg);
}

/* Finds the provider of the address; NULL after replying. */
static struct oidc_step *new_step(struct call *c)
{
	struct oidc_step *step = arena_alloc(c->arena, sizeof(*step));

	*step = (struct oidc_step){ .arena = c->arena, .done = wake_sign_in, .arg = c };
	c->own = step;
	if (oidc_find(c->api->oidc, c->address.vars[0], &step->provider))
		return step;
	refuse_sign_in(c, 404, arena_printf(c->arena, "there is no sign-in by '%.40s' here", c->address.vars[0]));
	return NULL;
}

static enum call_next send_to_provider(struct call *c)
{
	const struct oidc_step *step = c->own;

	if (step->err.code)
		return refuse_step(c, &step->err);
	c->status = 303;
	c->reply.cache = "no-store";
	c->reply.location = step->location;
	c->reply.cookie = flow_cookie(c, step->secret, "; Max-Age=" FLOW_S);
	return CALL_DONE;
}

enum call_next on_login_begin(struct call *c)
{
	char *secret = arena_alloc(c->arena, OIDC_SECRET_BYTES);
	struct oidc_step *step;

	if (!call_args_done(c))
		return CALL_DONE;
	step = new_step(c);
	if (!step)
		return CALL_DONE;
	if (text_random_hex(secret, 32))
		return call_fail(c, CALL_internal, NULL, "cannot get random bytes");
	step->secret = secret;
	c->resume = send_to_provider;
	oidc_step(c->api->oidc, step);
	return CALL_WAIT;
}

/* What the second step needs until the session is stored. */
struct sign_in {
	struct oidc_step *step;
	struct person_sign_in person;
	char cookie[TOKEN_TEXT_MAX];
};

static enum call_next refuse_person(struct call *c, const struct err *err)
{
	return refuse_sign_in(c, err->code == ERR_EXISTS || err->code == ERR_GONE ? 403 : 503, err->text);
}

static enum call_next begin_session(struct call *c, const struct ingest_result *res)
{
	const struct sign_in *s = c->own;

	if (!res->existed)
		token_changed(c->api->store);
	if (s->person.scope == TOKEN_NONE)
		return refuse_sign_in(c, 403, s->step->refusal);
	c->reply.cookie = session_cookie(c, s->cookie, "");
	return session_return(c);
}

/* Stores who signed in, with what the groups grant now. */
static enum call_next store_sign_in(struct call *c)
{
	struct oidc_step *step = c->own;
	struct sign_in *s = arena_alloc(c->arena, sizeof(*s));
	const struct ingest_op op = { .kind = &person_change_sign_in, .more = &s->person };
	struct err err = ERR_INIT;

	if (step->err.code)
		return refuse_step(c, &step->err);
	*s = (struct sign_in){ .step = step,
			       .person = { .name = step->name,
					   .issuer = step->issuer,
					   .subject = step->subject,
					   .scope = step->scope,
					   .grants = step->grants } };
	if (person_session(&s->person, s->cookie, &err))
		return call_fail_err(c, NULL, &err);
	c->own = s;
	return api_submit(c, &(struct api_change){ .op = &op, .fail = refuse_person, .then = begin_session });
}

/* The provider's answer does not say which sign-in it is for: the browser's cookie does, once. */
enum call_next on_login_finish(struct call *c)
{
	const char *state = call_arg(c, "state"), *code = call_arg(c, "code"), *error = call_arg(c, "error");
	const char *cookie, *why = call_arg(c, "error_description");
	struct oidc_step *step = new_step(c);
	size_t n = 0;

	if (!step)
		return CALL_DONE;
	cookie = session_cookie_value(c->host->header(c, "Cookie"), flow_cookie_name(c), &n);
	step->secret = cookie ? arena_printf(c->arena, "%.*s", (int)n, cookie) : NULL;
	call_header(c, "Set-Cookie", flow_cookie(c, "", "; Max-Age=0"));
	if (!text_is_hex(step->secret, 64, 64) || !state || !oidc_state_matches(step->secret, state))
		return refuse_sign_in(c, 403,
				      "this sign-in began in another browser, or more than ten minutes ago: sign in "
				      "again");
	if (error || !code || !*code)
		return refuse_sign_in(c, 403,
				      arena_printf(c->arena, "%s refused the sign-in: %.60s%s%.200s",
						   oidc_label(c->api->oidc, step->provider), error ? error : "no code",
						   why ? ": " : "", why ? why : ""));
	step->code = code;
	step->from = call_arg(c, "iss");
	c->resume = store_sign_in;
	oidc_step(c->api->oidc, step);
	return CALL_WAIT;
}

enum call_next on_providers_get(struct call *c)
{
	struct js j = { .out = &c->out };

	if (!call_args_done(c))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, "providers", '[');
	for (size_t i = 0; i < oidc_count(c->api->oidc); i++) {
		char *text = oidc_settings(c->api->oidc, i);

		js_raw(&j, text ? text : "null");
		free(text);
	}
	js_close(&j, ']');
	return js_reply(c, &j);
}

/* ---- a program: `dptrack login` draws a token, and shows an address with its hash. A signed-in person who opens it
 * and confirms makes the hash a token with the person's rights. The text of the token never leaves the program. */

struct device {
	const char *hash, *name, *owner;
	char session[TOKEN_HASH_MAX]; /* hash of the person's session; "": none */
};

/* Shown by the program, too, for a comparison. */
static const char *short_code(struct call *c, const char *hash)
{
	return arena_printf(c->arena, "%.4s-%.4s", hash, hash + 4);
}

static enum call_next reply_device_text(struct call *c, int status, const char *text)
{
	session_page(c, status, "device", status == 200 ? "Signed in" : "Sign in a program");
	buf_adds(&c->out, status == 200 ? "<p>" : "<p role=\"alert\">");
	session_add_text(&c->out, text);
	buf_adds(&c->out, "</p>\n</form></main>\n</html>\n");
	return CALL_DONE;
}

/* Checks what the program's address says, and who is signed in. Returns false after replying. */
static bool read_device(struct call *c, struct device *d)
{
	const char *cookie;
	struct err err = ERR_INIT;
	size_t n = 0;

	if (!text_is_hex(d->hash, 64, 64) || !d->name || !*d->name || strlen(d->name) > DEVICE_NAME_MAX ||
	    strpbrk(d->name, "\r\n\t")) {
		reply_device_text(c, 400,
				  "This address is not complete: copy the whole address that dptrack login printed.");
		return false;
	}
	if (!token_needed(c->api->store)) {
		reply_device_text(c, 400, "This server needs no token: programs can use it without one.");
		return false;
	}
	cookie = session_cookie_value(c->host->header(c, "Cookie"), session_cookie_name(c), &n);
	if (cookie)
		token_hash(cookie, n, d->session);
	if (cookie && person_of_session(c->api->store, d->session, c->arena, &d->owner, &err)) {
		call_fail_err(c, NULL, &err);
		return false;
	}
	if (d->owner)
		return true;
	reply_device_text(c, 403,
			  "This session is of a token that the server has from DPTRACK_TOKEN or a file, or there is "
			  "none: sign in by a provider, or by a token of dptrack token add.");
	return false;
}

enum call_next on_device_get(struct call *c)
{
	struct device d = { .hash = call_arg(c, "token"), .name = call_arg(c, "name") };

	if (!call_args_done(c) || !read_device(c, &d))
		return CALL_DONE;
	session_page(c, 200, "device", "Sign in a program");
	buf_adds(&c->out, "<p>Let the program on <b>");
	session_add_text(&c->out, d.name);
	buf_adds(&c->out, "</b> use this server as <b>");
	session_add_text(&c->out, d.owner);
	buf_addf(&c->out,
		 "</b>?</p>\n<p>Its terminal shows the code <b id=\"code\">%s</b>. If it does not, or if you started "
		 "no program, close this page.</p>\n",
		 short_code(c, d.hash));
	session_add_hidden(&c->out, "token", d.hash);
	session_add_hidden(&c->out, "name", d.name);
	buf_adds(&c->out, "<button>Allow</button>\n</form></main>\n</html>\n");
	return CALL_DONE;
}

static enum call_next refuse_device(struct call *c, const struct err *err)
{
	return reply_device_text(c, err->code == ERR_EXISTS ? 409 : err->code == ERR_USAGE ? 400 : 503, err->text);
}

static enum call_next reply_device(struct call *c, const struct ingest_result *res)
{
	const struct device *d = c->own;

	(void)res;
	return reply_device_text(c, 200,
				 arena_printf(c->arena,
					      "The program on %s may use this server as %s for 90 days. "
					      "This page can be closed.",
					      d->name, d->owner));
}

enum call_next on_device_post(struct call *c)
{
	struct device *d = arena_alloc(c->arena, sizeof(*d));
	struct login_confirm confirm;
	const struct ingest_op op = { .kind = &login_change_confirm, .more = &confirm };

	d->hash = request_form_value(c, "token");
	d->name = request_form_value(c, "name");
	if (!call_args_done(c) || !read_device(c, d))
		return CALL_DONE;
	confirm = (struct login_confirm){ .session = d->session,
					  .device = d->name,
					  .hash = d->hash,
					  .expires_ms = clock_wall_ms() + DEVICE_TOKEN_MS };
	c->own = d;
	return api_submit(c, &(struct api_change){ .op = &op, .fail = refuse_device, .then = reply_device });
}
