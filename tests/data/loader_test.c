/* SPDX-License-Identifier: Apache-2.0 */
/* loader_test.c: what the loader delivers, compared with the definition, for every number of workers and ranks; and how
 * it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/data/idx_make.h"
#include "tracker/base/buf.h"
#include "tracker/base/clock.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/synthetic.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/pictures/pixels.h"

#define N_TRAIN 53
#define SIDE 9
#define EACH (SIDE * SIDE)

static char dir[64];
static struct dataset *set;

static struct loader_opts opts(int world, int rank, int workers)
{
	return (struct loader_opts){ .dataset = set,
				     .sampler = { .n_samples = N_TRAIN, .global_batch = 12, .world = world, .seed = 3,
						  .order = SAMPLER_TABLE },
				     .rank = rank,
				     .dtype = DTYPE_F32,
				     .workers = workers,
				     .helpers = workers - 1, /* none for 0 or 1 */
				     .epochs = 3 };
}

static struct loader *opened(const struct loader_opts *o)
{
	struct loader *l = NULL;
	struct err err = ERR_INIT;

	if (loader_open(&l, o, &err))
		fail_msg("%s", err.text);
	return l;
}

static bool vary; /* the number of workers changes at every step */

/* Everything that all ranks receive, concatenated step by step. */
static void collect(struct loader_opts o, struct buf *out)
{
	struct loader *l[8];
	int64_t steps = sampler_steps(&o.sampler);

	buf_init(out, 1 << 26);
	for (int r = 0; r < o.sampler.world; r++) {
		o.rank = r;
		l[r] = opened(&o);
	}
	for (int64_t k = o.first_step; k < steps * o.epochs; k++)
		for (int r = 0; r < o.sampler.world; r++) {
			struct loader_batch b = { .n_micro = 1 };

			if (vary)
				loader_set_active(l[r], (int)(k % (o.workers + 1)));
			for (int64_t m = 0; m < b.n_micro; m++) {
				assert_int_equal(loader_next(l[r], &b, NULL), 1);
				assert_int_equal(b.step, k % steps);
				assert_int_equal(b.epoch, o.first_epoch + k / steps);
				assert_int_equal(b.micro, m);
				assert_int_equal((uintptr_t)b.inputs % 64, 0);
				buf_add(out, b.inputs, (size_t)b.count * EACH * dtype_bytes(o.dtype));
				buf_add(out, b.targets,
					(size_t)(b.count * (mixup_is_on(&o.mixup) ? 2 : 1)) * sizeof(int32_t) *
						(size_t)(o.sampler.micro == 0));
				loader_release(l[r], &b);
			}
		}
	for (int r = 0; r < o.sampler.world; r++) {
		struct loader_batch b;

		assert_int_equal(loader_next(l[r], &b, NULL), 0);
		loader_close(l[r]);
	}
	assert_false(buf_failed(out));
}

static void values_are_normalised_pixels(void **state)
{
	(void)state;
	for (int f64 = 0; f64 < 2; f64++) {
		struct loader_opts o = opts(1, 0, 2);
		struct loader *l;
		struct loader_batch b;
		struct order order;
		int64_t at = 0;

		o.dtype = f64 ? DTYPE_F64 : DTYPE_F32;
		l = opened(&o);
		order_init(&order, &o.sampler);
		while (loader_next(l, &b, NULL) == 1) {
			order_make(&order, &o.sampler, b.epoch);
			at = b.step * 12;
			assert_int_equal(b.global_count, b.step < 4 ? 12 : 5);
			for (int64_t i = 0; i < b.count * EACH; i++) {
				int sample = (int)order_at(&order, &o.sampler, at + i / EACH);
				double want = (idx_pixel(0, sample, (int)(i % EACH)) / 255.0 - set->mean[0]) /
					set->std[0];

				if (f64)
					assert_true(((const double *)b.inputs)[i] == want);
				else
					assert_true(((const float *)b.inputs)[i] == (float)want);
				assert_int_equal(b.targets[i / EACH], idx_label(0, sample));
			}
			loader_release(l, &b);
		}
		order_done(&order);
		loader_close(l);
	}
}

