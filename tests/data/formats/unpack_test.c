/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_test.c: blocks of handwritten Snappy data: where each begins, and decompression of any of them without the
 * others. The data are compared with what was packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tracker/base/buf.h"
#include "trainer/data/container/decompress.h"

#define BLOCK DECOMPRESS_SNAPPY_BLOCK

struct packed {
	struct buf bytes;
	unsigned char *plain;
	size_t n;
	uint64_t draws;
};

static size_t draw(struct packed *p, size_t below)
{
	p->draws = p->draws * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(p->draws >> 33) % below;
}

static void add_literal(struct packed *p, size_t n)
{
	size_t more = n <= 60 ? 0 : n <= 256 ? 1 : n <= 65536 ? 2 : 3;

	buf_addc(&p->bytes, (char)((more ? 59 + more : n - 1) << 2));
	for (size_t i = 0; i < more; i++)
		buf_addc(&p->bytes, (char)((n - 1) >> 8 * i));
	for (size_t i = 0; i < n; i++)
		buf_addc(&p->bytes, (char)(p->plain[p->n++] = (unsigned char)draw(p, 256)));
}

static void add_copy(struct packed *p, size_t n, size_t back, int kind)
{
	if (kind == 1)
		buf_addc(&p->bytes, (char)(1 | (n - 4) << 2 | back >> 8 << 5));
	else
		buf_addc(&p->bytes, (char)((size_t)kind | (n - 1) << 2));
	for (int i = 0; i < (kind == 1 ? 1 : kind == 2 ? 2 : 4); i++)
		buf_addc(&p->bytes, (char)(back >> 8 * i));
	for (size_t i = 0; i < n; i++, p->n++)
		p->plain[p->n] = p->plain[p->n - back];
}

/* Elements for up to `n` bytes; none crosses a block's end, and copies stay within their block. */
static void make(struct packed *p, size_t n)
{
	*p = (struct packed){ .plain = malloc(n), .draws = n };
	buf_init(&p->bytes, 1 << 24);
	for (size_t left = n, byte; ; left = byte) {
		byte = left >> 7;
		buf_addc(&p->bytes, (char)((left & 127) | (byte ? 128 : 0)));
		if (!byte)
			break;
	}
	while (p->n < n) {
		size_t inside = p->n % BLOCK, room = BLOCK - inside < n - p->n ? BLOCK - inside : n - p->n;
		int kind = (int)draw(p, 4);
		size_t back = inside ? 1 + draw(p, kind == 1 && inside > 2047 ? 2047 : inside) : 0;

		if (!kind || !inside || room < 11)
			add_literal(p, 1 + draw(p, room < 30000 ? room : 30000));
		else
			add_copy(p, kind == 1 ? 4 + draw(p, 7) : 1 + draw(p, room < 64 ? room : 64), back, kind);
	}
}

struct given {
	const char *bytes;
	size_t n;
};

/* Returns no more than is promised. */
static const unsigned char *given_at(void *user, size_t place, size_t *ret_n)
{
	const struct given *g = user;

	assert_in_range(place, 0, g->n - 1);
	*ret_n = g->n - place < DECOMPRESS_LOOK ? g->n - place : DECOMPRESS_LOOK;
	return (const unsigned char *)g->bytes + place;
}

static bool map(const char *bytes, size_t n, size_t to_n, struct decompress_block *ret)
{
	struct given g = { bytes, n };
	struct decompress_walk walk = { 0 };

	return decompress_snappy_walk(&(struct decompress_look){ given_at, &g, n, to_n }, to_n, &walk, ret);
}

/* A map built block by block equals the one built at once; it reads no further than it has to. */
static void same_in_steps(const struct packed *p, size_t n, const struct decompress_block *want)
{
	struct given g = { p->bytes.data, p->bytes.len };
	struct decompress_walk walk = { 0 };
	struct decompress_block block[8];
	size_t blocks = (n + BLOCK - 1) / BLOCK;

	for (size_t k = 1; k <= blocks; k++) {
		assert_true(decompress_snappy_walk(&(struct decompress_look){ given_at, &g, p->bytes.len, n },
						   k * BLOCK, &walk, block));
		assert_int_equal(walk.known, k + 1);
		assert_memory_equal(block, want, (k + 1) * sizeof(*want));
	}
}

