/* SPDX-License-Identifier: Apache-2.0 */
/* wandb.c: the input as a .wandb file of W&B, and as pieces after its header: a run is read, or the file is
 * refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/fuzz/fuzz.h"
#include "web/cli/import/wandb_file.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Pieces have lengths and checksums that a fuzzer does not guess: those of the input are corrected. */
static void mend(uint8_t *bytes, size_t n)
{
	for (size_t at = BLOCKS_HEAD_BYTES; at + 7 <= n;) {
		size_t size = bytes[at + 4] | (size_t)bytes[at + 5] << 8;
		uint32_t crc;

		size = size < n - at - 7 ? size : n - at - 7;
		size = size < 32768 - 7 - at % 32768 ? size : 0;
		bytes[at + 4] = (uint8_t)size;
		bytes[at + 5] = (uint8_t)(size >> 8);
		crc = htole32((uint32_t)crc32(0, bytes + at + 6, (uInt)size + 1));
		memcpy(bytes + at, &crc, sizeof(crc));
		at += 7 + size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const unsigned char head[BLOCKS_HEAD_BYTES] = { ':', 'W', '&', 'B', 0xe1, 0xbe, 0 };
	const struct importer_target nowhere = { 0 };
	uint8_t *whole = malloc(n + sizeof(head));
	struct wandb_file file = { .bytes = whole, .n = n + sizeof(head), .session = "fuzz" };
	struct importer b;

	FUZZ_HOLDS(whole && !importer_init(&b, &nowhere, NULL));
	memcpy(whole, head, sizeof(head));
	memcpy(whole + sizeof(head), bytes, n);
	mend(whole, n + sizeof(head));
	for (int i = 0; i < 2; i++) {
		int rc = wandb_take(&b, &file, NULL);

		FUZZ_HOLDS((!rc || rc == ERR_CORRUPT) && b.runs <= 2);
		file.bytes = bytes; /* and the original input */
		file.n = n;
	}
	importer_done(&b);
	free(whole);
	return 0;
}