/* A run may set its own normalisation; the set keeps the one it was opened with. */
static void normalises_as_configured(void **state)
{
	const struct dataset_norm before = dataset_norm(set), asked = { .mean = { 0.25 }, .std = { 0.5 } };
	struct loader_opts o = opts(1, 0, 2);
	struct loader_batch b;
	struct order order;
	struct loader *l;

	(void)state;
	o.norm = &asked;
	o.dtype = DTYPE_F64;
	l = opened(&o);
	order_init(&order, &o.sampler);
	order_make(&order, &o.sampler, 0);
	assert_int_equal(loader_next(l, &b, NULL), 1);
	for (int64_t i = 0; i < b.count * EACH; i++) {
		int sample = (int)order_at(&order, &o.sampler, i / EACH);

		assert_true(((const double *)b.inputs)[i] == (idx_pixel(0, sample, (int)(i % EACH)) / 255.0 - 0.25) /
			    0.5);
	}
	loader_release(l, &b);
	loader_close(l);
	order_done(&order);
	assert_true(set->mean[0] == before.mean[0] && set->std[0] == before.std[0] && before.mean[0] != 0.25);
}

static void same_for_any_workers_and_ranks(void **state)
{
	(void)state;
	for (unsigned augment = 0; augment <= 3; augment++) {
		struct loader_opts o = opts(1, 0, 0);
		struct buf want, got;

		o.augment = augment;
		o.sampler.micro = 1; /* images alone: labels follow in values_are_normalised_pixels */
		collect(o, &want);
		for (int world = 1; world <= 5; world += world == 3 ? 2 : 1)
			for (int workers = 0; workers <= 3; workers++)
				for (int64_t micro = 1; micro <= 5; micro += 2) {
					o = opts(world, 0, workers);
					o.augment = augment;
					o.sampler.micro = micro;
					vary = micro == 3;
					collect(o, &got);
					vary = false;
					assert_int_equal(got.len, want.len);
					assert_memory_equal(got.data, want.data, want.len);
					buf_done(&got);
				}
		buf_done(&want);
	}
}

/* Draws and partners depend on the position in the epoch alone. */
static void recipes_are_the_same_for_any_ranks(void **state)
{
	static const struct loader_opts recipes[] = {
		{ .mixup = { 0.2, 0 } },		{ .mixup = { 0, 1 } },
		{ .mixup = { 0.2, 1 } },		{ .auto_augment = AUGMENT_RA },
		{ .auto_augment = AUGMENT_TA_WIDE },	{ .random_erase = 0.5 },
		{ .sampler.repeats = 3 },
		{ .mixup = { 0.8, 1 }, .auto_augment = AUGMENT_RA, .random_erase = 0.3, .sampler.repeats = 2,
		  .augment = DATASET_CROP | DATASET_FLIP },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(recipes) / sizeof(*recipes); k++) {
		struct buf want = { 0 }, plain = { 0 }, got;

		for (int world = 1; world <= 5; world += 2)
			for (int64_t micro = 1; micro <= 4; micro += 3) {
				struct loader_opts o = opts(world, 0, world - 1);

				o.sampler.micro = micro;
				if (world == 1 && micro == 1)
					collect(o, &plain);
				o.mixup = recipes[k].mixup;
				o.auto_augment = recipes[k].auto_augment;
				o.random_erase = recipes[k].random_erase;
				o.sampler.repeats = recipes[k].sampler.repeats;
				o.augment = recipes[k].augment;
				collect(o, world == 1 && micro == 1 ? &want : &got);
				if (world == 1 && micro == 1)
					continue;
				assert_int_equal(got.len, want.len);
				assert_memory_equal(got.data, want.data, want.len);
				buf_done(&got);
			}
		assert_int_equal(plain.len, want.len);
		assert_memory_not_equal(plain.data, want.data, want.len);
		buf_done(&plain);
		buf_done(&want);
	}
}

