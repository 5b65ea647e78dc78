/* SPDX-License-Identifier: Apache-2.0 */
/* leaves_test.c: sums along the tree of leaves: for any distribution of leaves, the sum equals the definition, written
 * as text with brackets; and exact sums compared with integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/comm/sum.h"
#include "trainer/graph/reduction_tree.h"
#include "trainer/ops/norm/exact.h"

#define TEXT 1024
#define MOST 41

/* The definition: the left part has as many leaves as the largest power of two below n. */
static int define(char *to, int first, int n)
{
	int left = 1, at = 1;

	if (n == 1)
		return snprintf(to, TEXT, "%d", first);
	while (left * 2 < n)
		left *= 2;
	to[0] = '(';
	at += define(to + at, first, left);
	to[at++] = '+';
	at += define(to + at, first + left, n - left);
	to[at++] = ')';
	to[at] = '\0';
	return at;
}

/* A rank's terms, as texts. */
struct rank {
	char term[REDUCTION_TREE_ROOTS_MAX][TEXT];
	int n;
};

static void join(char *left, const char *right)
{
	char text[2 * TEXT + 8];

	snprintf(text, sizeof(text), "(%s+%s)", left, right);
	assert_true(strlen(text) < TEXT);
	memcpy(left, text, TEXT);
}

static void push(struct rank *r, const struct reduction_tree *l, int64_t leaf, int room)
{
	const int merges = reduction_tree_merges(l->first, leaf);

	snprintf(r->term[r->n++], TEXT, "%d", (int)leaf);
	for (int i = 0; i < merges; i++) {
		join(r->term[r->n - 2], r->term[r->n - 1]);
		r->n--;
	}
	assert_int_equal(r->n, reduction_tree_roots(l->first, leaf + 1 - l->first, NULL));
	assert_true(r->n <= room);
}

static void add_up(char *ret, const struct rank *ranks, const uint8_t *adds, int world)
{
	static char stack[REDUCTION_TREE_ROOTS_MAX][TEXT];
	int top = 0, term = 0;

	for (int r = 0; r < world; r++)
		for (int k = 0; k < ranks[r].n; k++, term++) {
			memcpy(stack[top++], ranks[r].term[k], TEXT);
			for (int i = 0; i < adds[term]; i++, top--)
				join(stack[top - 2], stack[top - 1]);
		}
	assert_int_equal(top, 1);
	memcpy(ret, stack[0], TEXT);
}

/* The remaining terms of a run when they are added without the others. */
static void fold_run(struct rank *ret, const struct rank *ranks, int all, int world, struct reduction_tree_run run)
{
	uint8_t adds[MOST * REDUCTION_TREE_ROOTS_MAX];
	int begin[REDUCTION_TREE_ROOTS_MAX + 1], roots = reduction_tree_order_run(adds, begin, all, world, run), at = 0;

	for (ret->n = 0; ret->n < roots; ret->n++) {
		struct rank own = { .n = 0 };

		for (int r = run.first, term = 0; r < run.first + run.n; r++)
			for (int k = 0; k < ranks[r].n; k++, term++)
				if (term >= begin[ret->n] && term < begin[ret->n + 1])
					memcpy(own.term[own.n++], ranks[r].term[k], TEXT);
		assert_int_equal(begin[ret->n], at);
		at = begin[ret->n + 1];
		add_up(ret->term[ret->n], &own, adds + begin[ret->n], 1);
	}
}

/* Ranks divided into runs of `each`. */
static void check_runs(const char *want, const struct rank *ranks, int all, int world, int each)
{
	static struct rank machine[MOST];
	struct reduction_tree_run run[MOST];
	uint8_t adds[MOST * REDUCTION_TREE_ROOTS_MAX];
	char got[TEXT];
	int n = 0, terms = 0;

	for (int r = 0; r < world; r += each, n++) {
		run[n] = (struct reduction_tree_run){ r, r + each < world ? each : world - r };
		fold_run(&machine[n], ranks, all, world, run[n]);
		terms += machine[n].n;
	}
	assert_int_equal(reduction_tree_order_runs(adds, all, world, run, n), terms);
	add_up(got, machine, adds, n);
	assert_string_equal(got, want);
}

static void check_world(int all, int world)
{
	static struct rank ranks[MOST];
	uint8_t adds[MOST * REDUCTION_TREE_ROOTS_MAX];
	const int room = reduction_tree_room(all, world);
	char want[TEXT], got[TEXT];
	int64_t next = 0;
	int terms = 0;

	for (int r = 0; r < world; r++) {
		const struct reduction_tree l = reduction_tree_part(all, r, world);

		assert_int_equal(l.first, next);
		ranks[r].n = 0;
		for (int64_t i = 0; i < l.n; i++)
			push(&ranks[r], &l, l.first + i, room);
		terms += ranks[r].n;
		next += l.n;
	}
	assert_int_equal(next, all);
	assert_int_equal(reduction_tree_order(adds, all, world), terms);
	add_up(got, ranks, adds, world);
	define(want, 0, all);
	assert_string_equal(got, want);
	for (int each = 1; each <= world; each++)
		check_runs(want, ranks, all, world, each);
}

