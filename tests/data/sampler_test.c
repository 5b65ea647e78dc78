/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_test.c: the sampler's arithmetic compared with brute force: every sample once, contiguous parts in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/loader/sampler.h"

/* Deals positions out one by one, by the definition: larger parts first, micro-batches of `micro`. */
static void check_step(const struct sampler *s, int64_t step, int64_t begin, int64_t end)
{
	int64_t at = begin, n = end - begin, micros = 1;
	struct micro_shape shapes[SAMPLER_SHAPES_MAX];
	int n_shapes = sampler_shapes(s, shapes);

	for (int r = 0; r < s->world; r++) {
		int64_t part = n / s->world + (r < n % s->world), left = part, count = 0;

		assert_int_equal(sampler_part(s, step, r).begin, at);
		assert_int_equal(sampler_part(s, step, r).end, at + part);
		for (int64_t m = 0; m < sampler_micros(s, step); m++) {
			int64_t want = s->micro && left > s->micro ? s->micro : left;
			struct range got = sampler_micro(s, step, r, m);
			bool listed = false;

			assert_int_equal(got.begin, at);
			assert_int_equal(got.end - got.begin, want);
			for (int i = 0; i < n_shapes; i++)
				listed |= shapes[i].size == want &&
					  shapes[i].last == (m == sampler_micros(s, step) - 1);
			assert_true(listed);
			at += want;
			left -= want;
			count += want > 0;
		}
		assert_int_equal(left, 0);
		if (count > micros)
			micros = count;
	}
	assert_int_equal(at, end);
	assert_int_equal(sampler_micros(s, step), micros);
}

static void every_division(void **state)
{
	(void)state;
	for (int world = 1; world <= 5; world++)
		for (int64_t n = 1; n <= 40; n += n < 16 ? 1 : 7)
			for (int64_t global = 1; global <= 23; global++)
				for (int64_t micro = 0; micro <= 6; micro++) {
					struct sampler s = { .n_samples = n, .global_batch = global, .micro = micro,
							     .world = world };
					int64_t steps = (n + global - 1) / global;

					assert_int_equal(sampler_steps(&s), steps);
					for (int64_t k = 0; k < steps; k++)
						check_step(&s, k, k * global,
							   (k + 1) * global < n ? (k + 1) * global : n);
					s.drop_last = true;
					steps = n < global ? 1 : n / global;
					assert_int_equal(sampler_steps(&s), steps);
					for (int64_t k = 0; k < steps; k++)
						check_step(&s, k, k * global, n < global ? n : (k + 1) * global);
				}
}

/* The micro-batch of a rank: a number of complete leaves, or the short one alone. */
static int64_t leaves_at_once(const struct sampler *s, int64_t left, int64_t whole)
{
	const int64_t most = s->micro / s->leaf;

	return left < 1 ? 0 : whole < 1 ? 1 : whole < most ? whole : most;
}

/* The same leaves for every world size: of `leaf` samples, the last one shorter, dealt undivided, larger parts first.
 * */
