/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c: the input as a document of MLflow's file store: pairs are read, or a line is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tracker/base/arena.h"
#include "web/cli/import/mlruns_inside.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* The text of a pair is in the arena, and a top-level key is found again. */
static void check(const struct yaml_pair *all)
{
	size_t n = 0;

	for (const struct yaml_pair *p = all; p; p = p->next) {
		FUZZ_HOLDS(p->parent && p->key);
		n += strlen(p->parent) + strlen(p->key) + (p->value ? strlen(p->value) : 0);
		if (!*p->parent)
			FUZZ_HOLDS(yaml_get(all, p->key));
	}
	FUZZ_HOLDS(n < 1u << 30);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = malloc(n + 1);
	struct arena *a = arena_new();
	struct yaml_pair *pairs = NULL;
	struct err err = ERR_INIT;
	int rc;

	FUZZ_HOLDS(text && a);
	memcpy(text, bytes, n);
	text[n] = 0;
	rc = yaml_read(text, a, &pairs, &err);
	FUZZ_HOLDS(!rc || rc == ERR_CORRUPT || rc == ERR_NOMEM);
	FUZZ_HOLDS(rc != ERR_CORRUPT || strstr(err.text, "line "));
	if (!rc)
		check(pairs);
	arena_free(a);
	free(text);
	return 0;
}
