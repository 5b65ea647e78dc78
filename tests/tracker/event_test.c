/* SPDX-License-Identifier: Apache-2.0 */
/* event_test.c: tracker/event compared with recorded bytes, and with itself for records that only we write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/err.h"
#include "tracker/base/utf8.h"
#include "tracker/event/event.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/extension.h"
#include "tracker/event/record.h"

#define ID_A "0123456789abcdef0123456789abcdef"
#define ID_B "fedcba9876543210fedcba9876543210"

/* Complete records of other writers: wall time 1700000000 or 1700000001, tag loss, step 7, value 0.5. */
static const char hex_version[] = "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d";
static const char hex_scalar[] =
	"1a00000000000000129bd82d0900004040fc54d94110072a0d0a0b0a046c6f7373150000003f368fc084";
static const char hex_tensor[] = "2e00000000000000c5cb57fa0900004040fc54d94110072a210a1f0a046c6f7373420a080112002a04"
				 "0000003f4a0b0a090a077363616c61727350b0f7d0";
static const char hex_session[] = "0d000000000000003c37b8340900000040fc54d9413a020801b7a36b29";
/* hparams contents: start with lr 0.001 and opt adam at 1700000000; successful end at 1700000100 */
static const char hex_start[] =
	"1a290a0f0a026c72120911fca9f1d24d62503f0a0d0a036f707412061a046164616d2900000040fc54d941";
static const char hex_end[] = "220b08011100000059fc54d941";

static struct event_text text(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

static size_t unhex(unsigned char *to, const char *hex)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		char byte[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		to[i] = (unsigned char)strtoul(byte, NULL, 16);
	}
	return n;
}

static bool holds(const struct buf *b, const char *hex)
{
	unsigned char want[256];
	size_t n = unhex(want, hex);

	return memmem(b->data, b->len, want, n) != NULL;
}

static bool same_text(struct event_text t, const char *s)
{
	return event_text_equal(t, s);
}

/* Opens the record at *at. */
static void open_at(const struct buf *b, size_t *at, struct event *ev)
{
	struct record rec;

	assert_int_equal(record_next(b->data, b->len, at, &rec), RECORD_OK);
	assert_int_equal(event_open(ev, rec.payload, rec.payload_bytes), 0);
}

static void scalar_of(const char *hex, struct event *ev, struct event_item *item)
{
	static unsigned char bytes[256];
	struct record rec;
	size_t n = unhex(bytes, hex), at = 0;

	assert_int_equal(record_next(bytes, n, &at, &rec), RECORD_OK);
	assert_int_equal(at, n);
	assert_int_equal(event_open(ev, rec.payload, rec.payload_bytes), 0);
	assert_int_equal(event_next(ev, item), 1);
}

static void reads_other_writers_records(void **state)
{
	struct event ev;
	struct event_item item;
	const char *const scalars[] = { hex_scalar, hex_tensor };

	(void)state;
	scalar_of(hex_version, &ev, &item);
	assert_int_equal(item.kind, EVENT_FILE_VERSION);
	assert_true(same_text(item.text, "brain.Event:2"));
	assert_true(ev.wall_time == 1700000000.0);
	scalar_of(hex_session, &ev, &item);
	assert_int_equal(item.kind, EVENT_SESSION);
	assert_int_equal(item.integer, 1);
	for (size_t i = 0; i < 2; i++) {
		scalar_of(scalars[i], &ev, &item);
		assert_int_equal(item.kind, EVENT_SCALAR);
		assert_true(same_text(item.key, "loss"));
		assert_true(item.value == 0.5 && ev.step == 7 && ev.wall_time == 1700000001.0);
		assert_int_equal(item.rank, EVENT_RANK_DEFAULT);
		assert_int_equal(event_next(&ev, &item), 0);
	}
}

