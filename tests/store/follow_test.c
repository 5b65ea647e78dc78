/* SPDX-License-Identifier: Apache-2.0 */
/* follow_test.c: a followed folder with our journals and foreign event files: growing, torn, restarted, polled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/helper.h"
#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/event/record.h"
#include "web/store/follow/follow.h"

/* Complete records as TensorBoard's writer makes them: version, `loss` 0.5 at step 7 in both forms, session end. */
static const char foreign_hex[] =
	"1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d"
	"1a00000000000000129bd82d0900004040fc54d94110072a0d0a0b0a046c6f7373150000003f368fc084"
	"2e00000000000000c5cb57fa0900004040fc54d94110072a210a1f0a046c6f7373420a080112002a040000003f4a0b0a090"
	"a077363616c61727350b0f7d0";

static void make_folder(const struct helper *h, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof full, "%s/%s", h->folder, path);
	assert_int_equal(mkdir(full, 0777), 0);
}

static void append(const struct helper *h, const char *path, const void *bytes, size_t n)
{
	char full[PATH_MAX];
	FILE *out;

	snprintf(full, sizeof full, "%s/%s", h->folder, path);
	out = fopen(full, "a");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

static size_t from_hex(const char *hex, unsigned char *to)
{
	size_t n = strlen(hex) / 2, i;
	unsigned int byte;

	for (i = 0; i < n; i++) {
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		to[i] = (unsigned char)byte;
	}
	return n;
}

static struct follow *start(struct helper *h, const struct follow_opts *opts)
{
	struct follow_opts o = *opts;
	struct follow *f = NULL;
	struct err err = ERR_INIT;

	o.logdir = h->folder;
	if (follow_start(&f, h->s, &o, &err) || follow_scan_wait(f, 20, &err))
		fail_msg("%s", err.text);
	return f;
}

/* Makes a run folder as another writer leaves it; its id goes to id. */
static void make_foreign(const struct helper *h, const char *folder, char id[65])
{
	unsigned char bytes[400];
	size_t n = from_hex(foreign_hex, bytes);
	char path[200];

	make_folder(h, folder);
	snprintf(path, sizeof path, "%s/events.out.tfevents.1700000000.h.1.0", folder);
	append(h, path, bytes, n);
	sha256_hex(folder, strlen(folder), id);
	id[32] = '\0';
}

static uint64_t count_of(struct helper *h, const char *run, const char *key)
{
	struct query_run r;
	const struct query_metric *m;

	if (query_run(h->s, run, h->a, &r, NULL))
		return 0;
	m = helper_metric(&r, key);
	return m ? m->count : 0;
}

/* Waits until the series has `count` points; fails after 30 s. */
static void wait_for(struct helper *h, const char *run, const char *key, uint64_t count)
{
	double began = clock_mono_s();

	while (count_of(h, run, key) != count) {
		if (clock_mono_s() - began > 30)
			fail_msg("%s has %llu points, not %llu", key, (unsigned long long)count_of(h, run, key),
				 (unsigned long long)count);
		clock_sleep_s(0.01);
	}
}

static void our_journals(void **state, const struct follow_opts *opts)
{
	struct helper *h = *state;
	struct event_header header = helper_header(0, 0, 0);
	const char *path = "exp/first-01234567/events.out.tfevents.1700000000.host.42.0";
	struct follow *f;
	struct buf b;
	int i;

	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9, &header);
	helper_scalar(&b, "a", 1, 1);
	make_folder(h, "exp");
	make_folder(h, "exp/first-01234567");
	append(h, path, b.data, b.len);
	f = start(h, opts);
	assert_int_equal(count_of(h, HELPER_RUN, "a"), 1);
	buf_reset(&b);
	for (i = 2; i <= 10; i++)
		helper_scalar(&b, "a", i, i);
	append(h, path, b.data, b.len - 3);
	wait_for(h, HELPER_RUN, "a", 9);
	append(h, path, b.data + b.len - 3, 3);
	wait_for(h, HELPER_RUN, "a", 10);
	/* a second rank, in a folder made while following */
	buf_reset(&b);
	header.rank = 1;
	header.writer_id = helper_text("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
	encode_header(&b, 1.7e9, &header);
	encode_scalar(&b, &(struct encode_scalar){ .key = helper_text("phase/step"), .step = 1, .wall_time = 1.7e9,
						   .value = 2, .rank = 1, .journal_rank = 1 });
	encode_scalar(&b, &(struct encode_scalar){ .key = helper_text("b"), .step = 1, .wall_time = 1.7e9, .value = 2,
						   .rank = EVENT_RANK_RUN, .journal_rank = 1 });
	make_folder(h, "exp/later");
	append(h, "exp/later/rank-1.1700000000.host.43.0.journal", b.data, b.len);
	wait_for(h, HELPER_RUN, "b", 1);
	assert_int_equal(helper_run(h, HELPER_RUN).series_count, 3);
	follow_stop(f);
	helper_reopen(h);
	f = start(h, opts);
	assert_int_equal(count_of(h, HELPER_RUN, "a"), 10);
	append(h, "exp/later/rank-1.1700000000.host.43.0.journal", b.data, 0);
	follow_stop(f);
	buf_done(&b);
}

static void watched(void **state)
{
	our_journals(state, &(struct follow_opts){ 0 });
}

static void polled(void **state)
{
	our_journals(state, &(struct follow_opts){ .poll = true, .poll_s = 0.1 });
}

/* Without inotify, growing files are read between the scans of a large folder, which are rare. */
static void polled_between_scans(void **state)
{
	struct helper *h = *state;
	const struct follow_opts opts = { .poll = true, .poll_s = 1000 };
	struct event_header header = helper_header(0, 0, 0);
	struct follow *f;
	struct buf b;

	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9, &header);
	helper_scalar(&b, "a", 1, 1);
	append(h, "x.journal", b.data, b.len);
	f = start(h, &opts);
	buf_reset(&b);
	helper_scalar(&b, "a", 2, 1);
	append(h, "x.journal", b.data, b.len);
	wait_for(h, HELPER_RUN, "a", 2);
	follow_stop(f);
	helper_reopen(h);
	f = start(h, &opts);
	append(h, "x.journal", b.data, b.len);
	wait_for(h, HELPER_RUN, "a", 3);
	follow_stop(f);
	buf_done(&b);
}