static void check_leaves(const struct sampler *s, int64_t step, int64_t begin, int64_t end)
{
	int64_t all = (end - begin + s->leaf - 1) / s->leaf, at = begin, leaf = 0, most = 0;
	struct micro_shape shapes[SAMPLER_SHAPES_MAX];
	int n_shapes = sampler_shapes(s, shapes);

	for (int r = 0; r < s->world; r++) {
		struct reduction_tree own = sampler_leaves(s, step, r);
		int64_t made = 0, used = 0;

		assert_int_equal(own.first, leaf);
		assert_int_equal(own.n, all / s->world + (r < all % s->world));
		assert_int_equal(own.all, all);
		for (int64_t m = 0; m < sampler_micros(s, step); m++) {
			struct range got = sampler_micro(s, step, r, m);
			int64_t whole = (end - at) / s->leaf < own.n - made ? (end - at) / s->leaf : own.n - made;
			int64_t n = leaves_at_once(s, own.n - made, whole);
			int64_t want = end - at < n * s->leaf ? end - at : n * s->leaf;
			bool listed = false;

			assert_int_equal(got.end - got.begin, want);
			assert_int_equal(got.begin, at);
			for (int i = 0; i < n_shapes; i++)
				listed |= shapes[i].size == want &&
					  shapes[i].last == (m == sampler_micros(s, step) - 1);
			assert_true(listed);
			if (n)
				assert_int_equal(sampler_leaf(s, step, r, m), made);
			else
				assert_true(sampler_leaf(s, step, r, m) >= own.n);
			assert_true(sampler_leaf(s, step, r, m) >= m);
			at += want;
			made += n;
			used += n > 0;
		}
		assert_int_equal(made, own.n);
		most = used > most ? used : most;
		leaf += own.n;
	}
	assert_int_equal(at, end);
	assert_int_equal(leaf, all);
	assert_int_equal(sampler_micros(s, step), most);
}

static void leaves_are_the_same_for_every_world(void **state)
{
	(void)state;
	for (int world = 1; world <= 9; world++)
		for (int64_t n = 1; n <= 40; n += n < 16 ? 1 : 7)
			for (int64_t global = 1; global <= 23; global++)
				for (int64_t i = 0; i < 24; i++) {
					struct sampler s = { .n_samples = n, .global_batch = global, .leaf = 1 + i % 6,
							     .micro = (1 + i % 6) * (1 + i / 6), .world = world };

					for (int64_t k = 0; k * global < n; k++)
						check_leaves(&s, k, k * global,
							     (k + 1) * global < n ? (k + 1) * global : n);
				}
}

static void check_permutation(const struct sampler *s)
{
	struct order o;
	char *seen = calloc((size_t)s->n_samples, 1);

	order_init(&o, s);
	order_make(&o, s, 3);
	for (int64_t i = 0; i < s->n_samples; i++)
		seen[order_at(&o, s, i)]++;
	for (int64_t i = 0; i < s->n_samples; i++)
		assert_int_equal(seen[i], 1);
	for (int64_t i = 0; i < s->n_samples; i += 1 + s->n_samples / 3) { /* all candidates for a place differ */
		memset(seen, 0, (size_t)s->n_samples);
		for (int64_t k = 0; k <= order_others(&o, s, i); k++)
			assert_int_equal(seen[order_other(&o, s, i, k)]++, 0);
	}
	order_done(&o);
	free(seen);
}

static void order_is_a_permutation(void **state)
{
	(void)state;
	for (int64_t n = 1; n < 3000; n = n * 3 + 1) {
		for (int order = SAMPLER_NATURAL; order <= SAMPLER_WINDOW; order++)
			check_permutation(&(struct sampler){ .n_samples = n,
							     .global_batch = 7,
							     .world = 2,
							     .seed = 5,
							     .order = (enum sampler_order)order,
							     .window = 100 });
	}
}

/* Windows by their definition: lists of lanes, filled position by position. */
static void window_by_lists(const struct sampler *s, int64_t *ret)
{
	int64_t *lane = malloc((size_t)s->n_samples * sizeof(*lane)), length[WINDOW_LANES] = { 0 }, taken[WINDOW_LANES];
	int64_t begin[WINDOW_LANES] = { 0 }, lanes = s->lanes ? s->lanes : WINDOW_LANES;

	for (int64_t p = 0; p < s->n_samples; p++) {
		lane[p] = p % s->global_batch * lanes / s->global_batch;
		length[lane[p]]++;
	}
	for (int l = 1; l < lanes; l++)
		begin[l] = begin[l - 1] + length[l - 1];
	memset(taken, 0, sizeof(taken));
	for (int64_t p = 0; p < s->n_samples; p++)
		ret[p] = begin[lane[p]] + taken[lane[p]]++;
	free(lane);
}

