/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_memory_test.c: the pool that serves oneDNN's allocations: pieces of every size are disjoint, aligned and reused;
 * threads that pass pieces to one another never hold the same one; the number of blocks is the number in use at a
 * time, and grows; requests outside calls, or beyond the pool, go to the system, and so do pieces from elsewhere.
 * Large requests use a call's own memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backends/cpu/onednn.h"

#define THREADS 4
#define SLOTS 64
#define ROUNDS 20000
#define PIECE_MOST 1008
#define BLOCK ((size_t)3 << 20)

static _Atomic(unsigned char *) slots[SLOTS]; /* pieces in transit between threads */

static int begin(void **state)
{
	(void)state;
	dnn_memory_begin(NULL, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	dnn_memory_end(NULL);
	return 0;
}

static void test_outside(void **state)
{
	void *p, *b;

	(void)state;
	assert_null(dnn_memory_piece(16));
	assert_null(dnn_memory_block(BLOCK));
	dnn_memory_begin(NULL, 0);
	p = dnn_memory_piece(16);
	b = dnn_memory_block(BLOCK);
	dnn_memory_end(NULL);
	assert_non_null(p);
	assert_non_null(b);
	assert_null(dnn_memory_piece(16));
	assert_true(dnn_memory_give_piece(p));
	assert_true(dnn_memory_give_block(b));
}

static void test_sizes(void **state)
{
	unsigned char *piece[PIECE_MOST + 1];

	(void)state;
	for (size_t n = 0; n <= PIECE_MOST; n++) {
		piece[n] = dnn_memory_piece(n);
		assert_non_null(piece[n]);
		assert_int_equal((uintptr_t)piece[n] % 16, 0);
		memset(piece[n], (int)(n % 251), n);
	}
	for (size_t n = 0; n <= PIECE_MOST; n++)
		for (size_t i = 0; i < n; i++)
			assert_int_equal(piece[n][i], n % 251);
	assert_null(dnn_memory_piece(PIECE_MOST + 1));
	for (size_t n = 0; n <= PIECE_MOST; n++)
		assert_true(dnn_memory_give_piece(piece[n]));
}

static void test_kept(void **state)
{
	void *p = dnn_memory_piece(40);

	(void)state;
	assert_true(dnn_memory_give_piece(p));
	assert_ptr_equal(dnn_memory_piece(48), p);
	assert_true(dnn_memory_give_piece(p));
}

static void test_foreign(void **state)
{
	void *p = malloc(16), *page = aligned_alloc(4096, 4096);

	(void)state;
	assert_false(dnn_memory_give_piece(NULL));
	assert_false(dnn_memory_give_piece(p));
	assert_false(dnn_memory_give_piece(&p));
	assert_false(dnn_memory_give_block(p));
	assert_false(dnn_memory_give_block(page));
	free(p);
	free(page);
}

/* Takes a piece, marks all of it, puts it in a slot, and frees the piece that was there. */
static void *pass_on(void *arg)
{
	uint32_t draw = (uint32_t)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned char *mine, *theirs;
		size_t n;

		draw = draw * 1664525u + 1013904223u;
		n = 16 + (draw >> 8) % 3 * 16;
		mine = dnn_memory_piece(n);
		if (!mine)
			return "the pool is empty";
		memset(mine, (int)n, n);
		theirs = atomic_exchange(&slots[(draw >> 16) % SLOTS], mine);
		if (!theirs)
			continue;
		for (size_t k = 1, size = theirs[0]; k < size; k++)
			if (theirs[k] != size)
				return "a piece was given out twice";
		dnn_memory_give_piece(theirs);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[THREADS];
	void *fault;

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, pass_on, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &fault), 0);
		if (fault)
			fail_msg("%s", (const char *)fault);
	}
	for (int i = 0; i < SLOTS; i++)
		dnn_memory_give_piece(slots[i]);
}

/* Pieces form a list by their first bytes, so that all of them can be freed. */
static void test_pieces_all_out(void **state)
{
	void **first = NULL, **p;
	size_t pieces = 0;

	(void)state;
	for (; (p = dnn_memory_piece(PIECE_MOST)); pieces++) {
		*p = first;
		first = p;
	}
	assert_true(pieces > 1);
	while ((p = first)) {
		first = *p;
		assert_true(dnn_memory_give_piece(p));
	}
	p = dnn_memory_piece(PIECE_MOST);
	assert_non_null(p);
	dnn_memory_give_piece(p);
}