/* The first sample's partner is the last one of the global batch, which another rank has. */
static void mixes_with_the_sample_before(void **state)
{
	for (int world = 1; world <= 3; world++)
		for (int rank = 0; rank < world; rank++) {
			struct loader_opts o = opts(world, rank, 1);
			struct loader_batch b;
			struct order order;
			struct loader *l;

			(void)state;
			o.dtype = DTYPE_F64;
			o.mixup.mixup_alpha = 0.7;
			l = opened(&o);
			order_init(&order, &o.sampler);
			while (loader_next(l, &b, NULL) == 1) {
				const struct range global = sampler_global(&o.sampler, b.step),
						   own = sampler_part(&o.sampler, b.step, rank);

				order_make(&order, &o.sampler, b.epoch);
				assert_true(b.label_weight >= 0 && b.label_weight <= 1);
				for (int64_t i = 0; i < b.count * EACH; i++) {
					const int64_t at = own.begin + i / EACH;
					const int64_t before = at > global.begin ? at - 1 : global.end - 1;
					const int a = (int)order_at(&order, &o.sampler, at),
						  c = (int)order_at(&order, &o.sampler, before);
					const double mean = b.label_weight * idx_pixel(0, a, (int)(i % EACH)) +
							    (1 - b.label_weight) * idx_pixel(0, c, (int)(i % EACH));

					assert_true(fabs(((const double *)b.inputs)[i] -
							 (mean / 255.0 - set->mean[0]) / set->std[0]) < 1e-12);
					assert_int_equal(b.targets[2 * (i / EACH)], idx_label(0, a));
					assert_int_equal(b.targets[2 * (i / EACH) + 1], idx_label(0, c));
				}
				loader_release(l, &b);
			}
			order_done(&order);
			loader_close(l);
		}
}

static void starts_at_any_step(void **state)
{
	struct loader_opts o = opts(2, 0, 1);
	struct buf all, tail;

	(void)state;
	o.augment = DATASET_CROP | DATASET_FLIP;
	collect(o, &all);
	o.first_epoch = 1;
	o.first_step = 3;
	o.epochs = 2;
	collect(o, &tail);
	assert_true(tail.len > 0 && tail.len < all.len);
	assert_memory_equal(tail.data, all.data + all.len - tail.len, tail.len);
	buf_done(&all);
	buf_done(&tail);
}

/* Returns which of the 81 moves and 2 directions turned `from` into `to`, or -1. Written from the definition. */
static int which_move(const uint8_t *from, const uint8_t *to)
{
	for (int m = 0; m < 162; m++) {
		int dx = m % 9 - 4, dy = m / 9 % 9 - 4, flip = m / 81, same = 1;

		for (int y = 0; y < SIDE && same; y++)
			for (int x = 0; x < SIDE && same; x++) {
				int sx = (flip ? SIDE - 1 - x : x) - dx, sy = y - dy;
				int inside = sx >= 0 && sx < SIDE && sy >= 0 && sy < SIDE;

				same = to[y * SIDE + x] == (inside ? from[sy * SIDE + sx] : 0);
			}
		if (same)
			return m;
	}
	return -1;
}

/* All crops and flips are equally frequent: chi squared with 161 degrees of freedom has deviation 18; 260 is 5.5 of
 * them. */
static void crops_are_evenly_distributed(void **state)
{
	enum { DRAWS = 162 * 60 };
	int count[162] = { 0 };
	uint8_t from[EACH], to[EACH];
	double chi = 0;

	(void)state;
	for (int i = 0; i < EACH; i++)
		from[i] = (uint8_t)(i + 1);
	for (int i = 0; i < DRAWS; i++) {
		int m;

		pixels_move(set, augment_draw_move(augment_key(11, (uint64_t)i % 7, i / 7), true, true), from, to);
		m = which_move(from, to);
		assert_in_range(m, 0, 161);
		count[m]++;
	}
	for (int m = 0; m < 162; m++)
		chi += (count[m] - 60.0) * (count[m] - 60.0) / 60;
	assert_true(chi < 260);
}

static void augment_changes_with_the_epoch(void **state)
{
	int same = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		const struct rng_key a = augment_key(1, 0, i), b = augment_key(1, 1, i);
		struct augment_move x = augment_draw_move(a, true, true), y = augment_draw_move(b, true, true);

		same += x.dx == y.dx && x.dy == y.dy && x.flip == y.flip;
		assert_int_equal(augment_draw_move(a, false, true).dx, 0);
		assert_false(augment_draw_move(a, true, false).flip);
	}
	assert_in_range(same, 0, 25); /* 1000/162 = 6 expected */
}