static void posted_and_followed(void **state)
{
	struct helper *h = *state;
	struct event_header header = helper_header(0, 0, 0);
	struct ingest_result res;
	struct follow *f;
	struct buf b;
	size_t half;
	int i;

	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9, &header);
	for (i = 1; i <= 100; i++)
		helper_scalar(&b, "a", i, i);
	half = record_whole(b.data, b.len / 2);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, 0, &(struct buf){ .data = b.data, .len = half }, 0,
				     &res), 0);
	append(h, "x.journal", b.data, b.len);
	f = start(h, &(struct follow_opts){ .once = true });
	assert_int_equal(count_of(h, HELPER_RUN, "a"), 100);
	assert_int_equal(helper_post(h, HELPER_RUN, HELPER_WRITER, half, &b, half, &res), 0);
	assert_int_equal(count_of(h, HELPER_RUN, "a"), 100);
	follow_stop(f);
	buf_done(&b);
}

static void foreign_folders(void **state)
{
	struct helper *h = *state;
	unsigned char bytes[400];
	size_t n = from_hex(foreign_hex, bytes);
	struct points_row rows[8];
	struct query_run r;
	struct follow *f;
	struct buf b;
	char id[65], alone[65];

	make_foreign(h, "alone", alone);
	make_folder(h, "proj");
	make_folder(h, "proj/a");
	make_folder(h, "proj/a/train");
	append(h, "proj/a/train/events.out.tfevents.1700000000.h.1.0", bytes, n);
	/* another file of the run, and a copy of the first one, which counts once */
	buf_init(&b, 4096);
	encode_file_version(&b, 1700000001.0);
	append(h, "proj/a/train/events.out.tfevents.1700000001.h.1.1", b.data, b.len);
	append(h, "proj/a/train/events.out.tfevents.1700000001.h.1.1", bytes + 40, n - 20 - 40);
	append(h, "proj/a/train/events.out.tfevents.1700000002.h.1.0", bytes, n - 20);
	buf_done(&b);
	append(h, "proj/a/notes.txt", "x", 1);
	f = start(h, &(struct follow_opts){ 0 });
	sha256_hex("proj/a/train", 12, id);
	id[32] = '\0';
	r = helper_run(h, id);
	assert_string_equal(r.experiment, "proj");
	assert_string_equal(r.name, "a/train");
	assert_int_equal(helper_rows(h, id, "loss", -1, false, rows, 8), 3);
	assert_true(rows[0].step == 7 && rows[0].value == 0.5 && rows[0].wall_time == 1700000001.0);
	r = helper_run(h, alone);
	assert_string_equal(r.experiment, "Default");
	assert_string_equal(r.name, "alone");
	follow_stop(f);
}

