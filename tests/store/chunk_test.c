/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_test.c: chunks, log rows and summaries return their input bit for bit, and detect damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "web/store/points/chunk.h"
#include "web/store/points/series_summary.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static double bits(uint64_t u)
{
	double v;

	memcpy(&v, &u, 8);
	return v;
}

/* Kinds: regular f32 losses, arbitrary doubles, constant, random bits. */
static struct sum_point make_point(unsigned kind, unsigned i)
{
	struct sum_point p = { (int64_t)i, 1.7e9 + i * 0.25 + (double)(draw() % 1000) * 1e-6, 0 };

	switch (kind) {
	case 0:
		p.value = (double)(float)(2.0 / (1 + i * 0.01) + (double)(draw() % 1000) * 1e-4);
		break;
	case 1:
		p.value = bits(draw() >> 2);
		p.step = (int64_t)(draw() % 1000) - 500;
		break;
	case 2:
		p.step = 7;
		p.time = 3;
		p.value = -0.0;
		break;
	default:
		p = (struct sum_point){ (int64_t)draw(), bits(draw()), bits(draw()) };
		if (draw() % 3 == 0)
			p.value = draw() & 1 ? NAN : -INFINITY;
		if (draw() % 9 == 0)
			p.step = draw() & 1 ? INT64_MIN : INT64_MAX;
	}
	return p;
}

static void chunk_round_trip(void **state)
{
	static struct sum_point in[CHUNK_POINTS], out[CHUNK_POINTS];
	unsigned round, n, i;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (round = 0; round < 400; round++) {
		struct chunk c;

		n = round < 8 ? (unsigned[]){ 1, 2, 63, 64, 65, 128, 2047, 2048 }[round]
			: 1 + (unsigned)(draw() % CHUNK_POINTS);
		memset(in, 0, sizeof in);
		for (i = 0; i < n; i++)
			in[i] = make_point(round & 3, i);
		buf_reset(&b);
		chunk_encode(&b, in, n);
		assert_false(buf_failed(&b));
		assert_int_equal(chunk_open(&c, b.data, b.len), 0);
		assert_int_equal(c.points, n);
		assert_int_equal(chunk_points(&c, out), 0);
		assert_memory_equal(in, out, n * sizeof in[0]);
		if (n == CHUNK_POINTS && (round & 3) == 0)
			assert_true(b.len < (size_t)n * 9);
		/* a flipped bit is detected (in header and table at once; the 8 bytes of padding are unused) */
		b.data[4 + draw() % (b.len - 12)] ^= (char)(1 << (draw() & 7));
		assert_true(chunk_open(&c, b.data, b.len) || chunk_points(&c, out));
	}
	buf_done(&b);
}

static void groups_describe_their_points(void **state)
{
	static struct sum_point in[300];
	struct chunk_group g;
	struct chunk c;
	struct buf b;
	unsigned i;

	(void)state;
	for (i = 0; i < 300; i++)
		in[i] = (struct sum_point){ i, i * 0.5, i % 50 == 3 ? NAN : (double)((i * 37) % 101) };
	buf_init(&b, 1 << 20);
	chunk_encode(&b, in, 300);
	assert_int_equal(chunk_open(&c, b.data, b.len), 0);
	assert_true(c.ordered);
	for (i = 0; i < c.groups; i++) {
		double low = INFINITY, high = -INFINITY, sum = 0;
		unsigned k, bad = 0;

		chunk_group_get(&c, i, &g);
		for (k = i * 64; k < i * 64 + g.points; k++) {
			if (isnan(in[k].value)) {
				bad++;
				continue;
			}
			low = fmin(low, in[k].value);
			high = fmax(high, in[k].value);
			sum += in[k].value;
		}
		assert_int_equal(g.nonfinite, bad);
		assert_true(g.min == low && g.max == high && g.sum == sum);
		assert_true(in[i * 64 + g.min_at].value == low && in[i * 64 + g.max_at].value == high);
	}
	buf_done(&b);
}

