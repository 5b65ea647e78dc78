/* lines.c: bytes as lines of JSON that tell runs: whatever they say, runs are read, or a line is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "web/cli/bring/lines.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char head[] = "{\"dptrack_runs\": 1}\n";
	const struct bring_target nowhere = { 0 };
	char *whole = malloc(n + sizeof(head));
	FILE *f;
	struct bring b;
	int rc;

	FUZZ_HOLDS(whole && !bring_init(&b, &nowhere, NULL));
	memcpy(whole, head, sizeof(head) - 1);
	memcpy(whole + sizeof(head) - 1, bytes, n);
	f = fmemopen(whole, n + sizeof(head) - 1, "r");
	FUZZ_HOLDS(f);
	rc = lines_take(&b, f, NULL);
	FUZZ_HOLDS(!rc || rc == ERR_CORRUPT || rc == ERR_NOMEM);
	fclose(f);
	bring_done(&b);
	free(whole);
	return 0;
}
