/* SPDX-License-Identifier: Apache-2.0 */
/* folder_test.c: folders of images and the CIFAR files: which files are samples of which class, the effect of broken
 * files, and that ranks and workers do not change what is delivered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trainer/data/formats/formats.h"
#include "trainer/data/loader/loader.h"

#define SIDE 24
#define PIXELS (SIDE * SIDE * 3)

static char root[] = "/tmp/dptrain-folder.XXXXXX";

static void run(const char *fmt, ...)
{
	char command[4000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

/* Makes the set "name": 9 images of class a, 7 of class b for training, 3 and 2 for validation. */
static const char *make_set(const char *name)
{
	static char path[300];
	const char *src = getenv("srcdir");

	snprintf(path, sizeof(path), "%s/%s", root, name);
	run("rm -rf %s && mkdir -p %s/train/a/deep %s/train/b %s/val/a %s/val/b", path, path, path, path, path);
	run("cd %s/tests/data/pictures && cp turned*.jpg photo.jpg plain.jpg %s/train/a && mv %s/train/a/photo.jpg "
	    "%s/train/a/deep", src ? src : ".", path, path, path);
	run("cd %s/tests/data/pictures && cp noise.png photo.png grey.png palette.png bits.png alpha.png deep.png "
	    "%s/train/b", src ? src : ".", path);
	run("cd %s/tests/data/pictures && cp turned2.jpg turned3.jpg cmyk.jpg %s/val/a && cp grey.jpg noise.png "
	    "%s/val/b", src ? src : ".", path, path);
	run("touch %s/train/a/notes.txt %s/train/a/.hidden.jpg; chmod -R u+w %s", path, path, path);
	return path;
}

static struct dataset *open_set(const char *path, bool strict)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	if (formats_open(&d,
			 &(struct dataset_opts){ .path = path, .image_size = SIDE, .val_share = 0.5, .strict = strict },
			 &err))
		fail_msg("%s", err.text);
	return d;
}

static void refused(const char *path, const char *words)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(formats_open(&d, &(struct dataset_opts){ .path = path, .image_size = SIDE }, &err), ERR_USAGE);
	if (!strstr(err.text, words))
		fail_msg("'%s' is not in '%s'", words, err.text);
}

static struct loader_opts opts_of(const struct dataset *d, enum split split, int world)
{
	return (struct loader_opts){ .dataset = d,
				     .split = split,
				     .sampler = { .n_samples = d->n_samples[split],
						  .global_batch = 6,
						  .micro = 6,
						  .world = world,
						  .seed = 5,
						  .order = split == SPLIT_TRAIN ? SAMPLER_TABLE : SAMPLER_NATURAL },
				     .dtype = DTYPE_F32,
				     .augment = split == SPLIT_TRAIN ? DATASET_RANDOM_BOX | DATASET_FLIP : 0,
				     .epochs = 2 };
}

/* Everything that `world` ranks with `workers` threads deliver in two epochs, in global order. The caller frees it. */
static float *deliver(const struct loader_opts *base, int workers, int32_t *labels, int64_t *ret_n)
{
	struct loader_opts o = *base;
	int64_t steps = 2 * sampler_steps(&o.sampler), n = 0, total = 2 * o.sampler.n_samples;
	struct loader *l[4];
	struct err err = ERR_INIT;
	float *images = malloc((size_t)total * PIXELS * sizeof(float));

	o.workers = workers;
	for (o.rank = 0; o.rank < o.sampler.world; o.rank++)
		assert_int_equal(loader_open(&l[o.rank], &o, &err), 0);
	for (int64_t s = 0; s < steps; s++)
		for (int r = 0; r < o.sampler.world; r++) {
			struct loader_batch b;

			if (loader_next(l[r], &b, &err) != 1)
				fail_msg("%s", err.text);
			memcpy(images + n * PIXELS, b.inputs, (size_t)b.count * PIXELS * sizeof(float));
			memcpy(labels + n, b.targets, (size_t)b.count * sizeof(*labels));
			n += b.count;
			loader_release(l[r], &b);
		}
	for (int r = 0; r < o.sampler.world; r++)
		loader_close(l[r]);
	*ret_n = n;
	return images;
}

static void same_for_any_ranks_and_workers(const struct dataset *d, enum split split)
{
	static const int shapes[][2] = { { 1, 0 }, { 1, 3 }, { 2, 1 }, { 3, 2 } };
	int32_t first_labels[100], labels[100];
	float *first = NULL;
	int64_t n;

	for (int i = 0; i < 4; i++) {
		struct loader_opts o = opts_of(d, split, shapes[i][0]);
		float *images = deliver(&o, shapes[i][1], labels, &n);

		assert_int_equal(n, 2 * d->n_samples[split]);
		if (!first) {
			first = images;
			memcpy(first_labels, labels, sizeof(labels));
			continue;
		}
		assert_memory_equal(labels, first_labels, (size_t)n * sizeof(*labels));
		assert_memory_equal(images, first, (size_t)n * PIXELS * sizeof(float));
		free(images);
	}
	free(first);
}

