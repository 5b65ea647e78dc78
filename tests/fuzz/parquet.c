/* SPDX-License-Identifier: Apache-2.0 */
/* parquet.c: the input as a Parquet file: every picture is inside it or inside a page, whatever counts and lengths say,
 * and the scan ends; every row that can be read as a record is JSON. An input without the magic is also tried as the
 * body of a file: its last two bytes are the length of the footer. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/container.h"
#include "tracker/base/buf.h"
#include "trainer/data/container/container_scan.h"
#include "trainer/data/container/decompress.h"
#include "trainer/data/container/parquet_page.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void look(const struct byte_source *source, const struct sample *one)
{
	const struct parquet_page_place place = { source, one->offset, source->bytes, samples_kind(one->packed) };
	struct parquet_page page;
	struct err err = ERR_INIT;

	FUZZ_HOLDS(one->label >= 0 && one->offset <= source->bytes);
	if (!one->packed) {
		FUZZ_HOLDS(one->bytes <= source->bytes - one->offset);
		return;
	}
	FUZZ_HOLDS(!parquet_page_read(&page, &place, &err));
	FUZZ_HOLDS(samples_inside(one->packed) <= page.n && one->bytes <= page.n - samples_inside(one->packed));
	free(page.bytes);
}

static bool take_all(const char *name)
{
	return name != NULL;
}

static int parse_record(void *user, const char *json, size_t n, struct err *err)
{
	int *left = user;
	json_t *record = json_loadb(json, n, JSON_ALLOW_NUL, NULL);

	FUZZ_HOLDS(json_is_object(record));
	json_decref(record);
	return --*left ? 0 : err_set(err, ERR_CANCELED, "enough");
}

static void read_records(const struct byte_source *source)
{
	int left = 100;
	const struct parquet_record_sink to = { take_all, parse_record, &left };
	struct err err = ERR_INIT;
	struct parquet *p;
	int rc = 0;

	if (parquet_open(&p, source, &err))
		return;
	for (int g = 0; !rc && g < parquet_groups(p); g++)
		rc = parquet_walk_records(p, g, &to, &err);
	FUZZ_HOLDS(!rc || rc == ERR_USAGE || rc == ERR_CORRUPT || rc == ERR_CANCELED);
	parquet_close(p);
}

static void scan(struct buf *b)
{
	struct container_bytes in = { (const uint8_t *)b->data, b->len };
	struct byte_source source = { .bytes = b->len, .read = container_read, .user = &in, .name = "input" };
	struct webdataset_fields fields = { .image = "jpg;png;npy", .label = "cls" };
	struct err err = ERR_INIT;
	struct samples s;

	samples_init(&s);
	if (!parquet_scan(&s, &source, 0, &fields, &err)) {
		FUZZ_HOLDS(!samples_end(&s, &err));
		for (int64_t i = 0; i < s.n && i < 100; i++)
			look(&source, &s.at[i]);
	} else {
		FUZZ_HOLDS(err.code == ERR_USAGE);
	}
	samples_done(&s);
	read_records(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct buf b;

	buf_init(&b, 1 << 24);
	buf_add(&b, bytes, n);
	scan(&b); /* the input unchanged */
	buf_reset(&b);
	if (n >= 2) {
		buf_adds(&b, "PAR1");
		buf_add(&b, bytes, n - 2);
		buf_add_u32le(&b, bytes[n - 2] | (uint32_t)bytes[n - 1] << 8);
		buf_adds(&b, "PAR1");
		scan(&b);
	}
	buf_done(&b);
	return 0;
}
