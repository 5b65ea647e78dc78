/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c: the input as lines of JSON that describe runs: runs are read, or a line is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "web/cli/import/importer.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char head[] = "{\"dptrack_runs\": 1}\n";
	const struct importer_target nowhere = { 0 };
	char *whole = malloc(n + sizeof(head));
	FILE *f;
	struct importer b;
	int rc;

	FUZZ_HOLDS(whole && !importer_init(&b, &nowhere, NULL));
	memcpy(whole, head, sizeof(head) - 1);
	memcpy(whole + sizeof(head) - 1, bytes, n);
	f = fmemopen(whole, n + sizeof(head) - 1, "r");
	FUZZ_HOLDS(f);
	rc = json_lines_take(&b, f, NULL);
	FUZZ_HOLDS(!rc || rc == ERR_CORRUPT || rc == ERR_NOMEM);
	fclose(f);
	importer_done(&b);
	free(whole);
	return 0;
}
