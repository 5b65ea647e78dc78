/* SPDX-License-Identifier: Apache-2.0 */
/* access.c: checks Host and Origin, credentials and scopes. Of a route it knows only the scope and
 * what its handler names (access.def). */
#include "tracker/base/text.h"
#include "web/server/access.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/hash.h"
#include "web/api/api.h"

#define BASIC_MAX 512

/* Length of the name in "name[:port]" or "[v6][:port]"; 0 when it is not of that form. */
static size_t host_name_length(const char *host)
{
	size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
	const char *rest;

	if (host[0] == '[' && host[n++] != ']')
		return 0;
	rest = host + n;
	if (*rest == ':' && strspn(rest + 1, "0123456789") != strlen(rest + 1))
		return 0;
	return *rest && *rest != ':' ? 0 : n;
}

static bool is_host_allowed(const struct access *a, const char *host)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
	size_t n = host_name_length(host), i;

	if (!n)
		return false;
	for (i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++)
		if (strlen(loopback[i]) == n && !strncasecmp(loopback[i], host, n))
			return true;
	if (strlen(a->host) == n && !strncasecmp(a->host, host, n))
		return true;
	/* --host ::1 is written [::1] in Host */
	if (host[0] == '[' && strlen(a->host) + 2 == n && !strncasecmp(a->host, host + 1, n - 2))
		return true;
	return a->any_host;
}

/* The last item of a list header, which may be spread over several fields. The proxy in front of the server wrote that
 * item; the client may have invented those before it. "": none */
static const char *last_header_item(const struct gate_request *req, const char *name)
{
	const char *at = "", *comma;
	size_t i;

	for (i = 0; i < req->header_count; i++)
		if (strlen(name) == req->headers[i].name_len &&
		    !strncasecmp(req->headers[i].name, name, req->headers[i].name_len))
			at = req->headers[i].value;
	comma = strrchr(at, ',');
	at = comma ? comma + 1 : at;
	return at + strspn(at, " \t");
}

static bool is_last_header_item(const struct gate_request *req, const char *name, const char *text)
{
	const char *at = last_header_item(req, name);

	return *at && !strcasecmp(at, text);
}

static uint64_t hash_client_address(const void *bytes, size_t n)
{
	uint64_t h = hash_fnv(HASH_FNV_BEGIN, bytes, n);

	return h ? h : 1;
}

/* An IPv6 client may use any address of its network, of 64 bits. */
static uint64_t hash_v6_address(const struct in6_addr *v6)
{
	return IN6_IS_ADDR_V4MAPPED(v6) ? hash_client_address(v6->s6_addr + 12, 4) : hash_client_address(v6, 8);
}

/* The address in 192.0.2.1, 192.0.2.1:80, 2001:db8::1 or [2001:db8::1]:80; other texts count as they are. */
static uint64_t hash_forwarded_address(const char *said)
{
	char text[INET6_ADDRSTRLEN];
	size_t bracket = said[0] == '[', n = strcspn(said + bracket, "] \t");
	const char *colon = memchr(said, ':', n);
	struct in6_addr v6;
	struct in_addr v4;

	if (!bracket && colon && !memchr(colon + 1, ':', n - (size_t)(colon + 1 - said)))
		n = (size_t)(colon - said);
	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : 0), said + bracket);
	if (inet_pton(AF_INET, text, &v4) == 1)
		return hash_client_address(&v4, 4);
	return inet_pton(AF_INET6, text, &v6) == 1 ? hash_v6_address(&v6) : hash_client_address(said, strlen(said));
}

uint64_t access_from(const struct access *a, const struct gate_request *req, const struct sockaddr *peer)
{
	const char *said = req && a->behind_proxy ? last_header_item(req, "X-Forwarded-For") : "";

	if (*said)
		return hash_forwarded_address(said);
	if (peer && peer->sa_family == AF_INET)
		return hash_client_address(&((const struct sockaddr_in *)peer)->sin_addr, 4);
	if (peer && peer->sa_family == AF_INET6)
		return hash_v6_address(&((const struct sockaddr_in6 *)peer)->sin6_addr);
	return 1;
}

bool access_forwarded_tls(const struct access *a, const struct gate_request *req)
{
	return a->behind_proxy && is_last_header_item(req, "X-Forwarded-Proto", "https");
}

/* Returns true for the name that the browser used: a proxy may have replaced Host by its own. */
static bool is_server_name(const struct access *a, const struct access_query *q, const char *name)
{
	if (q->pass->host && !strcasecmp(name, q->pass->host))
		return true;
	return a->behind_proxy && is_last_header_item(q->req, "X-Forwarded-Host", name);
}

static bool has_header_value(const struct gate_request *req, const char *name, const char *value)
{
	const struct gate_header *h = gate_find(req, name);

	return h && !strcasecmp(h->value, value);
}

/* A foreign page may link to this server; it may not load anything from it into itself, such as an image, nor send
 * anything (https://www.w3.org/TR/fetch-metadata/). */
static bool is_origin_allowed(const struct access *a, const struct access_query *q)
{
	const struct gate_header *origin = gate_find(q->req, "Origin");
	const struct gate_header *site = gate_find(q->req, "Sec-Fetch-Site");
	const char *name;

	if (origin) {
		if (!strncasecmp(origin->value, "http://", 7))
			name = origin->value + 7;
		else if (!strncasecmp(origin->value, "https://", 8))
			name = origin->value + 8;
		else
			return false;
		if (!is_server_name(a, q, name))
			return false;
	}
	if (!site || !strcasecmp(site->value, "same-origin") || !strcasecmp(site->value, "none"))
		return true;
	return q->pass->method == METHOD_GET && has_header_value(q->req, "Sec-Fetch-Mode", "navigate") &&
	       has_header_value(q->req, "Sec-Fetch-Dest", "document");
}

