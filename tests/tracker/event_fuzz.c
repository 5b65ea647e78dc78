/* SPDX-License-Identifier: Apache-2.0 */
/* event_fuzz.c: damaged journals must neither crash the reader nor keep it busy. Without arguments: a fixed series of
 * mutations of a journal with every kind of record; with files as arguments: each of them. Built with
 * -fsanitize=fuzzer and -DLIBFUZZER it is libFuzzer's entry point. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/event/event.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/record.h"

#define ROUNDS 150000
#define ITEMS_PER_BYTE 2 /* no payload contains more items than this */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Reads everything that an item points to. */
static unsigned look_at(const struct event_item *item)
{
	const struct event_text texts[] = { item->key, item->text };
	bool has_text = item->kind == EVENT_PARAM || item->kind == EVENT_TAG || item->kind == EVENT_ENV;
	unsigned sum = 0;

	for (size_t t = item->kind == EVENT_SCALAR || has_text ? 0 : 2; t < (has_text ? 2u : 1u); t++) {
		if (t == 1 && item->kind == EVENT_PARAM && item->type != EVENT_TYPE_TEXT)
			break;
		sum += key_check(texts[t].at, texts[t].len) != NULL;
	}
	return sum;
}

static void read_event(const uint8_t *payload, size_t n)
{
	struct event ev;
	struct event_item item;
	size_t items = 0;
	unsigned sum = 0;

	if (event_open(&ev, payload, n))
		return;
	while (event_next(&ev, &item) > 0) {
		sum += look_at(&item);
		if (++items > n * ITEMS_PER_BYTE + 1)
			abort();
	}
	__asm__ volatile("" : : "r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct record rec;
	size_t at = 0;
	enum record_state state;

	read_event(bytes, n);
	while ((state = record_next(bytes, n, &at, &rec)) == RECORD_OK || state == RECORD_BAD_PAYLOAD) {
		read_event(rec.payload, rec.payload_bytes);
		if (state == RECORD_BAD_PAYLOAD)
			at += (size_t)rec.frame_bytes;
	}
	return 0;
}

#ifndef LIBFUZZER
static uint64_t dice_state = 88172645463325252u;

static size_t dice(size_t n)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return n ? (size_t)(dice_state % n) : 0;
}

static void add_journal(struct buf *b)
{
	const struct event_text id = { "0123456789abcdef0123456789abcdef", 32 }, word = { "word", 4 };
	const struct encode_param params[] = { { .key = word, .text = word },
					       { .key = { "f", 1 }, .type = EVENT_TYPE_F64, .value = 0.1 },
					       { .key = { "i", 1 }, .type = EVENT_TYPE_I64, .integer = -1 },
					       { .key = { "b", 1 }, .type = EVENT_TYPE_BOOL, .integer = 1 } };

	encode_header(b, 1, &(struct event_header){ .run_id = id, .writer_id = id, .experiment = word, .run_name = word,
						    .host = word, .version = word });
	for (size_t i = 0; i < 4; i++)
		encode_param(b, 2, &params[i]);
	encode_hparams_start(b, 3, params, 4);
	encode_scalar(b, &(struct encode_scalar){ word, 7, 4, 0.1, 3, 0 });
	encode_tag(b, 5, word, word);
	encode_note(b, 6, word);
	encode_status(b, 7, EVENT_FAILED, word);
	encode_heartbeat(b, 8, 1);
	encode_hparams_end(b, 9, EVENT_FAILED);
}

/* Makes one to six changes: a byte, a bit, a piece copied elsewhere, a truncation. */
static size_t mutate(uint8_t *bytes, size_t n)
{
	for (size_t changes = 1 + dice(6); changes && n; changes--) {
		size_t a = dice(n), b = dice(n), most = n - (a > b ? a : b);

		switch (dice(4)) {
		case 0:
			bytes[a] = (uint8_t)dice(256);
			break;
		case 1:
			bytes[a] ^= (uint8_t)(1u << dice(8));
			break;
		case 2:
			memmove(bytes + a, bytes + b, dice(most + 1));
			break;
		default:
			n -= dice(n);
		}
	}
	return n;
}

static void fuzz_payload(const uint8_t *payload, size_t n)
{
	uint8_t *bytes = malloc(n), *exact;

	if (!bytes)
		exit(1);
	memcpy(bytes, payload, n);
	n = mutate(bytes, n);
	exact = malloc(n ? n : 1); /* a separate block, so that reads beyond it are detected */
	if (!exact)
		exit(1);
	memcpy(exact, bytes, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	free(bytes);
}

static int fuzz_files(int n, char **paths)
{
	static uint8_t bytes[1 << 20];

	for (int i = 0; i < n; i++) {
		FILE *f = fopen(paths[i], "rb");

		if (!f) {
			perror(paths[i]);
			return 1;
		}
		LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), f));
		fclose(f);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct record recs[32];
	struct buf b;
	size_t n = 0, at = 0;

	if (argc > 1)
		return fuzz_files(argc - 1, argv + 1);
	buf_init(&b, 1 << 20);
	add_journal(&b);
	while (n < 32 && record_next(b.data, b.len, &at, &recs[n]) == RECORD_OK)
		n++;
	for (int i = 0; i < ROUNDS; i++) {
		const struct record *r = &recs[dice(n)];

		fuzz_payload(r->payload, r->payload_bytes);
		if (i % 64 == 0)
			fuzz_payload((const uint8_t *)b.data, b.len);
	}
	buf_done(&b);
	printf("%d damaged events read\n", ROUNDS);
	return 0;
}
#endif