/* A second file of a run begins with a session start at step 7: it hides the first file's points from there on. */
static void foreign_restart(void **state)
{
	struct helper *h = *state;
	unsigned char bytes[400];
	struct points_row rows[8];
	struct query_run r;
	struct follow *f;
	struct buf b;
	char id[65];

	from_hex(foreign_hex, bytes);
	make_foreign(h, "r", id);
	buf_init(&b, 4096);
	encode_session_start(&b, 1700000100.0, 7);
	append(h, "r/events.out.tfevents.1700000100.h.1.0", bytes, 40);
	append(h, "r/events.out.tfevents.1700000100.h.1.0", b.data, b.len);
	append(h, "r/events.out.tfevents.1700000100.h.1.0", bytes + 40, 42);
	f = start(h, &(struct follow_opts){ 0 });
	r = helper_run(h, id);
	assert_string_equal(r.status, "finished");
	assert_int_equal(r.segment_count, 2);
	assert_int_equal(helper_metric(&r, "loss")->count, 1);
	assert_int_equal(helper_rows(h, id, "loss", -1, true, rows, 8), 3);
	follow_stop(f);
	buf_done(&b);
}

/* What PyTorch 2.13's add_hparams writes: version, description, start with lr, opt and nesterov, end, hparam/acc. */
static const char note_hex[] =
	"4800000000000000fe92489d09cfe1b63bfebfda411a0d627261696e2e4576656e743a32522e0a2c74656e736f72626f61"
	"72642e73756d6d6172792e7772697465722e6576656e745f66696c655f77726974657230114dd46300000000000000b16b"
	"13d909fce7b63bfebfda412a580a560a145f68706172616d735f2f6578706572696d656e744a3e0a3c0a0768706172616d"
	"731231122f22060a026c72200322070a036f70742001220c0a086e65737465726f7620032a0e0a0c120a68706172616d2f"
	"6163636975e53f720000000000000025053a820938e8b63bfebfda412a670a650a1c5f68706172616d735f2f7365737369"
	"6f6e5f73746172745f696e666f4a450a430a0768706172616d7312381a360a0f0a026c721209119a9999999999b93f0a15"
	"0a086e65737465726f76120911000000000000f03f0a0c0a036f707412051a03736764d5b6d8613c00000000000000c8b7"
	"a3520944e8b63bfebfda412a310a2f0a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f4a110a0f0a07"
	"68706172616d731204220208019a621d851e00000000000000d9dc12320980e8b63bfebfda412a130a110a0a6870617261"
	"6d2f616363150000003fb7134dc2";

