/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.c: the input as a filter and, after a line break, an order, in our syntax and in MLflow's: parsed, planned
 * and evaluated over a store. */
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

/* Writes each byte that is not a letter or digit as an escape. */
static void add_escaped(struct buf *out, const char *escape, const uint8_t *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf_addf(out, isalnum(bytes[i]) ? "%c" : escape, bytes[i]);
}

static void ask(enum call_method method, const char *target, const struct buf *body)
{
	int status = api_ask(method, target, body ? body->data : NULL, NULL);

	FUZZ_HOLDS(status == 200 || status == 400 || status == 404);
}

static void ours(const uint8_t *filter, size_t n, const uint8_t *order, size_t order_n)
{
	struct buf target;

	buf_init(&target, 1 << 16);
	buf_adds(&target, "/api/v1/runs?limit=5&filter=");
	add_escaped(&target, "%%%02X", filter, n);
	if (order) {
		buf_adds(&target, "&order_by=");
		add_escaped(&target, "%%%02X", order, order_n);
	}
	ask(METHOD_GET, target.data, NULL);
	buf_done(&target);
}

static void theirs(const char *target, const uint8_t *filter, size_t n, const uint8_t *order, size_t order_n)
{
	struct buf body;

	buf_init(&body, 1 << 16);
	buf_adds(&body, "{\"experiment_ids\":[\"1\"],\"max_results\":5,\"filter\":\"");
	add_escaped(&body, "\\u%04x", filter, n);
	buf_adds(&body, "\"");
	if (order) {
		buf_adds(&body, ",\"order_by\":[\"");
		add_escaped(&body, "\\u%04x", order, order_n);
		buf_adds(&body, "\"]");
	}
	buf_adds(&body, "}");
	ask(METHOD_POST, target, &body);
	buf_done(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const uint8_t *line = n ? memchr(bytes, '\n', n) : NULL, *order = line ? line + 1 : NULL;
	size_t filter = line ? (size_t)(line - bytes) : n, order_n = line ? n - filter - 1 : 0;

	if (n > 2000)
		return 0;
	ours(bytes, filter, order, order_n);
	theirs("/api/2.0/mlflow/runs/search", bytes, filter, order, order_n);
	theirs(n % 2 ? "/api/2.0/mlflow/experiments/search" : "/api/2.0/mlflow/logged-models/search", bytes, filter,
	       NULL, 0);
	return 0;
}
