/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c: the input as the head of a request: first line and header fields go through the gate, the address through
 * the router, Host, Origin and credentials through the access check. Whatever is accepted has one interpretation: no
 * dot segments, no control characters, no broken UTF-8, our own host name, the one valid token. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/api.h"
#include "tests/fuzz/fuzz.h"
#include "web/server/access.h"
#include "web/server/gate.h"
#include "web/server/gzip.h"
#include "web/store/auth/token.h"

#define TOKEN "sesame"

enum { HEADERS = 20 };

static struct access door = { .host = "box.local" };
static regex_t own_host, own_origin, good_token;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = ERR_INIT;
	const int how = REG_EXTENDED | REG_ICASE | REG_NOSUB;

	(void)argc;
	(void)argv;
	door.store = api_store();
	if (token_fix(door.store, TOKEN, TOKEN_WRITE, true, &err) ||
	    regcomp(&own_host, "^(localhost|127\\.0\\.0\\.1|\\[::1\\]|box\\.local)(:[0-9]*)?$", how) ||
	    regcomp(&own_origin, "^https?://(localhost|127\\.0\\.0\\.1|\\[::1\\]|box\\.local)(:[0-9]*)?$", how) ||
	    regcomp(&good_token, "^(Bearer " TOKEN "|Basic .+)$", how))
		abort();
	return 0;
}

static void check_segment(const char *s)
{
	FUZZ_HOLDS(*s && strcmp(s, ".") && strcmp(s, ".."));
	for (; *s; s++)
		FUZZ_HOLDS((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void route(const char *target)
{
	struct call c = { .arena = arena_new() };
	struct router_match m;
	int method, i;
	char *rest, *part;

	for (method = METHOD_GET; c.arena && method <= METHOD_DELETE; method++) {
		memset(c.address.vars, 0, sizeof(c.address.vars));
		c.address.arg_count = 0;
		c.address.rest = NULL;
		if (!router_find(&m, &c, (enum call_method)method, target) || !m.route)
			continue;
		for (i = 0; i < CALL_VARS_MAX && c.address.vars[i]; i++)
			check_segment(c.address.vars[i]);
		rest = c.address.rest && *c.address.rest ? arena_strdup(c.arena, c.address.rest) : NULL;
		while ((part = strsep(&rest, "/")))
			FUZZ_HOLDS(strcmp(part, "..") && strcmp(part, "."));
	}
	arena_free(c.arena);
}

static bool is(const regex_t *what, const struct gate_header *h)
{
	return !regexec(what, h->value, 0, NULL, 0);
}

/* A request that is admitted names our host, comes from our own page or from none, and has the token or asks for a
 * public address. */
static void access(const struct gate_request *req, const struct gate_pass *pass)
{
	const struct gate_header *host = gate_find(req, "Host"), *origin = gate_find(req, "Origin"),
		*auth = gate_find(req, "Authorization");
	struct access_answer answer;
	int scope;

	for (scope = SCOPE_OPEN; scope <= SCOPE_ADMIN; scope++) {
		struct access_query q = { .req = req, .pass = pass, .cookie = "dptrack",
					  .scope = (enum call_scope)scope };

		if (!access_check(&door, &q, &answer)) {
			FUZZ_HOLDS(answer.why && call_error_status(answer.code) >= 400);
			continue;
		}
		FUZZ_HOLDS(scope != SCOPE_ADMIN && (!host || is(&own_host, host)) &&
			   (!origin || is(&own_origin, origin)));
		FUZZ_HOLDS(scope == SCOPE_OPEN || (auth && is(&good_token, auth)));
	}
	access_browser(req);
	access_from(&door, req, NULL);
	access_forwarded_tls(&door, req);
}

static void gate(char *line, struct gate_header *headers, size_t n)
{
	struct gate_request req = { .headers = headers, .header_count = n };
	char *method = strsep(&line, " "), *target = strsep(&line, " "), *version = line;
	struct gate_pass pass;
	enum call_error code;
	const char *why;

	if (!target || !version)
		return;
	req.method = method;
	req.target = target;
	req.version = version;
	if (!gate_check(&pass, &req, &code, &why)) {
		FUZZ_HOLDS(why && *why && call_error_status(code) >= 400);
		return;
	}
	FUZZ_HOLDS(!(pass.chunked && pass.content_length >= 0));
	access(&req, &pass);
	route(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = strndup((const char *)bytes, n), *rest = text, *line = strsep(&rest, "\n"), *field;
	struct gate_header headers[HEADERS];
	size_t count = 0;

	while (text && count < HEADERS && (field = strsep(&rest, "\n"))) {
		char *name = strsep(&field, ":"), *value = field ? field + strspn(field, " ") : name + strlen(name);

		headers[count++] = (struct gate_header){ name, value, strlen(name), strlen(value) };
		coding_accepted(value, "gzip");
	}
	if (line) {
		route(line);
		gate(line, headers, count);
	}
	free(text);
	return 0;
}