static void test_blocks(void **state)
{
	unsigned char *a = dnn_memory_block(BLOCK), *b = dnn_memory_block(2 * BLOCK), *c;

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	memset(a, 1, BLOCK);
	memset(b, 2, 2 * BLOCK);
	assert_int_equal(a[BLOCK - 1], 1);
	assert_true(dnn_memory_give_block(b));
	assert_false(dnn_memory_give_block(b));
	assert_ptr_equal(dnn_memory_block(BLOCK), b);
	assert_true(dnn_memory_give_block(a));
	assert_true(dnn_memory_give_block(b));
	c = dnn_memory_block(BLOCK); /* the smaller one is enough */
	assert_ptr_equal(c, a);
	assert_true(dnn_memory_give_block(c));
	c = dnn_memory_block(4 * BLOCK); /* none is large enough: one grows */
	assert_non_null(c);
	memset(c, 3, 4 * BLOCK);
	assert_true(dnn_memory_give_block(c));
	assert_ptr_equal(dnn_memory_block(4 * BLOCK), c);
	assert_true(dnn_memory_give_block(c));
	assert_null(dnn_memory_block(0));
}

static void test_blocks_all_out(void **state)
{
	void *out[256];
	size_t n = 0;

	(void)state;
	while (n < 256 && (out[n] = dnn_memory_block(4096)))
		n++;
	assert_in_range(n, 2, 255);
	while (n)
		assert_true(dnn_memory_give_block(out[--n]));
	out[0] = dnn_memory_block(1);
	assert_non_null(out[0]);
	assert_true(dnn_memory_give_block(out[0]));
}

static bool lies_in(const void *p, const unsigned char *room, size_t bytes)
{
	return (uintptr_t)p - (uintptr_t)room < bytes;
}

static void test_room(void **state)
{
	unsigned char *room, *a, *b, *small, *more;
	size_t bytes;

	(void)state;
	dnn_memory_begin(NULL, 0);
	dnn_memory_most();
	a = dnn_memory_block(BLOCK);
	b = dnn_memory_block(BLOCK + 1);
	assert_true(dnn_memory_give_block(a));
	assert_true(dnn_memory_give_block(b));
	dnn_memory_end(NULL);
	bytes = dnn_memory_most();
	assert_in_range(bytes, 2 * BLOCK + 1, 2 * BLOCK + 3 * 4096);
	assert_int_equal(dnn_memory_most(), 0);

	room = malloc(bytes + 64);
	assert_non_null(room);
	dnn_memory_begin(room + 64, bytes);
	for (int round = 0; round < 2; round++) {
		a = dnn_memory_block(BLOCK);
		b = dnn_memory_block(BLOCK + 1);
		assert_true(lies_in(a, room + 64, bytes) && lies_in(b + BLOCK, room + 64, bytes));
		assert_true(a + BLOCK <= b || b + BLOCK + 1 <= a);
		more = dnn_memory_block(BLOCK); /* more than was provided */
		small = dnn_memory_block(4096);
		assert_false(lies_in(more, room, bytes + 64) || lies_in(small, room, bytes + 64));
		assert_true(dnn_memory_give_block(a) && dnn_memory_give_block(more));
		assert_true(dnn_memory_give_block(b) && dnn_memory_give_block(small));
		assert_false(dnn_memory_give_block(room + 64));
	}
	dnn_memory_begin(NULL, 0); /* another call: the origin of the request is unknown */
	a = dnn_memory_block(BLOCK);
	assert_false(lies_in(a, room, bytes + 64));
	dnn_memory_end(NULL);
	dnn_memory_end(room + 64);
	assert_true(dnn_memory_give_block(a));
	dnn_memory_begin(NULL, 0);
	a = dnn_memory_block(BLOCK);
	assert_false(lies_in(a, room, bytes + 64));
	assert_true(dnn_memory_give_block(a));
	dnn_memory_end(NULL);
	free(room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outside),
		cmocka_unit_test_setup_teardown(test_sizes, begin, end),
		cmocka_unit_test_setup_teardown(test_kept, begin, end),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test_setup_teardown(test_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_pieces_all_out, begin, end),
		cmocka_unit_test_setup_teardown(test_blocks, begin, end),
		cmocka_unit_test(test_room),
		cmocka_unit_test_setup_teardown(test_blocks_all_out, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