static void append_note(const struct helper *h, const char *path)
{
	unsigned char bytes[sizeof note_hex / 2];

	append(h, path, bytes, from_hex(note_hex, bytes));
}

/* hparams written before the run's own data wait for it. A second folder of them is a run. */
static void hparams_of_a_run(void **state)
{
	struct helper *h = *state;
	unsigned char bytes[400];
	size_t n = from_hex(foreign_hex, bytes);
	struct query_run r;
	struct follow *f;
	char id[65], other[65];

	make_folder(h, "r");
	make_folder(h, "r/1700000001.1");
	append(h, "r/events.out.tfevents.1700000000.h.1.0", bytes, 40);
	append_note(h, "r/1700000001.1/events.out.tfevents.1700000001.h.1.1");
	sha256_hex("r", 1, id);
	sha256_hex("r/1700000002.2", 14, other);
	id[32] = other[32] = '\0';
	f = start(h, &(struct follow_opts){ 0 });
	assert_int_equal(query_run(h->s, id, h->a, &r, NULL), ERR_NOENT);
	append(h, "r/events.out.tfevents.1700000000.h.1.0", bytes + 40, n - 40);
	wait_for(h, id, "hparam/acc", 1);
	r = helper_run(h, id);
	assert_int_equal(r.param_count, 3);
	assert_string_equal(r.name, "r");
	make_folder(h, "r/1700000002.2");
	append_note(h, "r/1700000002.2/events.out.tfevents.1700000002.h.1.2");
	wait_for(h, other, "hparam/acc", 1);
	assert_int_equal(count_of(h, id, "hparam/acc"), 1);
	follow_stop(f);
}

static void damaged_files_do_not_stop_others(void **state)
{
	struct helper *h = *state;
	unsigned char bytes[400];
	size_t n = from_hex(foreign_hex, bytes);
	struct follow_stats stats;
	struct query_run r;
	struct follow *f;
	char id[65], good[65];

	make_folder(h, "bad");
	make_foreign(h, "good", good);
	memset(bytes + 40 + 42, 0, 12);
	append(h, "bad/events.out.tfevents.1.h.1.0", bytes, n);
	append(h, "bad/garbage.journal", "this is no journal at all, but long enough", 40);
	append(h, "bad/empty.journal", "", 0);
	f = start(h, &(struct follow_opts){ 0 });
	sha256_hex("bad", 3, id);
	id[32] = '\0';
	r = helper_run(h, id);
	assert_int_equal(helper_metric(&r, "loss")->count, 1);
	assert_int_equal(r.problem_count, 1);
	assert_int_equal(count_of(h, good, "loss"), 2);
	follow_stats(f, &stats);
	assert_int_equal(stats.files, 4);
	assert_int_equal(stats.files_bad, 2);
	assert_false(stats.polling);
	follow_stop(f);
}

#define CUT_POINTS 4

/* Makes a small journal of run `number`; its file name goes to path, the run's id to run. */
static void make_small(struct buf *b, size_t number, char path[80], char run[40])
{
	struct event_header header = helper_header(0, 0, 0);
	char writer[40];
	int i;

	snprintf(run, 40, "%032zx", number + 1);
	snprintf(writer, sizeof writer, "%032zx", number + 5000);
	snprintf(path, 80, "%04zu.journal", number);
	header.run_id = helper_text(run);
	header.writer_id = helper_text(writer);
	buf_reset(b);
	encode_header(b, 1.7e9, &header);
	for (i = 1; i <= CUT_POINTS; i++)
		helper_scalar(b, "a", i, i);
}

