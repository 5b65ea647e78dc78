/* unpack_test.c: blocks of bytes packed by Snappy's rules, written here by hand: where each begins, and any of them
 * without the others. The truth is what was packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tracker/base/buf.h"
#include "trainer/data/container/unpack.h"

#define BLOCK UNPACK_SNAPPY_BLOCK

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

/* Elements up to `n` bytes, none across the end of a block, copies of their own block alone. */
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

static void any_blocks_alone(void **state)
{
	static const size_t lengths[] = { 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 777 };
	static unsigned char got[6 * BLOCK];
	uint32_t block[8];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t n = lengths[i], blocks = (n + BLOCK - 1) / BLOCK;
		struct packed p;

		make(&p, n);
		assert_true(unpack_snappy_map(p.bytes.data, p.bytes.len, n, block));
		assert_int_equal(block[blocks], p.bytes.len);
		if (unpack_can(UNPACK_SNAPPY)) {
			assert_true(unpack(UNPACK_SNAPPY, p.bytes.data, p.bytes.len, got, n));
			assert_memory_equal(got, p.plain, n);
		}
		for (size_t from = 0; from < blocks; from++)
			for (size_t to = from + 1; to <= blocks; to++) {
				size_t begin = from * BLOCK, end = to * BLOCK < n ? to * BLOCK : n;

				assert_true(unpack_snappy_blocks(p.bytes.data + block[from], block[to] - block[from],
								 got, end - begin));
				assert_memory_equal(got, p.plain + begin, end - begin);
			}
		free(p.plain);
		buf_done(&p.bytes);
	}
}

/* Whatever is changed or cut off: nothing beyond the room is written, nothing beyond the input read. */
static void damaged_ones_end(void **state)
{
	uint32_t block[8];
	struct packed p;

	(void)state;
	make(&p, 2 * BLOCK + 5);
	for (int i = 0; i < 3000; i++) {
		size_t n = 1 + draw(&p, p.bytes.len), cut = draw(&p, 2) ? n : p.bytes.len, at = draw(&p, cut);
		char *bytes = malloc(cut);
		unsigned char *to = malloc(2 * BLOCK + 5);

		memcpy(bytes, p.bytes.data, cut);
		bytes[at] = (char)draw(&p, 256);
		if (unpack_snappy_map(bytes, cut, 2 * BLOCK + 5, block))
			unpack_snappy_blocks(bytes + block[1], block[2] - block[1], to, BLOCK);
		free(bytes);
		free(to);
	}
	free(p.plain);
	buf_done(&p.bytes);
}

static void copies_of_other_blocks_are_refused(void **state)
{
	static unsigned char got[BLOCK];
	uint32_t block[4];
	struct packed p;
	size_t n = BLOCK + 70, first;

	(void)state;
	p = (struct packed){ .plain = malloc(n) };
	buf_init(&p.bytes, 1 << 20);
	buf_add(&p.bytes, "\xc6\x80\x04", 3); /* n, seven bits a byte */
	add_literal(&p, BLOCK);
	first = p.bytes.len;
	add_copy(&p, 60, BLOCK, 3);
	add_literal(&p, 10);
	assert_false(unpack_snappy_map(p.bytes.data, p.bytes.len, n, block));
	assert_false(unpack_snappy_blocks(p.bytes.data + first, p.bytes.len - first, got, 70));
	free(p.plain);
	buf_done(&p.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_blocks_alone),
		cmocka_unit_test(damaged_ones_end),
		cmocka_unit_test(copies_of_other_blocks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