static void evaluation_is_in_order(void **state)
{
	struct loader_opts o = { .dataset = set, .split = SPLIT_VAL, .rank = 1, .dtype = DTYPE_F32, .workers = 1,
				 .epochs = 1,
				 .sampler = { .n_samples = 7, .global_batch = 4, .world = 3 } };
	static const int counts[] = { 1, 1 }, first[] = { 2, 5 };
	struct loader *l = opened(&o);
	struct loader_batch b;
	int k = 0;

	(void)state;
	while (loader_next(l, &b, NULL) == 1) {
		assert_int_equal(b.count, counts[k]);
		assert_int_equal(b.targets[0], idx_label(1, first[k]));
		loader_release(l, &b);
		k++;
	}
	assert_int_equal(k, 2);
	loader_close(l);
}

static void empty_parts_are_delivered(void **state)
{
	struct loader_opts o = opts(5, 4, 1);
	struct loader *l;
	struct loader_batch b;
	int n = 0;

	(void)state;
	o.sampler.global_batch = 3;
	o.epochs = 1;
	l = opened(&o);
	while (loader_next(l, &b, NULL) == 1) {
		assert_int_equal(b.count, 0);
		assert_int_equal(b.global_count, n == 17 ? 2 : 3);
		loader_release(l, &b);
		n++;
	}
	assert_int_equal(n, 18);
	loader_close(l);
}

static void slots_are_returned_in_any_order(void **state)
{
	for (int workers = 0; workers < 3; workers++) {
		struct loader_opts o = opts(1, 0, workers);
		struct loader_batch b[3], last;
		struct err err = ERR_INIT;
		struct loader *l;
		void *memory = NULL;

		(void)state;
		o.slots = 3;
		assert_int_equal(loader_bytes(&o), 3 * ((12 * EACH * 4 + 63) / 64 * 64 + 64));
		assert_int_equal(posix_memalign(&memory, 64, loader_bytes(&o)), 0);
		o.memory = memory;
		l = opened(&o);
		for (int i = 0; i < 3; i++)
			assert_int_equal(loader_next(l, &b[i], NULL), 1);
		assert_int_equal(loader_next(l, &last, &err), ERR_BUSY);
		for (int k = 3; k < 15; k++) {
			loader_release(l, &b[k * 2 % 3]);
			assert_int_equal(loader_next(l, &b[k * 2 % 3], NULL), 1);
			assert_int_equal(b[k * 2 % 3].epoch * 5 + b[k * 2 % 3].step, k);
			assert_true((const char *)b[k * 2 % 3].inputs >= (char *)memory);
		}
		loader_close(l);
		free(memory);
	}
}

static void endless_and_plain_floats(void **state)
{
	double images[5 * 4];
	int32_t labels[5] = { 0, 1, 2, 3, 4 };
	struct dataset *d = NULL;
	struct loader_opts o = { .rank = 1, .dtype = DTYPE_F32, .workers = 2,
				 .sampler = { .n_samples = 5, .global_batch = 5, .world = 2, .endless = true } };
	struct loader *l;
	struct loader_batch b;

	(void)state;
	for (int i = 0; i < 20; i++)
		images[i] = i / 7.0;
	assert_int_equal(dataset_memory_open(&d,
					     &(struct dataset_memory_opts){ "m", images, labels, DTYPE_F64, 5, 2, 2, 1,
									    0 }, NULL), 0);
	o.dataset = d;
	l = opened(&o);
	for (int k = 0; k < 40; k++) {
		assert_int_equal(loader_next(l, &b, NULL), 1);
		assert_int_equal(b.step, k);
		assert_int_equal(b.count, 2);
		for (int i = 0; i < 8; i++)
			assert_true(((const float *)b.inputs)[i] == (float)images[12 + i]);
		assert_int_equal(b.targets[1], 4);
		loader_release(l, &b);
	}
	loader_close(l);
	o.augment = DATASET_FLIP;
	assert_int_equal(loader_open(&l, &o, NULL), ERR_USAGE);
	dataset_close(d);
}

/* A set whose sample 30 cannot be read. */
static int broken_read(const struct dataset *d, const struct dataset_read *r, struct err *err)
{
	memset(r->pixels, 0, pixels_count(d));
	*r->label = r->index == 41 ? 10 : 0;
	return r->index == 30 ? err_set(err, ERR_USAGE, "sample 30 is broken") : 0;
}