static void windows_mix_lanes(void **state)
{
	static const int64_t batches[] = { 1, 7, 32, 64, 100, 1000 };

	(void)state;
	for (int64_t n = 1; n < 9000; n = n * 3 + 1)
		for (size_t b = 0; b < sizeof(batches) / sizeof(*batches); b++) {
			const int lanes = b % 2 ? 3 : WINDOW_LANES;
			struct sampler s = { .n_samples = n, .global_batch = batches[b], .lanes = lanes };
			struct window w;
			int64_t *plain = malloc((size_t)n * sizeof(*plain)), steps = 1 + 50 / batches[b];
			char *seen = calloc((size_t)n, 1);

			window_by_lists(&s, plain);
			window_init(&w, &(struct window_opts){ .n = n, .global = s.global_batch, .window = 50,
							       .lanes = b % 2 ? 3 : 0,
							       .key = { 3, 4 } });
			for (int64_t p = 0; p < n; p++) {
				int64_t at = window_at(&w, p, 0), width = s.global_batch / lanes + 1;

				assert_in_range(at, 0, n - 1);
				assert_int_equal(seen[at]++, 0);
				assert_true(llabs(at - plain[p]) < steps * width);
				assert_int_equal(window_at(&w, p, window_lane(&w, p)), at);
			}
			free(seen);
			free(plain);
		}
}

static void order_of(struct sampler *s, int64_t epoch, int64_t *ret)
{
	struct order o;

	order_init(&o, s);
	order_make(&o, s, epoch);
	for (int64_t i = 0; i < s->n_samples; i++)
		ret[i] = order_at(&o, s, i);
	order_done(&o);
}

static void order_depends_on_seed_and_epoch_alone(void **state)
{
	enum { N = 500 };
	struct sampler s = { .n_samples = N, .global_batch = 7, .world = 1, .seed = 1, .order = SAMPLER_GLOBAL };
	int64_t a[N], b[N];

	(void)state;
	order_of(&s, 4, a);
	s.order = SAMPLER_TABLE;
	order_of(&s, 4, b);
	assert_memory_not_equal(a, b, sizeof(a));
	order_of(&s, 4, a);
	s.world = 5;
	s.global_batch = 64;
	order_of(&s, 4, b);
	assert_memory_equal(a, b, sizeof(a));
	order_of(&s, 5, b);
	assert_memory_not_equal(a, b, sizeof(a));
	s.seed = 2;
	order_of(&s, 4, b);
	assert_memory_not_equal(a, b, sizeof(a));
	s.order = SAMPLER_NATURAL;
	order_of(&s, 4, b);
	for (int i = 0; i < N; i++)
		assert_int_equal(b[i], i);
}

static void check_fair(enum sampler_order kind)
{
	enum { N = 6, EPOCHS = 6000 };
	struct sampler s = { .n_samples = N, .global_batch = 1, .world = 1, .seed = 9, .order = kind, .window = 6 };
	int64_t order[N];
	int count[N][N] = { { 0 } };
	double chi = 0, mean = (double)EPOCHS / N;

	for (int e = 0; e < EPOCHS; e++) {
		order_of(&s, e, order);
		for (int i = 0; i < N; i++)
			count[i][order[i]]++;
	}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			chi += (count[i][k] - mean) * (count[i][k] - mean) / mean;
	assert_true(chi < 60);
}

/* Over many epochs each sample is at each position about equally often: chi squared of 6x6 cells has 25 degrees of
 * freedom; 60 has a probability of 1e-4, and seeds are fixed. */
static void order_is_fair(void **state)
{
	(void)state;
	check_fair(SAMPLER_TABLE);
	check_fair(SAMPLER_GLOBAL);
	check_fair(SAMPLER_WINDOW);
}

/* Pearson's correlation of positions in two orders; positions are ranks. */
static double correlation(const int64_t *a, const int64_t *b, int n)
{
	double mean = (n - 1) / 2.0, sum = 0, square = 0;

	for (int i = 0; i < n; i++) {
		sum += ((double)a[i] - mean) * ((double)b[i] - mean);
		square += (i - mean) * (i - mean);
	}
	return sum / square;
}

