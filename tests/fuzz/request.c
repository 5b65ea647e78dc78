/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: the input as a request that has passed the access check: method and target in the first line, then the
 * body. Handlers answer on a store of this process; the response is complete JSON where its type says so, and never a
 * 500. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/api.h"
#include "tests/fuzz/fuzz.h"
#include "tracker/base/buf.h"
#include "web/server/gate.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* The pattern of the route that will answer; NULL if there is none. */
static const char *pattern_of(enum call_method method, const char *target)
{
	struct call c = { .arena = arena_new() };
	struct router_match m;
	const char *pattern = NULL;

	if (c.arena && router_find(&m, &c, method, target) && m.route)
		pattern = m.route->pattern;
	arena_free(c.arena);
	return pattern;
}

static void check_json(int status, const char *pattern, const struct buf *reply)
{
	json_t *v;

	if (buf_failed(reply) || !reply->len || reply->data[0] != '{' || (pattern && strstr(pattern, ".jsonl")))
		return;
	v = json_loadb(reply->data, reply->len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	FUZZ_HOLDS(v);
	if (status >= 400)
		FUZZ_HOLDS(json_object_get(v, "error_code") || json_object_get(json_object_get(v, "error"), "code"));
	json_decref(v);
}

static bool removes(enum call_method method, const char *pattern)
{
	return method == METHOD_DELETE || strstr(pattern, "/delete") || strstr(pattern, "/gc");
}

static void ask(enum call_method method, const char *target, const char *body)
{
	const char *pattern = pattern_of(method, target);
	struct buf reply;
	int status;

	if (pattern && strstr(pattern, "/backup"))
		return; /* its body names any folder of the machine */
	buf_init(&reply, 1 << 20);
	status = api_ask(method, target, body, &reply);
	FUZZ_HOLDS(status >= 200 && status < 600 && status != 500);
	check_json(status, pattern, &reply);
	buf_done(&reply);
	if (pattern && status < 300 && removes(method, pattern))
		api_renew();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = n <= 1 << 16 ? strndup((const char *)bytes, n) : NULL; /* ends at a NUL, like a local body */
	char *body = text, *line = strsep(&body, "\n"), *method = strsep(&line, " ");
	int m = METHOD_GET;

	while (method && m <= METHOD_DELETE && strcmp(call_method_name((enum call_method)m), method))
		m++;
	if (line && line[0] == '/' && m <= METHOD_DELETE)
		ask((enum call_method)m, line, body);
	free(text);
	return 0;
}