static void unreadable_files_are_named(void **state)
{
	static const struct dataset_ops ops = { .name = "broken", .read = broken_read };
	struct dataset d = *set;

	(void)state;
	d.ops = &ops;
	for (int workers = 0; workers < 3; workers++)
		for (int classes = 10; classes <= 11; classes++) {
			struct loader_opts o = opts(1, 0, workers);
			struct loader *l;
			struct loader_batch b;
			struct err err = ERR_INIT;
			int rc, n = 0;

			o.dataset = &d;
			d.classes = classes;
			o.sampler.order = SAMPLER_NATURAL;
			o.first_step = classes == 10 ? 3 : 0; /* from sample 36 on: 41 comes first */
			l = opened(&o);
			while ((rc = loader_next(l, &b, &err)) == 1) {
				loader_release(l, &b);
				n++;
			}
			assert_int_equal(rc, ERR_USAGE);
			assert_int_equal(n, classes == 10 ? 0 : 2);
			assert_non_null(strstr(err.text,
					       classes == 10 ? "label 10 of train sample 41: must be below 10 classes" :
									 "sample 30 is broken"));
			assert_int_equal(loader_next(l, &b, &err), ERR_USAGE);
			loader_close(l);
		}
}

static const struct dataset_ops *own_ops;

static int read_slowly(const struct dataset *d, const struct dataset_read *r, struct err *err)
{
	clock_sleep_s(0.002);
	return own_ops->read(d, r, err);
}

static void waits_for_a_slow_disk_are_counted(void **state)
{
	struct dataset_ops slow = *set->ops;

	(void)state;
	own_ops = set->ops;
	slow.read = read_slowly;
	set->ops = &slow;
	for (int workers = 0; workers < 2; workers++) {
		struct loader_opts o = opts(1, 0, workers);
		struct loader *l = opened(&o);
		struct loader_batch b;
		double sum = 0;

		for (int i = 0; i < 5; i++) {
			assert_int_equal(loader_next(l, &b, NULL), 1);
			sum += b.wait_s;
			loader_release(l, &b);
		}
		assert_true(sum > 0.04);
		loader_close(l);
	}
	set->ops = own_ops;
}

/* Workers block all signals, which the rest of the program handles. */
static void workers_block_signals(void **state)
{
	struct loader_opts o = opts(1, 0, 3);
	struct loader *l = opened(&o);
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	(void)state;
	assert_non_null(tasks);
	while ((e = readdir(tasks))) {
		char path[300], line[200];
		unsigned long long blocked = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%.200s/status", e->d_name);
		f = e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == getpid() ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			sscanf(line, "SigBlk: %llx", &blocked);
		if (f) {
			fclose(f);
			n += blocked >> (SIGINT - 1) & blocked >> (SIGTERM - 1) & blocked >> (SIGUSR1 - 1) & 1;
		}
	}
	closedir(tasks);
	loader_close(l);
	assert_true(n >= 3);
}

/* One loader for several evaluations: the same batches each time, and nothing is read before it is requested. */
static void starts_again(void **state)
{
	(void)state;
	for (int workers = 0; workers <= 2; workers++) {
		struct loader_opts o = opts(1, 0, workers);
		struct loader_batch b;
		struct loader *l;
		struct buf first, again;

		o.epochs = 1;
		o.resting = true;
		l = opened(&o);
		assert_int_equal(loader_next(l, &b, NULL), 0);
		buf_init(&first, 1 << 26);
		for (int round = 0; round < 3; round++) {
			loader_rewind(l);
			buf_init(&again, 1 << 26);
			while (loader_next(l, &b, NULL) == 1) {
				assert_int_equal(b.epoch, o.first_epoch);
				buf_add(round ? &again : &first, b.inputs,
					(size_t)b.count * EACH * dtype_bytes(o.dtype));
				loader_release(l, &b);
			}
			assert_true(first.len > 0);
			assert_int_equal(round ? again.len : first.len, first.len);
			assert_memory_equal(round ? again.data : first.data, first.data, first.len);
			buf_done(&again);
		}
		buf_done(&first);
		loader_close(l);
	}
}

/* A set with one sample that never arrives. */
#define STUCK 9

static _Atomic bool reader_waits;

static int read_or_wait(const struct dataset *d, const struct dataset_read *r, struct err *err)
{
	float *pixels = r->pixels;

	(void)d;
	for (; r->index == STUCK; clock_sleep_s(0.001)) {
		reader_waits = true;
		if (stop_asked(r->stop))
			return err_set(err, ERR_CANCELED, "the wait was cancelled");
	}
	*pixels = (float)r->index;
	*r->label = 1;
	return 0;
}

