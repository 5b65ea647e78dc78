/* json.c: bytes as the body of every address that takes one: the first byte chooses the address from the route table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/api.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* The n-th route that takes a body, round and round. */
static const struct route *choose(unsigned n)
{
	size_t i, with_body = 0;

	for (i = 0; i < route_count; i++)
		with_body += route_table[i].body_max != 0;
	n %= (unsigned)with_body;
	for (i = 0; i < route_count; i++)
		if (route_table[i].body_max && !n--)
			return &route_table[i];
	abort();
}

static void fill(const struct route *r, char *target, size_t room)
{
	const char *at = r->pattern;
	size_t n = 0;

	while (*at && n + 40 < room) {
		if (*at == '{') {
			n += (size_t)snprintf(target + n, room - n, "%s", !strncmp(at, "{run}", 5) ? api_run_id : "name");
			at += strcspn(at, "}") + 1;
		} else if (*at == '*') {
			n += (size_t)snprintf(target + n, room - n, "folder/name.txt");
			at++;
		} else {
			target[n++] = *at++;
		}
	}
	target[n] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char target[512], *body;
	const struct route *r;
	int status;

	if (n < 1 || n - 1 > (1 << 16))
		return 0;
	r = choose(bytes[0]);
	fill(r, target, sizeof(target));
	body = strndup((const char *)bytes + 1, n - 1); /* ends at a NUL, as a local body does */
	if (!body)
		return 0;
	status = api_ask(r->method, target, body);
	free(body);
	FUZZ_HOLDS(status >= 200 && status < 600 && status != 500);
	return 0;
}
