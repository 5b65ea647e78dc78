/* SPDX-License-Identifier: Apache-2.0 */
/* tfrecord.c: the input as a file of TFRecords: every picture is inside it, whatever lengths say, and the scan ends.
 * The checksums are corrected, otherwise no record would be parsed: the input is a list of records, each with two
 * bytes for its length. */
#include <stdlib.h>

#include "tests/fuzz/container.h"
#include "tracker/base/buf.h"
#include "tracker/base/crc32c.h"
#include "trainer/data/container/container_scan.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void frame(struct buf *to, const uint8_t *bytes, size_t n)
{
	while (n) {
		size_t length = n > 1 ? bytes[0] | (size_t)bytes[1] << 8 : 0, head = n > 1 ? 2 : n, from = to->len;

		length = length < n - head ? length : n - head;
		buf_add_u64le(to, length);
		buf_add_u32le(to, crc32c_mask(crc32c(0, to->data + from, 8)));
		buf_add(to, bytes + head, length);
		buf_add_u32le(to, crc32c_mask(crc32c(0, bytes + head, length)));
		bytes += head + length;
		n -= head + length;
	}
}

static void scan(struct buf *b)
{
	struct container_bytes in = { (const uint8_t *)b->data, b->len };
	struct byte_source source = { .bytes = b->len, .read = container_read, .user = &in, .name = "input" };
	struct webdataset_fields fields = { .image = "jpg;png;npy", .label = "cls" };
	struct err err = ERR_INIT;
	struct samples s;

	samples_init(&s);
	FUZZ_HOLDS(!tfrecord_scan(&s, &source, 0, &fields, &err) && !samples_end(&s, &err));
	for (int64_t i = 0; i < s.n; i++)
		FUZZ_HOLDS(s.at[i].offset <= b->len && s.at[i].bytes <= b->len - s.at[i].offset && s.at[i].label >= 0);
	samples_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct buf b;

	buf_init(&b, 1 << 24);
	buf_add(&b, bytes, n);
	scan(&b); /* the input unchanged */
	buf_reset(&b);
	frame(&b, bytes, n);
	scan(&b);
	buf_done(&b);
	return 0;
}
