/* SPDX-License-Identifier: Apache-2.0 */
/* format_test.c: the guarantees of every format of formats.def: a folder is recognised, two openings and many threads
 * read the same, indices out of range are refused, and a truncated file is named or makes the set smaller. A format
 * that is found by a path needs a maker here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/idx_make.h"
#include "tracker/base/file.h"
#include "trainer/data/container/shard_writer.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/tokenizer/token_file.h"

#define THREADS 4
#define SIDE 24
#define TOKENS 400
#define FILES_MAX 40
#define TOKENIZER ".tokenizer" /* of a set: after the name of its folder */

static char root[] = "/tmp/dptrain-format.XXXXXX";

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
	char command[2000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static FILE *create(const char *dir, const char *name)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	return f;
}

static void make_idx(const char *dir)
{
	idx_make(&(struct idx_spec){ dir, { 13, 5 }, 5, 4, 1, 0 });
}

static void make_cifar(const char *dir)
{
	for (int file = 1; file <= 6; file++) {
		char name[40];
		FILE *f;

		snprintf(name, sizeof(name), file < 6 ? "data_batch_%d.bin" : "test_batch.bin", file);
		f = create(dir, name);
		for (int at = 0; at < 2 * 3073; at++)
			fputc(at % 3073 ? at * file : file, f);
		fclose(f);
	}
}

static void make_folder(const char *dir)
{
	const char *src = getenv("srcdir");

	run("cd %s && mkdir -p train/a train/b val/a val/b", dir);
	run("cd %s/tests/data/pictures && cp plain.jpg photo.jpg %s/train/a && cp photo.png noise.png %s/train/b && "
	    "cp grey.jpg %s/val/a && cp grey.png %s/val/b && chmod -R u+w %s",
	    src ? src : ".", dir, dir, dir, dir, dir);
}

static void add_picture(struct shard_writer *w, int key, const char *name)
{
	const char *src = getenv("srcdir");
	char path[400], number[16];
	struct file_map map;
	struct shard_item items[2];

	snprintf(path, sizeof(path), "%s/tests/data/pictures/%s", src ? src : ".", name);
	assert_int_equal(file_map_open(&map, path, NULL), 0);
	snprintf(number, sizeof(number), "%d", key);
	items[0] = (struct shard_item){ strrchr(name, '.') + 1, map.bytes, map.n };
	items[1] = (struct shard_item){ "cls", number, strlen(number) };
	assert_int_equal(shard_writer_add(w, number, items, 2, NULL), 0);
	file_map_close(&map);
}

static void make_shards(const char *dir)
{
	static const char *const names[SPLIT_COUNT][4] = { { "plain.jpg", "photo.jpg", "photo.png", "noise.png" },
							   { "grey.jpg", "grey.png" } };

	for (int s = 0; s < SPLIT_COUNT; s++) {
		const struct shard_writer_opts o = { .folder = dir,
						     .part = split_name((enum split)s),
						     .shard_bytes = 30000 };
		struct shard_writer *w = shard_writer_new(&o);

		for (int i = 0; i < 4 && names[s][i]; i++)
			add_picture(w, i, names[s][i]);
		assert_int_equal(shard_writer_end(w, NULL), 0);
		shard_writer_free(w);
	}
}

static void make_text(const char *dir)
{
	FILE *f = create(dir, "story.txt");

	for (int line = 0; line < 40; line++)
		fprintf(f, "line %d of a text that is long enough\n", line);
	fclose(f);
}

/* A file that h5py wrote. */
static void make_hdf5(const char *dir)
{
	const char *source = getenv("srcdir");

	run("cp %s/tests/data/formats/hdf5/groups.h5 %s", source ? source : ".", dir);
}

static void make_tokens(const char *dir)
{
	static const char *const names[] = { "train", "val" };
	int32_t tokens[TOKENS];

	for (int i = 0; i < TOKENS; i++)
		tokens[i] = i * 7 % 90;
	for (int s = 0; s < SPLIT_COUNT; s++) {
		struct token_writer *w;
		char path[400];

		snprintf(path, sizeof(path), "%s/%s" TOKEN_FILE_SUFFIX, dir, names[s]);
		assert_int_equal(token_writer_open(&w, &(struct token_writer_opts){ path, "bytes", 90, -1 }, NULL), 0);
		assert_int_equal(token_writer_add(w, tokens, TOKENS - (size_t)s * 100, NULL), 0);
		assert_int_equal(token_writer_commit(w, NULL), 0);
		token_writer_close(w);
	}
}

