/* lmdb.c: bytes as an LMDB database: every picture lies within it, whatever offsets and page numbers say, and a walk
 * ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/container/lmdb.h"

struct input {
	const uint8_t *bytes;
	size_t n;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static int read_some(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct input *in = user;

	(void)err;
	FUZZ_HOLDS(at <= in->n && n <= in->n - at);
	memcpy(to, in->bytes + at, n);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };
	struct byte_source source = { .bytes = n, .read = read_some, .user = &in, .name = "input" };
	struct webdataset_fields fields = { "jpg;png;npy", "cls" };
	struct err err = ERR_INIT;
	struct samples s;

	samples_init(&s);
	if (!lmdb_scan(&s, &source, 0, &fields, &err)) {
		FUZZ_HOLDS(!samples_end(&s, &err));
		for (int64_t i = 0; i < s.n; i++)
			FUZZ_HOLDS(s.at[i].offset <= n && s.at[i].bytes <= n - s.at[i].offset && s.at[i].label >= 0);
	} else {
		FUZZ_HOLDS(err.code == ERR_USAGE);
	}
	samples_done(&s);
	return 0;
}