static bool once_reader_waits(void *user)
{
	(void)user;
	return reader_waits;
}

/* When the caller must stop, available batches are complete, and those that would have to be waited for are blank. */
static void does_not_wait_while_stopping(void **state)
{
	static const struct dataset_ops ops = { .name = "stuck", .read = read_or_wait };
	const struct dataset d = { .ops = &ops,
				   .path = "stuck",
				   .n_samples = { 24 },
				   .height = 1,
				   .width = 1,
				   .channels = 1,
				   .classes = 2,
				   .std = { 1 },
				   .dtype = DTYPE_F32 };
	const struct loader_opts o = { .dataset = &d,
				       .sampler = { .n_samples = 24, .global_batch = 4, .world = 1,
						    .order = SAMPLER_TABLE },
				       .split = SPLIT_TRAIN,
				       .dtype = DTYPE_F32,
				       .ends = once_reader_waits };

	(void)state;
	for (int workers = 0; workers <= 3; workers++) {
		struct loader_opts with = o;
		struct loader_batch b = { .blank = false };
		struct loader *l;
		int64_t first = 0;

		with.workers = workers;
		reader_waits = false;
		l = opened(&with);
		for (int k = 0; k < 12; k++) {
			const float *inputs;

			assert_int_equal(loader_next(l, &b, NULL), 1);
			assert_int_equal(b.epoch * 6 + b.step, k);
			inputs = b.inputs;
			for (int i = 0; b.blank && i < 4; i++)
				assert_true(inputs[i] == 0 && b.targets[i] == 0);
			for (int i = 0; !b.blank && i < 4; i++)
				assert_true(inputs[i] != STUCK && b.targets[i] == 1);
			first += !b.blank;
			loader_release(l, &b);
		}
		assert_true(b.blank && first < 6);
		loader_close(l);
	}
}

static void nonsense_is_refused(void **state)
{
	struct loader_opts o = opts(1, 0, 0);
	struct loader *l;

	(void)state;
	o.sampler.n_samples = 5;
	assert_int_equal(loader_open(&l, &o, NULL), ERR_USAGE);
	o = opts(2, 2, 0);
	assert_int_equal(loader_open(&l, &o, NULL), ERR_USAGE);
	o = opts(1, 0, 0);
	o.dtype = DTYPE_BF16;
	assert_int_equal(loader_open(&l, &o, NULL), ERR_UNSUPPORTED);
	o = opts(1, 0, 0);
	o.sampler.endless = true;
	o.sampler.global_batch = INT64_MAX / 8;
	assert_int_equal(loader_bytes(&o), 0);
	assert_int_equal(loader_open(&l, &o, NULL), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_normalised_pixels),
		cmocka_unit_test(normalises_as_configured),
		cmocka_unit_test(same_for_any_workers_and_ranks),
		cmocka_unit_test(recipes_are_the_same_for_any_ranks),
		cmocka_unit_test(mixes_with_the_sample_before),
		cmocka_unit_test(starts_at_any_step),
		cmocka_unit_test(crops_are_evenly_distributed),
		cmocka_unit_test(augment_changes_with_the_epoch),
		cmocka_unit_test(evaluation_is_in_order),
		cmocka_unit_test(empty_parts_are_delivered),
		cmocka_unit_test(slots_are_returned_in_any_order),
		cmocka_unit_test(endless_and_plain_floats),
		cmocka_unit_test(unreadable_files_are_named),
		cmocka_unit_test(waits_for_a_slow_disk_are_counted),
		cmocka_unit_test(workers_block_signals),
		cmocka_unit_test(starts_again),
		cmocka_unit_test(does_not_wait_while_stopping),
		cmocka_unit_test(nonsense_is_refused),
	};
	struct err err = ERR_INIT;
	int rc;

	snprintf(dir, sizeof(dir), "loader_test.%ld", (long)getpid());
	idx_make(&(struct idx_spec){ dir, { N_TRAIN, 7 }, SIDE, SIDE, 1, 0 });
	if (formats_open(&set, &(struct dataset_opts){ .path = dir }, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	dataset_close(set);
	idx_clean(dir);
	return rc;
}