static void writes_the_same_bytes(void **state)
{
	const struct encode_param params[] = {
		{ .key = { "lr", 2 }, .type = EVENT_TYPE_F64, .value = 0.001 },
		{ .key = { "opt", 3 }, .type = EVENT_TYPE_TEXT, .text = { "adam", 4 } },
	};
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	encode_scalar(&b, &(struct encode_scalar){ text("loss"), 7, 1700000001.0, 0.5, EVENT_RANK_RUN, 0 });
	assert_int_equal(b.len, strlen(hex_scalar) / 2);
	assert_true(holds(&b, hex_scalar));
	buf_reset(&b);
	encode_session_start(&b, 1700000000.0, 0);
	assert_int_equal(b.len, strlen(hex_session) / 2);
	assert_true(holds(&b, hex_session));
	buf_reset(&b);
	encode_hparams_start(&b, 1700000000.0, params, 2);
	assert_true(holds(&b, hex_start));
	buf_reset(&b);
	encode_hparams_end(&b, 1700000100.0, EVENT_FINISHED);
	assert_true(holds(&b, hex_end));
	buf_done(&b);
}

static void foreign_hparams_become_params(void **state)
{
	unsigned char content[64];
	char payload[256];
	size_t n = unhex(content, hex_start), at = 0;
	const char head[] = "\x2a\x4f\x0a\x4d\x0a\x05h/sta\x4a\x44\x0a\x42\x0a\x07hparams\x12";
	struct event ev;
	struct event_item item;

	(void)state;
	memcpy(payload, head, sizeof(head) - 1);
	at = sizeof(head) - 1;
	payload[at++] = (char)n;
	memcpy(payload + at, content, n);
	at += n;
	payload[1] = (char)(at - 2);
	payload[3] = (char)(at - 4);
	payload[12] = (char)(at - 13);
	payload[14] = (char)(at - 15);
	assert_int_equal(event_open(&ev, payload, at), 0);
	assert_int_equal(event_next(&ev, &item), 1);
	assert_int_equal(item.kind, EVENT_HPARAMS_START);
	assert_true(item.value == 1700000000.0);
	assert_int_equal(event_next(&ev, &item), 1);
	assert_int_equal(item.kind, EVENT_PARAM);
	assert_true(same_text(item.key, "lr") && item.type == EVENT_TYPE_F64 && item.value == 0.001);
	assert_int_equal(event_next(&ev, &item), 1);
	assert_true(same_text(item.key, "opt") && item.type == EVENT_TYPE_TEXT && same_text(item.text, "adam"));
	assert_int_equal(event_next(&ev, &item), 0);
}

static void round_trip_value(double value, int rank, int journal_rank)
{
	int unsaid = journal_rank > 0 ? journal_rank : EVENT_RANK_RUN;
	struct event ev;
	struct event_item item;
	struct buf b;
	size_t at = 0;

	buf_init(&b, 1 << 20);
	encode_scalar(&b, &(struct encode_scalar){ text("a/b"), -3, 5.25, value, rank, journal_rank });
	open_at(&b, &at, &ev);
	assert_int_equal(at, b.len);
	assert_int_equal(event_next(&ev, &item), 1);
	assert_int_equal(item.kind, EVENT_SCALAR);
	assert_memory_equal(&item.value, &value, sizeof(value));
	assert_int_equal(item.rank == EVENT_RANK_DEFAULT ? unsaid : item.rank, rank);
	assert_true(ev.step == -3 && ev.wall_time == 5.25);
	assert_int_equal(event_next(&ev, &item), 0);
	buf_done(&b);
}

static void doubles_survive_bit_for_bit(void **state)
{
	const double values[] = { 0, -0.0, 0.1, 1e300, -1e-300, 5e-324, INFINITY, -INFINITY, NAN, -NAN, 1.5, 3.4e38 };
	uint64_t odd_nan = 0x7ff0000000000001u;
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (int rank = -1; rank < 3; rank++)
			for (int journal = 0; journal < 3; journal++)
				round_trip_value(values[i], rank, journal);
	memcpy(&v, &odd_nan, sizeof(v));
	round_trip_value(v, -1, 0);
	round_trip_value(0.3, LIMIT_rank, 7);
}

