/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table of web/store/base against published values of SipHash-1-3, and against keys that were chosen to
 * collide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tracker/base/hash.h"
#include "web/store/base/map.h"

/* Values for the texts "", "\0", "\0\1", … under the secret 00 01 … 0f, of the tests of Rust's core library
 * (hash/sip.rs); CPython 3.11 and later give the same for a secret of zeros. */
static void published_values_of_siphash_1_3(void **unused)
{
	static const uint64_t want[] = {
		0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb, 0xcf75576088d38328,
		0xdef9d52f49533b67, 0xc50d2b50c59f22a7, 0xd3927d989bb11140, 0x369095118d299a8e, 0x25a48eb36c063de4,
		0x79de85ee92ff097f, 0x70c118c1f94dc352, 0x78a384b157b4d9a2, 0x306f760c1229ffa7, 0x605aa111c0f95d34,
		0xd320d86d2a519956, 0xcc4fdd1a7d908b66,
	};
	const uint64_t secret[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 }, zeros[2] = { 0, 0 };
	unsigned char text[64];

	(void)unused;
	for (size_t n = 0; n < sizeof text; n++)
		text[n] = (unsigned char)n;
	for (size_t n = 0; n < sizeof want / sizeof want[0]; n++)
		assert_int_equal(hash_sip(secret, text, n), want[n]);
	assert_int_equal(hash_sip(secret, text, 63), 0x9d199062b7bbb3a8);
	assert_int_equal(hash_sip(zeros, "train/loss", 10), 0x25f6d062d93057c9);
}

/* A hash without a secret that is easily inverted: keys of two words collide where the second is the first's value,
 * changed by a constant. */
static uint64_t mixed(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 32;
}

static uint64_t hash_without_secret(const uint64_t key[2])
{
	uint64_t h = mixed(mixed(UINT64_C(0x9e3779b97f4a7c15) ^ 16, key[0]), key[1]);

	return h ^ h >> 29;
}

static void keys_that_collide_without_a_secret(void **unused)
{
	enum { KEYS = 20000 };
	struct map *m = map_new(8);
	uint64_t key[2], first = 0;

	(void)unused;
	assert_non_null(m);
	for (uint64_t i = 0; i < KEYS; i++) {
		key[0] = i;
		key[1] = mixed(UINT64_C(0x9e3779b97f4a7c15) ^ 16, i) ^ 42;
		first = i ? first : hash_without_secret(key);
		assert_int_equal(hash_without_secret(key), first);
		assert_non_null(map_put(m, key, sizeof key));
	}
	assert_int_equal(map_count(m), KEYS);
	assert_true(map_longest_probe(m) < 500); /* about 60 for random keys; 20,000 without a secret */
	map_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_values_of_siphash_1_3),
		cmocka_unit_test(keys_that_collide_without_a_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
