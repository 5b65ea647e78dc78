/* grammar.c: bytes as a filter and, behind a line break, an order: parsed, planned and evaluated over a store. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/api.h"
#include "tests/fuzz/fuzz.h"
#include "tracker/base/buf.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void add_escaped(struct buf *out, const uint8_t *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf_addf(out, isalnum(bytes[i]) ? "%c" : "%%%02X", bytes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const uint8_t *line = n ? memchr(bytes, '\n', n) : NULL;
	size_t filter = line ? (size_t)(line - bytes) : n;
	struct buf target;
	int status;

	if (n > 2000)
		return 0;
	buf_init(&target, 1 << 16);
	buf_adds(&target, "/api/v1/runs?limit=5&filter=");
	add_escaped(&target, bytes, filter);
	if (line) {
		buf_adds(&target, "&order_by=");
		add_escaped(&target, line + 1, n - filter - 1);
	}
	status = api_ask(METHOD_GET, target.data, NULL);
	buf_done(&target);
	FUZZ_HOLDS(status == 200 || status == 400 || status == 404);
	return 0;
}