static void places(struct sampler *s, uint64_t seed, int64_t epoch, int64_t *ret)
{
	int64_t *order = malloc((size_t)s->n_samples * sizeof(*order));

	s->seed = seed;
	order_of(s, epoch, order);
	for (int64_t i = 0; i < s->n_samples; i++)
		ret[order[i]] = i;
	free(order);
}

/* A sample's position is independent of its number, and of its position in another epoch or run. */
static void orders_are_unrelated(void **state)
{
	enum { N = 10000, SHARDS = 40 };
	static int64_t a[N], b[N], natural[N], piece[SHARDS + 1];

	(void)state;
	for (int64_t i = 0; i < N; i++)
		natural[i] = i;
	for (int i = 0; i <= SHARDS; i++)
		piece[i] = N * i / SHARDS;
	for (int order = SAMPLER_TABLE; order <= SAMPLER_WINDOW; order++)
		for (int global = 8; global <= 512; global *= 4) {
			struct sampler s = { .n_samples = N, .global_batch = global, .order = (enum sampler_order)order,
					     .window = 10000, .piece = piece, .n_pieces = SHARDS };

			places(&s, 1, 0, a);
			assert_true(fabs(correlation(a, natural, N)) < 0.05);
			places(&s, 1, 1, b);
			assert_true(fabs(correlation(a, b, N)) < 0.05);
			places(&s, 2, 0, b);
			assert_true(fabs(correlation(a, b, N)) < 0.05);
		}
}

/* Samples of lanes from which the rank takes no complete batch. */
static void the_last_batch_takes_from_other_lanes(void **state)
{
	static const struct {
		int64_t n, global;
		int world;
	} rows[] = { { 12000, 128, 4 }, { 1000, 96, 3 }, { 700, 24, 2 },
		     { 640, 64, 4 },	{ 50, 64, 2 },	 { 999, 100, 1 } };
	int64_t alone = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int rank = 0; rank < rows[i].world; rank++) {
			const struct sampler s = { .n_samples = rows[i].n, .global_batch = rows[i].global,
						   .world = rows[i].world, .order = SAMPLER_WINDOW, .window = 100 };
			bool own[WINDOW_LANES] = { false };

			for (int64_t step = 0; step < sampler_steps(&s); step++) {
				const struct range r = sampler_part(&s, step, rank);
				const bool whole = (step + 1) * s.global_batch <= s.n_samples || step == 0;

				for (int64_t at = r.begin; at < r.end; at++) {
					int64_t lane = window_lane_number(at % s.global_batch, s.global_batch, 0);

					own[lane] |= whole;
					assert_int_equal(sampler_is_alone(&s, rank, at), !own[lane]);
					alone += !own[lane];
				}
			}
		}
	assert_int_equal(alone, 48 + 26 + 2); /* from the first three rows */
}

/* Data that a run resumed at some step reads again, in blocks of neighbours as stores deliver them: the samples of one
 * window, and for each lane the block in which that window begins. */
static void a_restart_reads_one_window_again(void **state)
{
	enum { N = 300000, SHARDS = 116, WINDOW = 10000, BLOCK = 84, RESTARTS = 20 };
	static int64_t order[N], piece[SHARDS + 1];
	static bool needed[N / BLOCK + 1];
	struct sampler s = { .n_samples = N, .order = SAMPLER_WINDOW, .window = WINDOW, .piece = piece,
			     .n_pieces = SHARDS, .seed = 11 };

	(void)state;
	for (int i = 0; i <= SHARDS; i++)
		piece[i] = (int64_t)N * i / SHARDS;
	for (s.global_batch = 32; s.global_batch <= 512; s.global_batch *= 4) {
		order_of(&s, 3, order);
		for (int k = 0; k < RESTARTS; k++) {
			int64_t steps = N / s.global_batch, again = 0;
			int64_t done = (int64_t)rng_below((struct rng_key){ 5, 6 }, (uint64_t)k, (uint64_t)steps) *
				       s.global_batch;

			memset(needed, 0, sizeof(needed));
			for (int64_t p = done; p < N; p++)
				needed[order[p] / BLOCK] = true;
			for (int64_t p = 0; p < done; p++)
				again += needed[order[p] / BLOCK];
			/* here a shard ends within a block: one more block for each */
			assert_in_range(again, 0, WINDOW + (WINDOW_LANES + SHARDS) * BLOCK);
		}
	}
}