static void every_division(void **state)
{
	(void)state;
	for (int all = 1; all <= MOST; all++)
		for (int world = 1; world <= 9; world++)
			check_world(all, world);
	assert_int_equal(reduction_tree_room(8, 8), 1); /* one leaf each needs no additional room */
	assert_int_equal(reduction_tree_room(8, 1), 3);
	assert_int_equal(reduction_tree_room(1 << 20, 1024), 10);
}

/* A sum that was computed into another place, computed into one of its sources and another place: the same bits. */
static void check_in_place(const struct sum_job *j, int k)
{
	const size_t bytes = j->count * dtype_bytes(j->dtype);
	unsigned char *source = (unsigned char *)(uintptr_t)j->from[k], *kept = malloc(bytes), *other = malloc(bytes);
	struct sum_job both = *j;

	memcpy(kept, source, bytes);
	both.to = (void *const[]){ source, other };
	both.n_to = 2;
	sum_run(&both);
	assert_memory_equal(source, j->to[0], bytes);
	assert_memory_equal(other, j->to[0], bytes);
	memcpy(source, kept, bytes);
	free(kept);
	free(other);
}

/* The same with numbers, many blocks of them, in both types: equal bits. */
static void check_sums(int all, enum dtype type)
{
	enum { N = 1000 };
	const size_t bytes = N * dtype_bytes(type);
	unsigned char *leaf = malloc(bytes * (size_t)all), want[N * sizeof(double)], got[N * sizeof(double)];
	const void *from[MOST];
	uint8_t adds[MOST * REDUCTION_TREE_ROOTS_MAX];
	void *to = want;

	for (int i = 0; i < N * all; i++) {
		const double v = (double)rand() / RAND_MAX - 0.5;

		if (type == DTYPE_F64)
			((double *)leaf)[i] = v;
		else
			((float *)leaf)[i] = (float)v;
	}
	for (int i = 0; i < all; i++)
		from[i] = leaf + (size_t)i * bytes;
	assert_int_equal(reduction_tree_order(adds, all, all), all);
	sum_run(&(struct sum_job){ from, &to, all, 1, N, type, adds });
	for (int i = 0; i < all; i++)
		check_in_place(&(struct sum_job){ from, &to, all, 1, N, type, adds }, i);
	for (int step = 1; step < all; step *= 2) /* pairs of neighbours, in place */
		for (int i = 0; i + step < all; i += 2 * step)
			for (int k = 0; k < N; k++) {
				if (type == DTYPE_F64)
					((double *)leaf)[i * N + k] += ((double *)leaf)[(i + step) * N + k];
				else
					((float *)leaf)[i * N + k] += ((float *)leaf)[(i + step) * N + k];
			}
	memcpy(got, leaf, bytes);
	assert_memory_equal(got, want, bytes);
	free(leaf);
}

static void sums_have_the_bits_of_pairs(void **state)
{
	(void)state;
	for (int all = 1; all <= MOST; all++) {
		check_sums(all, DTYPE_F32);
		check_sums(all, DTYPE_F64);
	}
}

/* Terms of very different sizes that do not cancel: any order and division gives one result, the nearest double. */
static void exact_sums_ignore_order(void **state)
{
	static const double terms[] = { 1, 0x1p-53, 0x1p-53, 0x1p-1074, 0x1p900, 3, 0x1.fffffffffffffp-1, 0,
					0x1p-1022 };
	enum { N = sizeof(terms) / sizeof(terms[0]) };
	int64_t a[EXACT_WORDS] = { 0 }, b[EXACT_WORDS] = { 0 }, few[EXACT_WORDS] = { 0 };

	(void)state;
	for (int i = 0; i < N; i++) {
		exact_add(a, terms[i]);
		exact_add(b, terms[N - 1 - i]);
	}
	assert_memory_equal(a, b, sizeof(a));
	assert_true(exact_value(a) == 0x1p900);
	for (int i = 0; i < 3; i++)
		exact_add(few, terms[i]);
	assert_true(exact_value(few) == 1 + 0x1p-52); /* simple sums from the left remain 1 */
	exact_add(few, 0x1p-53);
	assert_true(exact_value(few) == 1 + 0x1p-51); /* a tie: rounded to even */
	exact_add(few, INFINITY);
	assert_true(isinf(exact_value(few)));
	exact_add(few, NAN);
	assert_true(isnan(exact_value(few)));
}

static void exact_sums_of_integers(void **state)
{
	int64_t w[EXACT_WORDS] = { 0 };
	uint64_t sum = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const uint64_t v = (uint64_t)rand() * 4099;

		exact_add(w, (double)v);
		sum += v;
	}
	assert_true(exact_value(w) == (double)sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_division),
		cmocka_unit_test(sums_have_the_bits_of_pairs),
		cmocka_unit_test(exact_sums_ignore_order),
		cmocka_unit_test(exact_sums_of_integers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
