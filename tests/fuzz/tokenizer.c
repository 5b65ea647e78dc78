/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c: the input as a tokenizer.json: it is refused, or its tokens of a text exist and cover the text in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/tokenizer/tokenizer.h"

static char folder[] = "/tmp/fuzz-tokenizer-XXXXXX", path[64];

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_HOLDS(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/tokenizer.json", folder);
	atexit(remove_folder);
	return 0;
}

static void encode(const struct tokenizer *t, const char *text, size_t n)
{
	struct token_encoder *e = token_encoder_new(t);
	struct buf tokens, ends;
	struct err err = ERR_INIT;
	uint32_t last = 0;

	buf_init(&tokens, SIZE_MAX);
	buf_init(&ends, SIZE_MAX);
	if (!token_encode(e, &(struct token_request){ text, n, false, &tokens, &ends }, &err)) {
		FUZZ_HOLDS(tokens.len == ends.len);
		for (size_t i = 0; i < tokens.len / 4; i++) {
			int32_t token;
			uint32_t end;
			size_t bytes;

			memcpy(&token, tokens.data + 4 * i, 4);
			memcpy(&end, ends.data + 4 * i, 4);
			FUZZ_HOLDS(tokenizer_bytes(t, token, !i, &bytes));
			FUZZ_HOLDS(end >= last && end <= n);
			last = end;
		}
	}
	buf_done(&tokens);
	buf_done(&ends);
	token_encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char text[] =
		"The cafe\xcc\x81 of 1999:\n\n  it's\t<|a|> \xe2\x96\x81x <s>\xff \xe6\x97\xa5\xe6\x9c\xac 12";
	struct err err = ERR_INIT;
	struct tokenizer *t;
	FILE *f = fopen(path, "w");

	FUZZ_HOLDS(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
	if (tokenizer_open(&t, folder, &err)) {
		FUZZ_HOLDS(err.code && err.text[0] && !strchr(err.text, '\n'));
		return 0;
	}
	encode(t, text, sizeof(text) - 1);
	encode(t, (const char *)bytes, n < 4096 ? n : 4096);
	tokenizer_close(t);
	return 0;
}