/* With a tokenizer of bytes beside the folder. */
static void make_chat(const char *dir)
{
	const char *src = getenv("srcdir");
	FILE *f = create(dir, "messages.jsonl");

	for (int i = 0; i < 12; i++)
		fprintf(f,
			"{\"messages\": [{\"role\": \"user\", \"content\": \"%d?\"}, "
			"{\"role\": \"assistant\", \"content\": \"%d!\"}]}\n",
			i, i * i);
	fclose(f);
	run("mkdir %s" TOKENIZER
	    " && cd %s/tests/data/texts && python3 -B -c \"import small_tokenizer; small_tokenizer."
	    "write_tokenizer('%s" TOKENIZER "', [], ['<|im_start|>', '<|im_end|>'], eos_token='<|im_end|>')\"",
	    dir, src ? src : ".", dir);
}

/* Fills an empty folder with a small set of the format. */
static void (*const makers[FORMATS_COUNT])(const char *dir) = {
	[FORMATS_cifar] = make_cifar, [FORMATS_folder] = make_folder, [FORMATS_idx] = make_idx,
	[FORMATS_hdf5] = make_hdf5,   [FORMATS_chat] = make_chat,     [FORMATS_shards] = make_shards,
	[FORMATS_text] = make_text,   [FORMATS_tokens] = make_tokens,
};

static int open_set(struct dataset **ret, const char *dir, struct err *err)
{
	struct dataset_opts o = { .path = dir, .seq_len = 8, .image_size = SIDE, .val_share = 0.25, .strict = true };
	char tokenizer[400];

	snprintf(tokenizer, sizeof(tokenizer), "%s" TOKENIZER, dir);
	if (!access(tokenizer, F_OK)) {
		o.tokenizer = tokenizer;
		o.chat_template = "chatml";
		o.long_samples = DATASET_LONG_SPLIT;
	}
	return formats_open(ret, &o, err);
}

static size_t sample_bytes(const struct dataset *d)
{
	if (d->kind == SAMPLE_TOKENS)
		return 2 * (size_t)d->seq_len * sizeof(int32_t);
	return (size_t)d->height * (size_t)d->width * (size_t)d->channels * dtype_bytes(d->dtype) + sizeof(int32_t);
}

/* Reads a sample as bytes: pixels or tokens, then the label or the targets. */
static int read_sample(const struct dataset *d, void *hand, enum split split, int64_t index, uint8_t *ret)
{
	size_t label = sample_bytes(d) - sizeof(int32_t);
	struct dataset_read r = { .split = split, .index = index, .hand = hand };
	int32_t number = -1;
	int rc;

	if (d->kind == SAMPLE_TOKENS) {
		r.tokens = (int32_t *)(void *)ret;
		r.targets = r.tokens + d->seq_len;
		return dataset_read(d, &r, NULL);
	}
	r.pixels = ret;
	r.label = &number;
	rc = dataset_read(d, &r, NULL);
	memcpy(ret + label, &number, sizeof(number));
	return rc;
}

/* All samples of both splits, concatenated. */
struct reader {
	const struct dataset *d;
	uint8_t *bytes;
	int rc;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	uint8_t *at = r->bytes;
	void *hand = r->d->ops->hand_new ? r->d->ops->hand_new() : NULL;

	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; !r->rc && i < r->d->n_samples[s]; i++, at += sample_bytes(r->d))
			r->rc = read_sample(r->d, hand, (enum split)s, i, at);
	if (hand)
		r->d->ops->hand_free(hand);
	return NULL;
}

static struct reader reader_of(const struct dataset *d)
{
	size_t n = (size_t)(d->n_samples[SPLIT_TRAIN] + d->n_samples[SPLIT_VAL]);
	struct reader r = { .d = d, .bytes = calloc(n, sample_bytes(d)) };

	assert_non_null(r.bytes);
	return r;
}

