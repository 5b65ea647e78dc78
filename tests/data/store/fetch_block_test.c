/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_block_test.c: which blocks release their memory for the next ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "trainer/data/store/fetch_inside.h"

#define SAMPLE ((size_t)100000)

static struct fetch *room_for(size_t blocks, uint64_t all_blocks)
{
	struct fetch *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->o = (struct fetch_opts){ .room_bytes = blocks * FETCH_BLOCK, .parts = 1 };
	f->all_bytes = all_blocks * FETCH_BLOCK;
	TAILQ_INIT(&f->pool.queue);
	TAILQ_INIT(&f->pool.idle);
	return f;
}

static struct fetched_block *arrived(struct fetch *f, uint64_t number)
{
	struct fetched_block *b = block_queue(f, 0, number * FETCH_BLOCK, FETCH_BLOCK);

	assert_non_null(b);
	assert_true(block_take_memory(f, b));
	TAILQ_REMOVE(&f->pool.queue, b, link);
	b->state = HELD;
	return b;
}

/* Reads all but `left` samples, with the headers between them. */
static void read_but(struct fetch *f, struct fetched_block *b, size_t left)
{
	for (size_t i = left; i < b->n / (SAMPLE + 1700); i++)
		block_count_read(b, SAMPLE);
	block_count_read(b, left ? 0 : SAMPLE / 2);
	block_rest(f, b);
}

/* The memory of a block that was read stays with it, or goes to the next. */
static void test_next(void **state)
{
	static const struct {
		const char *what;
		uint64_t all_blocks;
		size_t left;
		bool stays;
		int parts;
	} rows[] = {
		{ "read, of a set that does not fit", 5, 0, false, 1 },
		{ "read but for a sample", 5, 1, true, 1 },
		{ "read, of a set that fits", 4, 0, true, 1 },
		{ "read, of a set whose part fits", 5, 0, true, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fetch *f = room_for(4, rows[i].all_blocks);
		struct fetched_block *first = arrived(f, 0), *next;
		const char *bytes = first->bytes;

		f->o.parts = rows[i].parts;
		print_message("%s\n", rows[i].what);
		read_but(f, first, rows[i].left);
		next = arrived(f, 1);
		assert_int_equal(block_find(f, 0, 0, FETCH_BLOCK) != NULL, rows[i].stays);
		assert_int_equal(next->bytes == bytes, !rows[i].stays);
		assert_int_equal(f->pool.held_bytes, FETCH_BLOCK * (rows[i].stays ? 2 : 1));
		block_free_all(f);
		free(f);
	}
}

/* A block without memory may get some after another block was read completely, or is not needed any more. */
static void test_room(void **state)
{
	struct fetch *f = room_for(2, 5);
	struct fetched_block *b[2] = { arrived(f, 0), arrived(f, 1) };
	struct fetched_block *third = block_queue(f, 0, 2 * FETCH_BLOCK, FETCH_BLOCK);

	(void)state;
	assert_non_null(third);
	assert_false(block_may_have_room(f));
	assert_false(block_take_memory(f, third));
	assert_false(block_may_have_room(f));
	read_but(f, b[1], 0);
	assert_true(block_may_have_room(f));
	assert_true(block_take_memory(f, third));
	assert_false(block_may_have_room(f));
	read_but(f, b[0], 7);
	assert_true(block_take_memory(f, block_queue(f, 0, 3 * FETCH_BLOCK, FETCH_BLOCK)));
	assert_null(block_find(f, 0, 0, FETCH_BLOCK));
	assert_int_equal(f->pool.held_bytes, 2 * FETCH_BLOCK);
	block_free_all(f);
	free(f);
}

/* A small block replaces only the oldest one. */
static void test_small(void **state)
{
	struct fetch *f = room_for(3, 5);
	struct fetched_block *small;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		read_but(f, arrived(f, i), 1);
	small = block_queue(f, 1, 0, SAMPLE);
	assert_non_null(small);
	assert_true(block_take_memory(f, small));
	assert_null(block_find(f, 0, 0, FETCH_BLOCK));
	assert_non_null(block_find(f, 0, FETCH_BLOCK, FETCH_BLOCK));
	assert_int_equal(f->pool.held_bytes, 2 * FETCH_BLOCK + SAMPLE);
	block_free_all(f);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_next), cmocka_unit_test(test_room),
					    cmocka_unit_test(test_small) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
