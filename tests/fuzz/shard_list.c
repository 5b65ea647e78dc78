/* SPDX-License-Identifier: Apache-2.0 */
/* shard_list.c: the input as an index file of shards: accepted, or refused in one line as a usage error; names of
 * shards are relative to its folder, and its statistics of pixels can be computed with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/container/shard_list.h"

static char path[64];

static void clean_up(void)
{
	unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(path, sizeof(path), "/tmp/dptrain-fuzz-%ld.json", (long)getpid());
	return atexit(clean_up);
}

static void write_index(const uint8_t *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	FUZZ_HOLDS(f && fwrite(bytes, 1, n, f) == n);
	FUZZ_HOLDS(!fclose(f));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct shard_list l = { .n = 0 };
	struct err err = ERR_INIT;
	int rc;

	write_index(bytes, n);
	rc = shard_list_add(&l, path, SHARDS_TRAIN, &err);
	FUZZ_HOLDS(!rc || (rc == ERR_USAGE && strstr(err.text, path) && !strchr(err.text, '\n')));
	FUZZ_HOLDS(rc || l.n > 0);
	for (int i = 0; i < l.n; i++) {
		const char *a = l.address[i];

		FUZZ_HOLDS(a[0] == '/' || strstr(a, "://"));
		FUZZ_HOLDS(l.sums[i].n <= n && (!l.sums[i].n || l.sums[i].at));
	}
	for (int i = 0; !rc && i < l.facts.channels; i++)
		FUZZ_HOLDS(l.facts.std[i] > 0 && isfinite(l.facts.std[i]) && isfinite(l.facts.mean[i]));
	FUZZ_HOLDS(l.facts.classes >= 0 && l.facts.channels >= 0 && l.facts.channels <= 4);
	shard_list_done(&l);
	return 0;
}