static void files_and_classes(void **state)
{
	const char *path = make_set("plain");
	struct dataset *d = open_set(path, false);
	int32_t labels[100];
	int64_t n, ones = 0;
	struct loader_opts o;
	float *images;

	(void)state;
	assert_int_equal(d->n_samples[SPLIT_TRAIN], 16);
	assert_int_equal(d->n_samples[SPLIT_VAL], 5);
	assert_int_equal(d->classes, 2);
	o = opts_of(d, SPLIT_TRAIN, 1);
	images = deliver(&o, 1, labels, &n);
	for (int64_t i = 0; i < n; i++)
		ones += labels[i];
	assert_int_equal(ones, 2 * 7);
	/* new random draws */
	assert_memory_not_equal(images, images + n / 2 * PIXELS, (size_t)n / 2 * PIXELS * sizeof(float));
	free(images);
	same_for_any_ranks_and_workers(d, SPLIT_TRAIN);
	same_for_any_ranks_and_workers(d, SPLIT_VAL);
	assert_int_equal(dataset_broken(d), 0);
	dataset_close(d);
}

static void broken_files(void **state)
{
	const char *path = make_set("broken");
	struct dataset *d;
	int32_t labels[100];
	char text[512];
	int64_t n, blank = 0, said = 0;
	struct loader_opts o;
	float *images;

	(void)state;
	run("head -c 900 %s/train/a/plain.jpg > %s/train/a/x && mv %s/train/a/x %s/train/a/plain.jpg", path, path, path,
	    path);
	run("rm %s/train/b/bits.png && mkfifo %s/train/b/bits.png", path, path);
	run("echo nothing > %s/train/b/grey.png; echo nothing > %s/val/a/turned3.jpg; rm %s/val/b/grey.jpg; "
	    "ln -s nowhere.jpg %s/val/b/grey.jpg", path, path, path, path);
	d = open_set(path, false);
	same_for_any_ranks_and_workers(d, SPLIT_TRAIN);
	o = opts_of(d, SPLIT_TRAIN, 1);
	images = deliver(&o, 1, labels, &n);
	free(images);
	for (int64_t i = 0; i < n; i++)
		assert_true(labels[i] >= 0);
	o = opts_of(d, SPLIT_VAL, 1);
	images = deliver(&o, 1, labels, &n);
	free(images);
	for (int64_t i = 0; i < n; i++)
		blank += labels[i] < 0;
	assert_int_equal(blank, 2); /* one in each of two epochs */
	assert_int_equal(dataset_broken(d), 3);
	/* The pipe, the dangling link and the text are no samples. */
	assert_int_equal(data_account_left(&d->account, DATA_ACCOUNT_FILES), 3);
	assert_int_equal(data_account_used(&d->account), 16 - 1 + 5 - 1);
	while (dataset_notice(d, text, sizeof(text)))
		said += strstr(text, "plain.jpg") || strstr(text, "turned3.jpg") || strstr(text, "grey.png");
	assert_int_equal(said, 3); /* each once, however often it was read */
	dataset_close(d);
}

static void strict_ends(void **state)
{
	const char *path = make_set("strict");
	struct dataset *d;
	struct loader *l;
	struct loader_batch b;
	struct loader_opts o;
	struct err err = ERR_INIT;
	int rc;

	(void)state;
	run("echo nothing > %s/train/b/grey.png", path);
	assert_int_equal(formats_open(&d, &(struct dataset_opts){ .path = path, .strict = true }, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "left out 1 file: not part of the set (.txt) (train/a/notes.txt)"));
	run("rm %s/train/a/notes.txt", path);
	err = (struct err)ERR_INIT;
	d = open_set(path, true);
	o = opts_of(d, SPLIT_TRAIN, 1);
	assert_int_equal(loader_open(&l, &o, &err), 0);
	while ((rc = loader_next(l, &b, &err)) == 1)
		loader_release(l, &b);
	assert_int_equal(rc, ERR_USAGE);
	assert_non_null(strstr(err.text, "grey.png"));
	loader_close(l);
	dataset_close(d);
}

static void refused_folders(void **state)
{
	const char *path = make_set("refused");
	char text[512];
	struct dataset *d;

	(void)state;
	run("mkdir %s/train/c", path);
	refused(path, "train/c: the class has no images");
	run("rmdir %s/train/c && mkdir %s/val/z", path, path);
	refused(path, "val/z: the class has no training images");
	run("rmdir %s/val/z && rm %s/val/b/*", path, path);
	d = open_set(path, false);
	assert_true(dataset_notice(d, text, sizeof(text)));
	assert_non_null(strstr(text, "no validation images of 1 of 2 classes (b)"));
	dataset_close(d);
}