static void endless_order_repeats(void **state)
{
	struct sampler s = { .n_samples = 10, .global_batch = 7, .world = 3, .endless = true, .order = SAMPLER_TABLE };
	struct order o;
	int64_t next = 0;

	(void)state;
	order_init(&o, &s);
	order_make(&o, &s, 0);
	assert_true(sampler_steps(&s) == INT64_MAX);
	for (int64_t k = 0; k < 50; k++)
		for (int r = 0; r < 3; r++) {
			struct range p = sampler_part(&s, k, r);

			for (int64_t i = p.begin; i < p.end; i++)
				assert_int_equal(order_at(&o, &s, i), next++ % 10);
		}
	s.global_batch = INT64_C(1) << 30;
	assert_in_range(sampler_global(&s, INT64_C(1) << 50).begin, 0, 9);
	order_done(&o);
}

/* ---- mixes ---- */

/* Parts of these sizes, drawn with these weights, over this many epochs of E samples. */
static void check_mix(const uint32_t *weight, const int64_t *n, int parts, int64_t epoch_samples, int64_t places)
{
	struct dataset_part part[8];
	struct sampler s = { .n_samples = epoch_samples, .global_batch = 8, .world = 1, .seed = 5,
			     .order = SAMPLER_MIX, .part = part, .n_parts = parts };
	int64_t first = 0, drawn[8] = { 0 }, sum = 0;
	uint8_t *seen;
	struct order o;

	for (int i = 0; i < parts; first += n[i], sum += weight[i++])
		part[i] = (struct dataset_part){ first, n[i], weight[i] };
	seen = calloc((size_t)first, 1);
	order_init(&o, &s);
	for (int64_t p = 0; p < places; p++) {
		int64_t at;
		int i = 0;

		order_make(&o, &s, p / epoch_samples);
		at = order_at(&o, &s, p % epoch_samples);
		while (at >= part[i].first + part[i].n)
			i++;
		/* Within its epoch, each sample once. */
		assert_int_equal(seen[at], drawn[i] / n[i] % 2);
		seen[at] ^= 1;
		drawn[i]++;
		for (int k = 0; k < parts; k++)
			if (llabs(drawn[k] * sum - (p + 1) * weight[k]) >= sum)
				fail_msg("after %lld places part %d has %lld", (long long)p + 1, k,
					 (long long)drawn[k]);
	}
	order_done(&o);
	free(seen);
}

static void mixes_keep_their_weights_in_every_prefix(void **state)
{
	static const int64_t n[] = { 1000, 37, 5, 1, 70000 };
	uint32_t w[MIX_PARTS_MAX];
	int parts;

	(void)state;
	assert_int_equal(mix_parse(w, &parts, "--mix", "0.7,0.3", NULL), 0);
	check_mix(w, n, parts, 1037, 1000000);
	assert_int_equal(mix_parse(w, &parts, "--mix", "0.4,0.3,0.17,0.129,0.001", NULL), 0);
	check_mix(w, n, parts, 12345, 1000000);
	assert_int_equal(mix_parse(w, &parts, "--mix", "1,1,1,1,1", NULL), 0);
	check_mix(w, n, parts, 100000, 100000);
	assert_int_equal(mix_parse(w, &parts, "--mix", "0.333333,0.333333,0.333334", NULL), 0);
	check_mix(w, n, parts, 1042, 200000);
	assert_int_equal(mix_parse(w, &parts, "--mix", "123456789,987654321.5", NULL), 0);
	check_mix(w, n, parts, 1042, 100000);
}