static void add_everything(struct buf *b)
{
	const struct encode_param p = { .key = { "n", 1 }, .type = EVENT_TYPE_I64, .integer = INT64_MIN,
					.segment = true };
	const struct event_header h = {
		.run_id = { ID_A, 32 }, .writer_id = { ID_B, 32 }, .rank = EVENT_RANK_LAUNCHER, .world_size = 4,
		.experiment = { "e", 1 }, .run_name = { "r", 1 }, .segment = 2, .first_step = 101, .first_epoch = 3,
		.host = { "h", 1 }, .pid = 77, .version = { "v", 1 },
	};

	const struct event_input in = { text("set"), text("d1"),	 text("training"),
					text("s3"),  text("s3://b/k"), text("") };

	encode_header(b, 1, &h);
	encode_session_start(b, 2, 101);
	encode_param(b, 3, &p);
	encode_hparams_start(b, 4, &p, 1);
	encode_tag(b, 5, text("k"), text("v"));
	encode_env(b, 6, text("cpu"), text(""));
	encode_note(b, 7, text("# note"));
	encode_status(b, 8, EVENT_PREEMPTED, text("why"));
	encode_heartbeat(b, 9, 12);
	encode_hparams_end(b, 10, EVENT_FAILED);
	encode_input(b, 11, &in);
	assert_false(buf_failed(b));
}

static void check_header(const struct event_item *item)
{
	const struct event_header *h = item->header;

	assert_int_equal(item->kind, EVENT_HEADER);
	assert_true(same_text(h->run_id, ID_A) && same_text(h->writer_id, ID_B));
	assert_true(same_text(h->experiment, "e") && same_text(h->run_name, "r") && same_text(h->host, "h"));
	assert_int_equal(h->rank, EVENT_RANK_LAUNCHER);
	assert_true(h->format == 1 && h->world_size == 4 && h->segment == 2 && h->pid == 77);
	assert_true(h->first_step == 101 && h->first_epoch == 3);
}

static void our_records_read_back_once(void **state)
{
	static const enum event_kind want[] = { EVENT_HEADER, EVENT_SESSION, EVENT_PARAM,     EVENT_TAG,
						EVENT_ENV,    EVENT_NOTE,    EVENT_STATUS, EVENT_HEARTBEAT,
						EVENT_INPUT };
	struct event_item items[16];
	struct event evs[16];
	size_t at = 0, n = 0;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	add_everything(&b);
	for (size_t r = 0; at < b.len; r++) {
		open_at(&b, &at, &evs[r]);
		while (event_next(&evs[r], &items[n]) == 1)
			n++;
	}
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(items[i].kind, want[i]);
	check_header(&items[0]);
	assert_true(same_text(items[8].input.name, "set") && same_text(items[8].input.digest, "d1"));
	assert_true(same_text(items[8].input.context, "training") && same_text(items[8].input.source_type, "s3"));
	assert_true(same_text(items[8].input.source, "s3://b/k") && same_text(items[8].input.profile, ""));
	assert_true(same_text(items[2].key, "n") && items[2].type == EVENT_TYPE_I64 && items[2].segment);
	assert_true(items[2].integer == INT64_MIN);
	assert_true(same_text(items[3].key, "k") && same_text(items[3].text, "v"));
	assert_true(same_text(items[5].text, "# note"));
	assert_true(items[6].status == EVENT_PREEMPTED && same_text(items[6].text, "why"));
	assert_true(items[7].integer == 12);
	buf_done(&b);
}