/* The token in an Authorization header: Bearer, or Basic with any user, which is decoded into basic. */
static bool find_header_token(const char *value, char basic[BASIC_MAX], struct token_try *t)
{
	const char *colon;
	size_t n;

	if (!strncasecmp(value, "Bearer ", 7)) {
		t->text = value + 7;
		t->len = strlen(t->text);
		return true;
	}
	if (strncasecmp(value, "Basic ", 6))
		return false;
	n = text_unbase64(basic, BASIC_MAX, value + 6);
	colon = memchr(basic, ':', n);
	if (!colon)
		return false;
	t->text = colon + 1;
	t->len = n - (size_t)(colon + 1 - basic);
	return true;
}

/* A browser sends the cookie with every request to this server, whichever page caused it. A change therefore needs a
 * header that shows that the server's own page sent it. */
static enum token_scope find_cookie_scope(const struct access *a, const struct access_query *q, struct token_try *t)
{
	const struct gate_header *cookies = gate_find(q->req, "Cookie");

	if (q->pass->method != METHOD_GET && !gate_find(q->req, "Origin") && !gate_find(q->req, "Sec-Fetch-Site"))
		return TOKEN_NONE;
	t->text = session_cookie_value(cookies ? cookies->value : NULL, q->cookie, &t->len);
	return t->text ? token_session_check(a->store, t) : TOKEN_NONE;
}

static const char *explain_scope(enum token_scope has, enum call_scope want)
{
	if (has == TOKEN_READ)
		return want == SCOPE_WRITE ? "this token may read; a token of scope write is needed here"
					   : "this token may read; a token of scope admin is needed here";
	return "this token may write; a token of scope admin is needed here";
}

static void refuse_credentials(struct access_answer *ret, enum call_scope want, int wait_s)
{
	ret->code = CALL_forbidden;
	ret->retry_s = wait_s;
	if (wait_s) {
		ret->code = CALL_too_many;
		ret->why = "too many wrong tokens from this address: wait a moment";
	} else if (ret->has == TOKEN_UNKNOWN) {
		*ret = (struct access_answer){ .code = CALL_busy, .retry_s = 1,
					       .why = "the store cannot be reached; it is tried again soon" };
	} else if (ret->has == TOKEN_NONE) {
		ret->code = CALL_unauthorized;
		ret->why = "a token is needed: Authorization: Bearer TOKEN (programs read DPTRACK_TOKEN, MLflow's "
			   "clients MLFLOW_TRACKING_TOKEN)";
	} else if ((int)ret->has >= (int)want) {
		ret->why = "this token is for some experiments; one for all experiments is needed here";
	} else {
		ret->why = explain_scope(ret->has, want);
	}
}

/* Returns true if the grants give the scope of the route in all experiments. */
static bool covers_all(const struct access_query *q, const char *text)
{
	struct grants g = { 0 };

	return !grants_parse(&g, q->arena, text, NULL) && (int)grants_least(&g) >= (int)q->scope;
}

bool access_check(const struct access *a, const struct access_query *q, struct access_answer *ret)
{
	const struct gate_header *auth = gate_find(q->req, "Authorization");
	struct token_try t = { .from = q->from, .arena = q->arena };
	char basic[BASIC_MAX];
	bool given = auth && find_header_token(auth->value, basic, &t);
	int needed = 0;

	*ret = (struct access_answer){ .code = CALL_forbidden };
	if (q->pass->host && !is_host_allowed(a, q->pass->host)) {
		ret->why = "this Host is not served here; a web page may be aiming at this machine's own server";
		return false;
	}
	if (!is_origin_allowed(a, q)) {
		ret->why = "requests of foreign web pages are refused";
		return false;
	}
	if (q->scope != SCOPE_OPEN)
		needed = token_needed(a->store);
	ret->lock_file = given && token_of_lock_file(a->store, &t);
	if (!needed)
		return true;
	if (needed < 0)
		ret->has = TOKEN_UNKNOWN;
	else if (auth)
		ret->has = given ? token_check(a->store, &t) : TOKEN_NONE;
	else
		ret->has = find_cookie_scope(a, q, &t);
	if (t.share && auth) /* the secret of a link: exchanged for a session, never a token */
		ret->has = TOKEN_NONE;
	if (ret->has > TOKEN_NONE) {
		ret->owner = t.owner;
		ret->person = t.person;
		ret->grants = t.grants && *t.grants ? t.grants : NULL;
		ret->share = t.share;
	}
	if (ret->share && q->shared == SHARED_NEVER) {
		ret->why = "this link shows one thing: a token is needed for others";
		return false;
	}
	if ((int)ret->has >= (int)q->scope && (!ret->grants || q->names != NAMES_ALL || covers_all(q, ret->grants)))
		return true;
	refuse_credentials(ret, q->scope, t.wait_s);
	return false;
}

bool access_browser(const struct gate_request *req)
{
	const struct gate_header *accept = gate_find(req, "Accept");

	return gate_find(req, "Sec-Fetch-Mode") || gate_find(req, "Cookie") ||
	       (accept && strstr(accept->value, "text/html"));
}
