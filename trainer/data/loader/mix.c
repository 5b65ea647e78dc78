/* mix.c: lays out one period of positions in which each part occurs as often as its weight. With total W, unit c of
 * a part of weight w must be at a position in [floor(c W / w), ceil((c + 1) W / w)). Earliest deadline first
 * satisfies all of these (proportionate fairness: Baruah, Cohen, Plaxton and Varvel 1996; Tijdeman's chairman
 * assignment 1980). */
#include "trainer/data/loader/mix.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 256 /* positions between two stored counts */
#define DECIMALS 6

struct mix {
	int n;
	uint32_t period;
	uint32_t *weight;
	uint8_t *part;	 /* [position in the period] */
	uint32_t *count; /* [position / BLOCK][part]: earlier positions of the part */
};

/* The next unit of a part: its number, release position and deadline. */
struct mix_unit {
	uint64_t done, from, before;
};

static struct mix_unit make_mix_unit(const struct mix *m, int part, uint64_t done)
{
	uint64_t w = m->weight[part];

	return (struct mix_unit){ done, done * m->period / w, ((done + 1) * m->period + w - 1) / w };
}

static int find_most_urgent(const struct mix *m, const struct mix_unit *unit, uint32_t place)
{
	int best = -1;

	for (int i = 0; i < m->n; i++)
		if (unit[i].from <= place && (best < 0 || unit[i].before < unit[best].before))
			best = i;
	return best;
}

static void lay_out_period(struct mix *m, struct mix_unit *unit)
{
	for (int i = 0; i < m->n; i++)
		unit[i] = make_mix_unit(m, i, 0);
	for (uint32_t place = 0; place < m->period; place++) {
		int part = find_most_urgent(m, unit, place);

		for (int i = 0; i < m->n && place % BLOCK == 0; i++)
			m->count[place / BLOCK * (uint32_t)m->n + (uint32_t)i] = (uint32_t)unit[i].done;
		m->part[place] = (uint8_t)part;
		unit[part] = make_mix_unit(m, part, unit[part].done + 1);
	}
}

int mix_new(struct mix **ret, const uint32_t *weight, int n, struct err *err)
{
	struct mix *m = calloc(1, sizeof(*m));
	struct mix_unit *unit = calloc((size_t)n, sizeof(*unit));

	for (int i = 0; m && i < n; i++)
		m->period += weight[i];
	if (m) {
		m->n = n;
		m->weight = malloc((size_t)n * sizeof(*weight));
		m->part = malloc(m->period);
		m->count = malloc((m->period / BLOCK + 1) * (size_t)n * sizeof(*m->count));
	}
	if (!m || !unit || !m->weight || !m->part || !m->count) {
		free(unit);
		mix_free(m);
		return err_set(err, ERR_NOMEM, "out of memory: a mix of %d parts", n);
	}
	memcpy(m->weight, weight, (size_t)n * sizeof(*weight));
	lay_out_period(m, unit);
	free(unit);
	*ret = m;
	return 0;
}

void mix_free(struct mix *m)
{
	if (!m)
		return;
	free(m->weight);
	free(m->part);
	free(m->count);
	free(m);
}

int mix_at(const struct mix *m, int64_t place, int64_t *ret_before)
{
	uint32_t at = (uint32_t)(place % m->period), block = at / BLOCK;
	int part = m->part[at];
	int64_t before = place / m->period * m->weight[part] + m->count[block * (uint32_t)m->n + (uint32_t)part];

	for (uint32_t i = block * BLOCK; i < at; i++)
		before += m->part[i] == part;
	*ret_before = before;
	return part;
}

/* Parses one weight in millionths and advances *text past it. 0: invalid. */
static uint64_t parse_mix_weight(const char **text)
{
	const char *at = *text;
	uint64_t v = 0;
	int decimals = -1;

	for (; (*at >= '0' && *at <= '9') || (*at == '.' && decimals < 0); at++) {
		if (*at == '.') {
			decimals = 0;
			continue;
		}
		if (v > UINT64_C(1000000000000) || decimals == DECIMALS)
			return 0;
		v = v * 10 + (uint64_t)(*at - '0');
		decimals += decimals >= 0;
	}
	for (decimals = decimals < 0 ? 0 : decimals; decimals < DECIMALS; decimals++)
		v *= 10;
	*text = at;
	return v;
}

static uint64_t find_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Divides the weights by their common divisor. If their sum still exceeds a period, scales them down, rounded, at
 * least 1. */
static void reduce_weights(uint32_t *ret, const uint64_t *v, int n)
{
	uint64_t common = 0, sum = 0;

	for (int i = 0; i < n; i++)
		common = find_common_divisor(v[i], common);
	for (int i = 0; i < n; i++)
		sum += v[i] / common;
	for (int i = 0; i < n; i++) {
		uint64_t w = v[i] / common;

		if (sum > MIX_PERIOD_MAX)
			w = (uint64_t)((double)w / (double)sum * (MIX_PERIOD_MAX - MIX_PARTS_MAX) + 0.5);
		ret[i] = w ? (uint32_t)w : 1;
	}
}

int mix_parse(uint32_t ret[MIX_PARTS_MAX], int *ret_n, const char *flag, const char *text, struct err *err)
{
	uint64_t v[MIX_PARTS_MAX];
	const char *at = text;
	int n = 0;

	do {
		if (n == MIX_PARTS_MAX)
			return err_set(err, ERR_USAGE, "%s: more than %d weights", flag, MIX_PARTS_MAX);
		v[n] = parse_mix_weight(&at);
		if (!v[n++] || (*at && *at != ','))
			return err_set(err, ERR_USAGE,
				       "%s %.200s: weight %d: expected a number above 0 with at most %d decimals", flag,
				       text, n, DECIMALS);
	} while (*at++);
	reduce_weights(ret, v, n);
	*ret_n = n;
	return 0;
}