/* Two openings, and several threads of one, deliver the same bytes. */
static void check_same(const struct dataset *a, const struct dataset *b)
{
	size_t n = (size_t)(a->n_samples[SPLIT_TRAIN] + a->n_samples[SPLIT_VAL]) * sample_bytes(a);
	struct reader first = reader_of(a), all[THREADS];
	pthread_t threads[THREADS];

	read_all(&first);
	assert_int_equal(first.rc, 0);
	for (int t = 0; t < THREADS; t++) {
		all[t] = reader_of(t == 0 ? b : a);
		assert_int_equal(pthread_create(&threads[t], NULL, read_all, &all[t]), 0);
	}
	for (int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		assert_int_equal(all[t].rc, 0);
		assert_memory_equal(all[t].bytes, first.bytes, n);
		free(all[t].bytes);
	}
	free(first.bytes);
}

static void check_edges(const struct dataset *d)
{
	uint8_t *bytes = calloc(1, sample_bytes(d));

	for (int s = 0; s < SPLIT_COUNT; s++) {
		assert_true(d->n_samples[s] > 0);
		assert_int_equal(read_sample(d, NULL, (enum split)s, -1, bytes), ERR_USAGE);
		assert_int_equal(read_sample(d, NULL, (enum split)s, d->n_samples[s], bytes), ERR_USAGE);
		for (int64_t i = 0; d->ops->peek && i < d->n_samples[s]; i++) {
			assert_int_equal(read_sample(d, NULL, (enum split)s, i, bytes), 0);
			assert_memory_equal(d->ops->peek(d, (enum split)s, i), bytes,
					    sample_bytes(d) - sizeof(int32_t));
		}
		assert_true(dataset_weight(d, (enum split)s, 0) > 0);
	}
	free(bytes);
}

static char found[FILES_MAX][400];
static int n_found;

static int note_file(const char *path, const struct stat *st, int kind)
{
	(void)st;
	if (kind == FTW_F && !strstr(path, "/.dptrain/") && n_found < FILES_MAX)
		snprintf(found[n_found++], sizeof(found[0]), "%s", path);
	return 0;
}

/* Each file in turn loses its second half: one line with the folder's name reports it, or less is read. */
static void check_cut(const char *dir)
{
	n_found = 0;
	assert_int_equal(ftw(dir, note_file, 8), 0);
	for (int i = 0; i < n_found; i++) {
		struct err err = ERR_INIT;
		struct dataset *d = NULL;
		struct stat st;
		int rc;

		run("cp %s %s/kept", found[i], root);
		assert_int_equal(stat(found[i], &st), 0);
		assert_int_equal(truncate(found[i], st.st_size / 2), 0);
		rc = open_set(&d, dir, &err);
		if (rc && (rc != ERR_USAGE || !strstr(err.text, dir) || strchr(err.text, '\n')))
			fail_msg("%s cut: code %d, message: %s", found[i], rc, err.text);
		if (!rc) {
			struct reader r = reader_of(d);

			read_all(&r);
			assert_true(r.rc == 0 || r.rc == ERR_USAGE || r.rc == ERR_CORRUPT);
			free(r.bytes);
		}
		dataset_close(d);
		run("mv %s/kept %s", root, found[i]);
	}
}

static void every_format_keeps_its_guarantees(void **state)
{
	(void)state;
	for (int f = 0; f < FORMATS_COUNT; f++) {
		const struct dataset_ops *ops = formats_table[f];
		struct err err = ERR_INIT;
		struct dataset *a, *b;
		char dir[200];

		if (!ops->probe)
			continue;
		if (!makers[f])
			fail_msg("%s: no maker in tests/data/format_test.c", ops->name);
		snprintf(dir, sizeof(dir), "%s/%s", root, ops->name);
		assert_int_equal(mkdir(dir, 0777), 0);
		assert_false(ops->probe(dir));
		makers[f](dir);
		for (int g = 0; g < f; g++)
			assert_false(formats_table[g]->probe && formats_table[g]->probe(dir));
		assert_true(ops->probe(dir));
		if (open_set(&a, dir, &err) && strstr(err.text, "this build lacks"))
			continue;
		if (err.code || open_set(&b, dir, &err))
			fail_msg("%s: %s", ops->name, err.text);
		assert_string_not_equal(a->hash, "");
		assert_string_equal(a->hash, b->hash);
		check_same(a, b);
		check_edges(a);
		dataset_close(a);
		dataset_close(b);
		check_cut(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_format_keeps_its_guarantees) };
	int rc;

	if (!mkdtemp(root))
		return 1;
	rc = cmocka_run_group_tests_name("format", tests, NULL, NULL);
	run("rm -rf %s", root);
	return rc;
}