static void weights_are_parsed(void **state)
{
	static const char *const bad[] = { "", "1,", ",1", "1,,2", "0,1", "-1,2", "1;2", "1.2.3", "0.0000001,1",
					   "1e3,1", "1 ,2", "99999999999999999999,1" };
	uint32_t w[MIX_PARTS_MAX];
	struct err err = ERR_INIT;
	int n = 0;

	(void)state;
	assert_int_equal(mix_parse(w, &n, "--mix", "0.50,0.25,0.25", NULL), 0);
	assert_true(n == 3 && w[0] == 2 && w[1] == 1 && w[2] == 1);
	assert_int_equal(mix_parse(w, &n, "--mix", "3", NULL), 0);
	assert_true(n == 1 && w[0] == 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (mix_parse(w, &n, "--mix", bad[i], &err) != ERR_USAGE)
			fail_msg("'%s' was accepted", bad[i]);
}

static int compare_samples(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* torchvision's references/classification/sampler.py: each sample `repeats` times, dealt to the ranks in turn; a rank
 * stops after its share of N, rounded down to a multiple of 256. Its step has `batch` samples of each rank. */
static void check_repeats(struct sampler s, int64_t batch)
{
	const int64_t share = s.n_samples / 256 * 256 / s.world;
	struct sampler plain = s;
	struct order order;

	plain.repeats = 0;
	s.global_batch = batch * s.world;
	order_init(&order, &s);
	order_make(&order, &s, 2);
	assert_int_equal(sampler_steps(&s), (share + batch - 1) / batch);
	for (int64_t step = 0; step < sampler_steps(&s); step++) {
		const struct range r = sampler_global(&s, step);
		int64_t want[512], got[512], n = 0;

		for (int rank = 0; rank < s.world; rank++)
			for (int64_t j = step * batch; j < (step + 1) * batch && j < share; j++)
				want[n++] = order_at(&order, &plain, (rank + s.world * j) / s.repeats);
		assert_int_equal(r.end - r.begin, n);
		for (int64_t i = 0; i < n; i++) {
			got[i] = order_at(&order, &s, r.begin + i);
			assert_int_equal(sampler_repeat(&s, r.begin + i), (r.begin + i) % s.repeats);
		}
		qsort(want, (size_t)n, sizeof(*want), compare_samples);
		qsort(got, (size_t)n, sizeof(*got), compare_samples);
		assert_memory_equal(got, want, (size_t)n * sizeof(*got));
	}
	order_done(&order);
}

static void repeats_are_those_of_rasampler(void **state)
{
	static const enum sampler_order orders[] = { SAMPLER_NATURAL, SAMPLER_TABLE, SAMPLER_GLOBAL };

	(void)state;
	for (int64_t n = 256; n <= 1100; n += 211)
		for (int world = 1; world <= 4; world *= 2)
			for (int64_t repeats = 1; repeats <= 4; repeats++)
				for (int k = 0; k < 3; k++)
					check_repeats((struct sampler){ .n_samples = n, .world = world, .seed = 4,
									.order = orders[k], .repeats = repeats },
						      17 * k + 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_division),
		cmocka_unit_test(leaves_are_the_same_for_every_world),
		cmocka_unit_test(order_is_a_permutation),
		cmocka_unit_test(order_depends_on_seed_and_epoch_alone),
		cmocka_unit_test(order_is_fair),
		cmocka_unit_test(orders_are_unrelated),
		cmocka_unit_test(windows_mix_lanes),
		cmocka_unit_test(the_last_batch_takes_from_other_lanes),
		cmocka_unit_test(a_restart_reads_one_window_again),
		cmocka_unit_test(endless_order_repeats),
		cmocka_unit_test(repeats_are_those_of_rasampler),
		cmocka_unit_test(mixes_keep_their_weights_in_every_prefix),
		cmocka_unit_test(weights_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