static void any_block_separately(void **state)
{
	static const size_t lengths[] = { 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 777 };
	static unsigned char got[6 * BLOCK];
	struct decompress_block block[8];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t n = lengths[i], blocks = (n + BLOCK - 1) / BLOCK;
		struct packed p;

		make(&p, n);
		assert_true(map(p.bytes.data, p.bytes.len, n, block));
		same_in_steps(&p, n, block);
		assert_int_equal(block[blocks].at, p.bytes.len);
		if (decompress_can(DECOMPRESS_SNAPPY)) {
			assert_true(decompress(DECOMPRESS_SNAPPY, p.bytes.data, p.bytes.len, got, n));
			assert_memory_equal(got, p.plain, n);
		}
		for (size_t from = 0; from < blocks; from++)
			for (size_t to = from + 1; to <= blocks; to++) {
				size_t begin = from * BLOCK, end = to * BLOCK < n ? to * BLOCK : n;

				assert_true(decompress_snappy_blocks(p.bytes.data + block[from].at,
								 block[to].at - block[from].at, got, end - begin));
				assert_memory_equal(got, p.plain + begin, end - begin);
			}
		free(p.plain);
		buf_done(&p.bytes);
	}
}

/* Changed or truncated input: nothing is written beyond the output, nothing read beyond the input. */
static void damaged_input_is_refused(void **state)
{
	struct decompress_block block[8];
	struct packed p;

	(void)state;
	make(&p, 2 * BLOCK + 5);
	for (int i = 0; i < 3000; i++) {
		size_t n = 1 + draw(&p, p.bytes.len), cut = draw(&p, 2) ? n : p.bytes.len, at = draw(&p, cut);
		char *bytes = malloc(cut);
		unsigned char *to = malloc(2 * BLOCK + 5);

		memcpy(bytes, p.bytes.data, cut);
		bytes[at] = (char)draw(&p, 256);
		if (map(bytes, cut, 2 * BLOCK + 5, block))
			decompress_snappy_blocks(bytes + block[1].at, block[2].at - block[1].at, to, BLOCK);
		free(bytes);
		free(to);
	}
	free(p.plain);
	buf_done(&p.bytes);
}

/* The bytes of an uncompressed block are located directly in the input. */
static void raw_blocks_are_found(void **state)
{
	struct decompress_block block[3];
	struct packed p = { .plain = malloc(BLOCK + 70) };

	(void)state;
	buf_init(&p.bytes, 1 << 20);
	buf_add(&p.bytes, "\xc6\x80\x04", 3); /* BLOCK + 70, seven bits per byte */
	add_literal(&p, BLOCK);
	add_literal(&p, 60);
	add_copy(&p, 10, 20, 2);
	assert_true(map(p.bytes.data, p.bytes.len, BLOCK + 70, block));
	assert_true(block[0].raw && !block[1].raw);
	assert_memory_equal(p.bytes.data + block[1].at - BLOCK, p.plain, BLOCK);

	p.bytes.len = block[1].at;
	p.n = BLOCK;
	add_literal(&p, 70);
	assert_true(map(p.bytes.data, p.bytes.len, BLOCK + 70, block));
	assert_true(block[0].raw && block[1].raw);
	assert_memory_equal(p.bytes.data + block[2].at - 70, p.plain + BLOCK, 70);
	free(p.plain);
	buf_done(&p.bytes);
}

static void copies_of_other_blocks_are_refused(void **state)
{
	static unsigned char got[BLOCK];
	struct decompress_block block[4];
	struct packed p;
	size_t n = BLOCK + 70, first;

	(void)state;
	p = (struct packed){ .plain = malloc(n) };
	buf_init(&p.bytes, 1 << 20);
	buf_add(&p.bytes, "\xc6\x80\x04", 3); /* n, seven bits per byte */
	add_literal(&p, BLOCK);
	first = p.bytes.len;
	add_copy(&p, 60, BLOCK, 3);
	add_literal(&p, 10);
	assert_false(map(p.bytes.data, p.bytes.len, n, block));
	assert_false(decompress_snappy_blocks(p.bytes.data + first, p.bytes.len - first, got, 70));
	free(p.plain);
	buf_done(&p.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_block_separately),
		cmocka_unit_test(damaged_input_is_refused),
		cmocka_unit_test(raw_blocks_are_found),
		cmocka_unit_test(copies_of_other_blocks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