/* Files cut at every byte are read up to the last complete record; the rest, once appended, is read once. */
static void torn_files(void **state)
{
	struct helper *h = *state;
	char path[80], run[40];
	struct follow *f;
	size_t cut, len;
	struct buf b;

	buf_init(&b, 1 << 16);
	make_small(&b, 0, path, run);
	len = b.len;
	for (cut = 0; cut < len; cut++) {
		make_small(&b, cut, path, run);
		append(h, path, b.data, cut);
	}
	f = start(h, &(struct follow_opts){ 0 });
	for (cut = 0; cut < len; cut += 5) {
		struct record rec;
		size_t at = 0, whole = 0;

		make_small(&b, cut, path, run);
		while (record_next(b.data, cut, &at, &rec) == RECORD_OK)
			whole++;
		assert_int_equal(count_of(h, run, "a"), whole ? whole - 1 : 0);
	}
	for (cut = 0; cut < len; cut++) {
		make_small(&b, cut, path, run);
		append(h, path, b.data + cut, len - cut);
	}
	for (cut = 0; cut < len; cut++) {
		make_small(&b, cut, path, run);
		wait_for(h, run, "a", CUT_POINTS);
	}
	follow_stop(f);
	buf_done(&b);
}

/* A flipped bit costs its record, or the rest of the file if it breaks the framing; never another file. */
static void flipped_bits(void **state)
{
	struct helper *h = *state;
	char path[80], run[40];
	size_t at, len, i, want;
	struct follow *f;
	struct buf b;

	buf_init(&b, 1 << 16);
	make_small(&b, 0, path, run);
	len = b.len;
	for (at = 0; at < len; at++) {
		make_small(&b, at, path, run);
		b.data[at] ^= 0x10;
		append(h, path, b.data, len);
	}
	f = start(h, &(struct follow_opts){ .once = true });
	for (at = 0; at < len; at++) {
		enum record_state s;
		struct record rec;

		make_small(&b, at, path, run);
		b.data[at] ^= 0x10;
		want = 0;
		for (i = 0; (s = record_next(b.data, len, &i, &rec)) == RECORD_OK || s == RECORD_BAD_PAYLOAD;) {
			if (s == RECORD_BAD_PAYLOAD && i == 0)
				break;
			want += s == RECORD_OK && i > rec.frame_bytes;
			i += s == RECORD_OK ? 0 : rec.frame_bytes;
		}
		assert_int_equal(count_of(h, run, "a"), want);
	}
	follow_stop(f);
	buf_done(&b);
}

static void links_are_followed(void **state)
{
	struct helper *h = *state;
	struct event_header header = helper_header(0, 0, 0);
	char outside[PATH_MAX + 16], link[PATH_MAX + 16];
	struct helper other = *h;
	struct follow *f;
	struct buf b;

	snprintf(other.folder, sizeof other.folder, "%.500s.outside", h->folder);
	assert_int_equal(mkdir(other.folder, 0777), 0);
	make_folder(&other, "run");
	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9, &header);
	helper_scalar(&b, "a", 1, 1);
	append(&other, "run/x.journal", b.data, b.len);
	snprintf(outside, sizeof outside, "%s/run", other.folder);
	snprintf(link, sizeof link, "%s/linked", h->folder);
	assert_int_equal(symlink(outside, link), 0);
	snprintf(outside, sizeof outside, "%s", h->folder);
	snprintf(link, sizeof link, "%s/loop", h->folder);
	assert_int_equal(symlink(outside, link), 0);
	f = start(h, &(struct follow_opts){ 0 });
	assert_int_equal(count_of(h, HELPER_RUN, "a"), 1);
	buf_reset(&b);
	helper_scalar(&b, "a", 2, 1);
	append(&other, "run/x.journal", b.data, b.len);
	wait_for(h, HELPER_RUN, "a", 2);
	follow_stop(f);
	snprintf(link, sizeof link, "rm -rf '%s'", other.folder);
	assert_int_equal(system(link), 0);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(watched, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(polled, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(polled_between_scans, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(posted_and_followed, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(foreign_folders, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(foreign_restart, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(hparams_of_a_run, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(damaged_files_do_not_stop_others, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(torn_files, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(flipped_bits, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(links_are_followed, helper_setup, helper_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