static void truncated_file_reads_to_its_end(void **state)
{
	size_t ends[32], n_ends = 0, at = 0;
	struct record rec;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	add_everything(&b);
	while (record_next(b.data, b.len, &at, &rec) == RECORD_OK)
		ends[n_ends++] = at;
	for (size_t cut = 0; cut <= b.len; cut++) {
		size_t whole = 0;
		char *copy = malloc(cut + 1); /* a separate block, so that ASan detects a read beyond the cut */

		memcpy(copy, b.data, cut);
		copy = realloc(copy, cut ? cut : 1);
		for (size_t i = 0; i < n_ends; i++)
			if (ends[i] <= cut)
				whole = ends[i];
		assert_int_equal(record_whole(copy, cut), whole);
		at = whole;
		assert_int_equal(record_next(copy, cut, &at, &rec), RECORD_MORE);
		assert_int_equal(at, whole);
		free(copy);
	}
	buf_done(&b);
}

static void kinds_of_damage_are_distinguished(void **state)
{
	struct record rec;
	struct buf b;
	size_t at = 0, first;

	(void)state;
	buf_init(&b, 1 << 20);
	encode_heartbeat(&b, 1, 1);
	first = b.len;
	encode_heartbeat(&b, 2, 2);
	b.data[RECORD_HEAD_BYTES + 3] ^= 1;
	assert_int_equal(record_next(b.data, b.len, &at, &rec), RECORD_BAD_PAYLOAD);
	assert_int_equal(rec.frame_bytes, first);
	at += rec.frame_bytes;
	assert_int_equal(record_next(b.data, b.len, &at, &rec), RECORD_OK);
	b.data[first] ^= 1;
	at = first;
	assert_int_equal(record_next(b.data, b.len, &at, &rec), RECORD_BAD_LENGTH);
	buf_add(&b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	at = b.len - 20;
	assert_int_equal(record_next(b.data, b.len, &at, &rec), RECORD_BAD_LENGTH);
	buf_done(&b);
}

/* Every single-byte change of a payload either parses or is refused; nothing reads out of bounds (ASan). */
static void changed_bytes_are_harmless(void **state)
{
	static const unsigned char flips[] = { 0x01, 0x08, 0x80, 0xff };
	struct event_item item;
	struct record rec;
	struct event ev;
	struct buf b;
	size_t at = 0;

	(void)state;
	buf_init(&b, 1 << 20);
	add_everything(&b);
	encode_scalar(&b, &(struct encode_scalar){ text("loss"), 7, 1, 0.1, 4, 0 });
	while (record_next(b.data, b.len, &at, &rec) == RECORD_OK) {
		unsigned char *copy = malloc(rec.payload_bytes);

		for (size_t i = 0; i < rec.payload_bytes * sizeof(flips); i++) {
			memcpy(copy, rec.payload, rec.payload_bytes);
			copy[i / sizeof(flips)] ^= flips[i % sizeof(flips)];
			if (event_open(&ev, copy, rec.payload_bytes))
				continue;
			for (int items = 0; event_next(&ev, &item) > 0; items++)
				assert_true(items < 1000);
		}
		free(copy);
	}
	buf_done(&b);
}

static void refuses_other_records(void **state)
{
	struct event ev;
	const char nan_time[] = "\x09\0\0\0\0\0\0\xf8\x7f";

	(void)state;
	assert_int_equal(event_open(&ev, "\x0a\x05" "abc", 5), ERR_CORRUPT);
	assert_int_equal(event_open(&ev, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11), ERR_CORRUPT);
	assert_int_equal(event_open(&ev, nan_time, 9), ERR_CORRUPT);
	assert_int_equal(event_open(&ev, "", 0), 0);
	assert_int_equal(event_open(&ev, "\x63\x08\x01\x63\x64\x64", 6), 0); /* nested groups are skipped */
	assert_int_equal(event_open(&ev, "\x63\x08\x01", 3), ERR_CORRUPT);
}

static void field_numbers_are_unique(void **state)
{
	static const struct {
		const char *name;
		int number;
	} all[] = {
#define FIELD(name, number) { #name, number },
#include "schema/event/fields.def"
#undef FIELD
	};
	size_t n = sizeof(all) / sizeof(all[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++) {
			size_t message = strcspn(all[i].name, "_") + 1;

			if (!strncmp(all[i].name, all[j].name, message))
				assert_int_not_equal(all[i].number, all[j].number);
		}
}

static void keys_follow_the_rule(void **state)
{
	char longest[1001];

	(void)state;
	assert_null(key_check("train/loss", 10));
	assert_null(key_check("größe µ [x]", strlen("größe µ [x]")));
	assert_non_null(key_check("", 0));
	assert_non_null(key_check("a\nb", 3));
	assert_non_null(key_check("a\xc2\x85", 3)); /* U+0085 */
	assert_non_null(key_check("a\xff", 2));
	assert_non_null(key_check("\xc0\xaf", 2));         /* overlong / */
	assert_non_null(key_check("\xed\xa0\x80", 3));     /* surrogate */
	assert_non_null(key_check("\xf4\x90\x80\x80", 4)); /* beyond U+10FFFF */
	assert_non_null(key_check("\xe2\x82", 2));         /* cut short */
	memset(longest, 'x', sizeof(longest));
	assert_null(key_check(longest, 250));
	assert_non_null(key_check(longest, 251));
	for (size_t i = 0; i < 1000; i += 4)
		memcpy(longest + i, "\xf0\x9f\x98\x80", 4);
	assert_null(key_check(longest, 1000));
	assert_non_null(key_check(longest, 1001));
}

/* As CWE-117 and Trojan Source (CVE-2021-42574) ask: what others named begins no line and turns no text around. */
static void control_characters_are_escaped(void **state)
{
	static const char *const pairs[][2] = {
		{ "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \\", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \\" },
		{ "x\ny\r\t\x1b[31m\x7f", "x\\x0ay\\x0d\\x09\\x1b[31m\\x7f" },
		{ "\xc2\x85\xc2\x9b\xc2\xa0", "\\u0085\\u009b\xc2\xa0" },
		{ "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xe2\x80\x8f\xe2\x81\xa6\xd8\x9c",
		  "\\u2028\\u2029\\u202e\\u200f\\u2066\\u061c" },
		{ "\xff\xc3", "\\xff\\xc3" },
	};
	char out[100];

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(utf8_escape(out, sizeof(out), pairs[i][0]), strlen(pairs[i][1]));
		assert_string_equal(out, pairs[i][1]);
	}
	assert_int_equal(utf8_escape(out, 4, "ab\xc3\xa4"), 2);
	assert_int_equal(utf8_escape(out, 4, "a\x1b"), 1);
}

static void text_becomes_valid_utf8(void **state)
{
	char out[16];
	bool cut;

	(void)state;
	assert_int_equal(utf8_copy(out, sizeof(out), "a\xff" "b", 3, &cut), 5);
	assert_string_equal(out, "a\xef\xbf\xbd" "b");
	assert_false(cut);
	assert_int_equal(utf8_copy(out, 4, "ab\xc3\xa4", 4, &cut), 2);
	assert_string_equal(out, "ab");
	assert_true(cut);
	assert_true(utf8_valid("ab\xc3\xa4", 4));
	assert_false(utf8_valid("ab\xc3\xa4", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_other_writers_records),
		cmocka_unit_test(writes_the_same_bytes),
		cmocka_unit_test(foreign_hparams_become_params),
		cmocka_unit_test(doubles_survive_bit_for_bit),
		cmocka_unit_test(our_records_read_back_once),
		cmocka_unit_test(truncated_file_reads_to_its_end),
		cmocka_unit_test(kinds_of_damage_are_distinguished),
		cmocka_unit_test(changed_bytes_are_harmless),
		cmocka_unit_test(refuses_other_records),
		cmocka_unit_test(field_numbers_are_unique),
		cmocka_unit_test(keys_follow_the_rule),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(text_becomes_valid_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
