/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: encodes texts with a tokenizer, for tests in Python and the benchmark:
 *   encode TOKENIZER <texts       each text: u32 bytes, then the bytes, little-endian; answers u32 tokens, then each
 *                                 token and the end of its text as i32 and u32, then u32 bytes and the decoded text
 *   encode TOKENIZER FILE ROUNDS  prints the bytes that a second of processor time encodes, the fastest round */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "trainer/data/tokenizer/tokenizer.h"

static int end(const struct err *e)
{
	fprintf(stderr, "%s\n", e->text);
	return 1;
}

static void write_number(uint32_t n)
{
	fwrite(&n, sizeof(n), 1, stdout);
}

static void answer(const struct tokenizer *t, const struct buf *tokens, const struct buf *ends)
{
	const int32_t *token = (const int32_t *)(const void *)tokens->data;
	const uint32_t *stop = (const uint32_t *)(const void *)ends->data;
	struct buf text;

	buf_init(&text, SIZE_MAX);
	write_number((uint32_t)(tokens->len / sizeof(*token)));
	for (size_t i = 0; i < tokens->len / sizeof(*token); i++) {
		size_t n = 0;
		const char *bytes = tokenizer_bytes(t, token[i], !i, &n);

		buf_add(&text, bytes ? bytes : "", n);
		write_number((uint32_t)token[i]);
		write_number(stop[i]);
	}
	write_number((uint32_t)text.len);
	fwrite(text.data, 1, text.len, stdout);
	buf_done(&text);
}

static int encode_texts(const struct tokenizer *t, struct token_encoder *e, struct err *err)
{
	struct buf text, tokens, ends;
	uint32_t n;
	int rc = 0;

	buf_init(&text, SIZE_MAX);
	buf_init(&tokens, SIZE_MAX);
	buf_init(&ends, SIZE_MAX);
	while (!rc && fread(&n, sizeof(n), 1, stdin) == 1) {
		buf_reset(&text);
		buf_reset(&tokens);
		buf_reset(&ends);
		text.len = fread(buf_reserve(&text, (size_t)n + 1), 1, n, stdin);
		rc = token_encode(e, &(struct token_request){ text.data, text.len, false, &tokens, &ends }, err);
		answer(t, &tokens, &ends);
	}
	buf_done(&text);
	buf_done(&tokens);
	buf_done(&ends);
	return rc;
}

static int time_encoding(struct token_encoder *e, const char *path, int rounds, struct err *err)
{
	struct buf text, tokens;
	double best = 0;
	int rc;

	buf_init(&text, SIZE_MAX);
	buf_init(&tokens, SIZE_MAX);
	rc = file_load(&text, path, err);
	for (int i = 0; !rc && i < rounds; i++) {
		double began = clock_thread_s(), rate;

		buf_reset(&tokens);
		rc = token_encode(e, &(struct token_request){ text.data, text.len, false, &tokens, NULL }, err);
		rate = (double)text.len / (clock_thread_s() - began);
		best = rate > best ? rate : best;
	}
	printf("%.0f\n", best);
	buf_done(&text);
	buf_done(&tokens);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct tokenizer *t;
	struct token_encoder *e;
	int rc;

	if (argc < 2 || tokenizer_open(&t, argv[1], &err))
		return end(&err);
	e = token_encoder_new(t);
	rc = argc > 3 ? time_encoding(e, argv[2], (int)strtol(argv[3], NULL, 10), &err) : encode_texts(t, e, &err);
	token_encoder_free(e);
	tokenizer_close(t);
	return rc ? end(&err) : 0;
}