/* Without train and val, files are split by their names: the same split when others are added. */
static void split_by_name(void **state)
{
	const char *path = make_set("dealt");
	struct dataset *d;
	int64_t train, val;

	(void)state;
	run("mv %s/train/a %s/train/b %s && rm -r %s/train %s/val", path, path, path, path, path);
	d = open_set(path, false);
	train = d->n_samples[SPLIT_TRAIN];
	val = d->n_samples[SPLIT_VAL];
	dataset_close(d);
	assert_int_equal(train + val, 16);
	assert_true(val >= 3 && val <= 13);
	run("mkdir %s/c && cp %s/b/noise.png %s/c/one.png && cp %s/b/noise.png %s/c/two.png", path, path, path, path,
	    path);
	d = open_set(path, false);
	assert_true(d->n_samples[SPLIT_TRAIN] - train >= 0 && d->n_samples[SPLIT_TRAIN] - train <= 2);
	assert_int_equal(d->n_samples[SPLIT_TRAIN] + d->n_samples[SPLIT_VAL], 18);
	dataset_close(d);
}

static uint8_t cifar_byte(int file, int record, int at)
{
	return (uint8_t)(file * 31 + record * 7 + at * 13 + at / 1024);
}

/* Makes five files of `records` records and a test file of two, as the archive has them. */
static void make_cifar(const char *dir, int records)
{
	for (int file = 0; file < 6; file++) {
		char path[400];
		FILE *f;

		snprintf(path, sizeof(path), file < 5 ? "%s/data_batch_%d.bin" : "%s/test_batch.bin", dir, file + 1);
		f = fopen(path, "wb");
		assert_non_null(f);
		for (int r = 0; r < (file < 5 ? records : 2); r++) {
			fputc((file + r) % 10, f);
			for (int i = 0; i < 3072; i++)
				fputc(cifar_byte(file, r, i), f);
		}
		fclose(f);
	}
}

static void check_cifar(const char *dir, int records)
{
	uint8_t pixels[3072];
	int32_t label;
	struct err err = ERR_INIT;
	struct dataset *d = NULL;

	if (formats_open(&d, &(struct dataset_opts){ .path = dir }, &err))
		fail_msg("%s", err.text);
	assert_int_equal(d->n_samples[SPLIT_TRAIN], 5 * records);
	assert_int_equal(d->n_samples[SPLIT_VAL], 2);
	assert_int_equal(d->classes, 10);
	for (int64_t i = 0; i < 5 * records + 2; i++) {
		bool train = i < 5 * records;
		int file = train ? (int)i / records : 5, record = train ? (int)i % records : (int)i - 5 * records;
		struct dataset_read r = { .split = train ? SPLIT_TRAIN : SPLIT_VAL,
					  .index = train ? i : record,
					  .pixels = pixels,
					  .label = &label };

		assert_int_equal(dataset_read(d, &r, &err), 0);
		assert_int_equal(label, (file + record) % 10);
		for (int at = 0; at < 3072; at++)
			assert_int_equal(pixels[at % 1024 * 3 + at / 1024], cifar_byte(file, record, at));
	}
	dataset_close(d);
}

static void cifar_files_and_archive(void **state)
{
	char dir[300];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/cifar", root);
	run("mkdir -p %s/cifar-10-batches-bin", dir);
	make_cifar(dir, 3);
	check_cifar(dir, 3);
	run("cd %s && mv *.bin cifar-10-batches-bin && tar czf cifar-10-binary.tar.gz cifar-10-batches-bin && rm -r "
	    "cifar-10-batches-bin", dir);
	check_cifar(dir, 3);
	run("cd %s && head -c $(($(stat -c %%s cifar-10-binary.tar.gz) / 2)) cifar-10-binary.tar.gz > x && mv x "
	    "cifar-10-binary.tar.gz", dir);
	refused(dir, "cifar-10-binary.tar.gz: truncated: its gzip data stops after");
	run("cd %s && rm *.gz", dir);
	make_cifar(dir, 1);
	run("rm %s/data_batch_4.bin", dir);
	refused(dir, "data_batch_4.bin is missing");
	run("head -c 3000 %s/data_batch_1.bin > %s/data_batch_4.bin", dir, dir);
	refused(dir, "data_batch_4.bin: 3000 bytes");
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	run("rm -rf %s", root);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_and_classes), cmocka_unit_test(broken_files),
		cmocka_unit_test(strict_ends),	     cmocka_unit_test(refused_folders),
		cmocka_unit_test(split_by_name),     cmocka_unit_test(cifar_files_and_archive),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