static void pack_round_trip(void **state)
{
	static struct sum_point in[3][500];
	struct sum_point p;
	struct pack_reader r;
	unsigned s, i, round;
	struct buf b;
	int64_t id;
	uint64_t n;

	(void)state;
	buf_init(&b, 1 << 20);
	for (round = 0; round < 50; round++) {
		buf_reset(&b);
		pack_begin(&b);
		for (s = 0; s < 3; s++) {
			for (i = 0; i < 500; i++)
				in[s][i] = make_point((s + round) & 3, i);
			pack_series(&b, 1000 + s, in[s], 500);
		}
		pack_end(&b);
		assert_int_equal(pack_open(&r, b.data, b.len), 0);
		for (s = 0; s < 3; s++) {
			assert_int_equal(pack_next_series(&r, &id, &n), 1);
			assert_int_equal(id, 1000 + s);
			for (i = 0; i < (s == 1 ? 10u : 500u); i++) {
				assert_int_equal(pack_next_point(&r, &p), 1);
				assert_memory_equal(&p, &in[s][i], sizeof p);
			}
		}
		assert_int_equal(pack_next_series(&r, &id, &n), 0);
		b.data[8 + draw() % (b.len - 8)] ^= 4;
		assert_int_not_equal(pack_open(&r, b.data, b.len), 0);
	}
	buf_done(&b);
}

static void sums_do_not_depend_on_order(void **state)
{
	struct sum_point p[40];
	unsigned round, i;

	(void)state;
	for (round = 0; round < 2000; round++) {
		struct sum all, right;

		sum_init(&all);
		sum_init(&right);
		for (i = 0; i < 40; i++) {
			p[i] = (struct sum_point){ (int64_t)(draw() % 10), (double)(draw() % 3), (double)(draw() % 5) };
			if (draw() % 5 == 0)
				p[i].value = draw() & 1 ? NAN : INFINITY;
			sum_add(&all, &p[i]);
		}
		for (i = 40; i-- > 0;)
			sum_add(&right, &p[i]);
		assert_int_equal(all.count, right.count);
		assert_int_equal(all.nonfinite, right.nonfinite);
		assert_int_equal(all.first.step, right.first.step);
		assert_int_equal(all.last.step, right.last.step);
		assert_true(all.first.value == right.first.value ||
			    (isnan(all.first.value) && isnan(right.first.value)));
		assert_true(all.last.value == right.last.value || (isnan(all.last.value) && isnan(right.last.value)));
		assert_true(all.min == right.min && all.max == right.max);
		assert_int_equal(all.min_step, right.min_step);
		assert_int_equal(all.max_step, right.max_step);
		if (all.nonfinite)
			assert_int_equal(all.nonfinite_step, right.nonfinite_step);
	}
}

static void spikes(void **state)
{
	struct sum_point p[600];
	double weight;
	unsigned i;

	(void)state;
	for (i = 0; i < 600; i++)
		p[i] = (struct sum_point){ i, i, 0.3 + 2 * exp(-(double)i / 55) + (double)(draw() % 100) * 2e-3 };
	assert_int_equal(spike_find(p, 600, &weight), -1);
	p[337].value = 4.85;
	p[200].value = 2.9;
	assert_int_equal(spike_find(p, 600, &weight), 337);
	p[338].value = NAN;
	assert_int_equal(spike_find(p, 600, &weight), 200);
	assert_int_equal(spike_find(p, 2, &weight), -1);
	assert_int_equal(spike_find(p, 0, &weight), -1);
}

static void sha256_vectors(void **state)
{
	char hex[65];

	(void)state;
	sha256_hex("abc", 3, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256_hex("", 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
	assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunk_round_trip),	     cmocka_unit_test(groups_describe_their_points),
		cmocka_unit_test(pack_round_trip),	     cmocka_unit_test(sums_do_not_depend_on_order),
		cmocka_unit_test(spikes),		     cmocka_unit_test(sha256_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
