/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.c: packs points as differences with few bits, group by group, and rows of the ingest log. */
#include "web/store/points/chunk.h"

#include <math.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/little.h"

#define FORMAT 1
#define HEAD_BYTES 8
#define ENTRY_BYTES 68

/* How the 64 words of a column are packed. */
enum column_mode {
	COLUMN_PLAIN = 0, /* word minus smallest word */
	COLUMN_DELTA = 1, /* difference to the previous word, minus the smallest difference */
	COLUMN_F32 = 2,	  /* flag: the words are ordered floats instead of doubles */
};

/* Maps the bits of a double to an integer of the same order, so near values have near words. */
static uint64_t word_of_f64(double v)
{
	uint64_t u;

	memcpy(&u, &v, 8);
	return u >> 63 ? ~u : u | (UINT64_C(1) << 63);
}

static double f64_of_word(uint64_t w)
{
	uint64_t u = w >> 63 ? w & ~(UINT64_C(1) << 63) : ~w;
	double v;

	memcpy(&v, &u, 8);
	return v;
}

static uint64_t word_of_f32(float v)
{
	uint32_t u;

	memcpy(&u, &v, 4);
	return u >> 31 ? (uint32_t)~u : u | (UINT32_C(1) << 31);
}

static double f64_of_word32(uint64_t w)
{
	uint32_t u = (uint32_t)w;
	float v;

	u = u >> 31 ? u & ~(UINT32_C(1) << 31) : ~u;
	memcpy(&v, &u, 4);
	return (double)v;
}

static bool exact_f32(double v)
{
	float f = (float)v;
	double back = (double)f;

	return memcmp(&back, &v, 8) == 0;
}

static unsigned bit_width(uint64_t v)
{
	return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
}

void chunk_add_varint(struct buf *b, uint64_t v)
{
	unsigned char bytes[LITTLE_VARINT_BYTES];

	buf_add(b, bytes, (size_t)(little_put_varint(bytes, v) - bytes));
}

static void add_bits(struct buf *b, const uint64_t *words, unsigned n, unsigned width)
{
	unsigned __int128 acc = 0;
	unsigned held = 0, i;

	for (i = 0; i < n && width; i++) {
		acc |= (unsigned __int128)words[i] << held;
		for (held += width; held >= 8; held -= 8) {
			buf_addc(b, (char)(unsigned char)acc);
			acc >>= 8;
		}
	}
	if (held)
		buf_addc(b, (char)(unsigned char)acc);
}

/* Differences in wrapping arithmetic, minus the smallest, which goes to *ret_low; returns the bits each needs. */
static unsigned delta_words(const uint64_t *w, unsigned n, uint64_t *out, int64_t *ret_low)
{
	int64_t low = n > 1 ? (int64_t)(w[1] - w[0]) : 0;
	uint64_t all = 0;
	unsigned i;

	for (i = 1; i < n; i++)
		if ((int64_t)(w[i] - w[i - 1]) < low)
			low = (int64_t)(w[i] - w[i - 1]);
	for (i = 1; i < n; i++) {
		out[i - 1] = w[i] - w[i - 1] - (uint64_t)low;
		all |= out[i - 1];
	}
	*ret_low = low;
	return bit_width(all);
}

/* Appends a column in the smaller of the two modes. */
static void add_chunk_column(struct buf *b, const uint64_t *w, unsigned n, unsigned flag)
{
	uint64_t plain[CHUNK_GROUP], delta[CHUNK_GROUP], low = w[0], all = 0;
	int64_t delta_low;
	unsigned i, plain_width, delta_width = delta_words(w, n, delta, &delta_low);

	for (i = 1; i < n; i++)
		if (w[i] < low)
			low = w[i];
	for (i = 0; i < n; i++) {
		plain[i] = w[i] - low;
		all |= plain[i];
	}
	plain_width = bit_width(all);
	if (delta_width < plain_width) {
		buf_addc(b, (char)(COLUMN_DELTA | flag));
		buf_addc(b, (char)delta_width);
		chunk_add_varint(b, w[0]);
		chunk_add_varint(b, little_zigzag(delta_low));
		add_bits(b, delta, n - 1, delta_width);
	} else {
		buf_addc(b, (char)(COLUMN_PLAIN | flag));
		buf_addc(b, (char)plain_width);
		chunk_add_varint(b, low);
		add_bits(b, plain, n, plain_width);
	}
}

static void add_group(struct buf *b, const struct sum_point *p, unsigned n)
{
	uint64_t w[CHUNK_GROUP];
	bool f32 = true;
	unsigned i;

	for (i = 0; i < n; i++)
		w[i] = (uint64_t)p[i].step;
	add_chunk_column(b, w, n, 0);
	for (i = 0; i < n; i++)
		w[i] = word_of_f64(p[i].time);
	add_chunk_column(b, w, n, 0);
	for (i = 0; i < n; i++)
		f32 = f32 && exact_f32(p[i].value);
	for (i = 0; i < n; i++)
		w[i] = f32 ? word_of_f32((float)p[i].value) : word_of_f64(p[i].value);
	add_chunk_column(b, w, n, f32 ? COLUMN_F32 : 0);
}

/* Fills the table entry of a group, except offset and checksum. */
static void describe_group(struct chunk_group *g, const struct sum_point *p, unsigned n)
{
	unsigned i;

	*g = (struct chunk_group){ .points = (uint8_t)n, .min_at = 255, .max_at = 255, .min = NAN, .max = NAN,
				   .min_step = p[0].step, .max_step = p[0].step, .min_time = NAN, .max_time = NAN };
	for (i = 0; i < n; i++) {
		if (p[i].step < g->min_step)
			g->min_step = p[i].step;
		if (p[i].step > g->max_step)
			g->max_step = p[i].step;
		g->min_time = fmin(g->min_time, p[i].time);
		g->max_time = fmax(g->max_time, p[i].time);
		if (!isfinite(p[i].value)) {
			g->nonfinite++;
			continue;
		}
		if (g->min_at == 255 || p[i].value < g->min) {
			g->min_at = (uint8_t)i;
			g->min = p[i].value;
		}
		if (g->max_at == 255 || p[i].value > g->max) {
			g->max_at = (uint8_t)i;
			g->max = p[i].value;
		}
		g->sum += p[i].value;
	}
}

static void put_group_entry(unsigned char *to, const struct chunk_group *g)
{
	memcpy(to, &g->offset, 4);
	to[4] = g->points;
	to[5] = g->nonfinite;
	to[6] = g->min_at;
	to[7] = g->max_at;
	memcpy(to + 8, &g->min_step, 8);
	memcpy(to + 16, &g->max_step, 8);
	memcpy(to + 24, &g->min_time, 8);
	memcpy(to + 32, &g->max_time, 8);
	memcpy(to + 40, &g->min, 8);
	memcpy(to + 48, &g->max, 8);
	memcpy(to + 56, &g->sum, 8);
	memcpy(to + 64, &g->crc, 4);
}

void chunk_encode(struct buf *b, const struct sum_point *points, unsigned n)
{
	unsigned groups = (n + CHUNK_GROUP - 1) / CHUNK_GROUP, i;
	size_t start = b->len, front = HEAD_BYTES + (size_t)groups * ENTRY_BYTES;
	uint16_t count = (uint16_t)n;
	uint32_t crc;
	bool ordered = true, timed = true;
	char *head = buf_reserve(b, front);

	if (!head)
		return;
	memset(head, 0, front);
	b->len += front;
	for (i = 0; i < n; i++) {
		ordered = ordered && (!i || points[i].step >= points[i - 1].step);
		timed = timed && !isnan(points[i].time);
	}
	for (i = 0; i < groups; i++) {
		unsigned part = n - i * CHUNK_GROUP < CHUNK_GROUP ? n - i * CHUNK_GROUP : CHUNK_GROUP;
		struct chunk_group g;

		describe_group(&g, points + (size_t)i * CHUNK_GROUP, part);
		g.offset = (uint32_t)(b->len - start);
		add_group(b, points + (size_t)i * CHUNK_GROUP, part);
		if (buf_failed(b))
			return;
		g.crc = crc32c(0, b->data + start + g.offset, b->len - start - g.offset);
		put_group_entry((unsigned char *)b->data + start + HEAD_BYTES + (size_t)i * ENTRY_BYTES, &g);
	}
	buf_add_u64le(b, 0);
	if (buf_failed(b))
		return;
	head = b->data + start;
	head[0] = FORMAT;
	head[1] = (char)(ordered | timed << 1);
	memcpy(head + 2, &count, 2);
	crc = crc32c(0, head + HEAD_BYTES, front - HEAD_BYTES);
	memcpy(head + 4, &crc, 4);
}

int chunk_open(struct chunk *ret, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint16_t n;
	uint32_t crc;
	unsigned groups;

	if (len < HEAD_BYTES + CHUNK_PAD || p[0] != FORMAT)
		return ERR_CORRUPT;
	memcpy(&n, p + 2, 2);
	memcpy(&crc, p + 4, 4);
	groups = (n + CHUNK_GROUP - 1u) / CHUNK_GROUP;
	if (n < 1 || n > CHUNK_POINTS || len < HEAD_BYTES + (size_t)groups * ENTRY_BYTES + CHUNK_PAD)
		return ERR_CORRUPT;
	if (crc32c(0, p + HEAD_BYTES, (size_t)groups * ENTRY_BYTES) != crc)
		return ERR_CORRUPT;
	*ret = (struct chunk){ .bytes = p, .len = len, .points = n, .groups = groups, .ordered = p[1] & 1 };
	return 0;
}

void chunk_group_get(const struct chunk *c, unsigned group, struct chunk_group *ret)
{
	const unsigned char *p = c->bytes + HEAD_BYTES + (size_t)group * ENTRY_BYTES;

	memcpy(&ret->offset, p, 4);
	ret->points = p[4];
	ret->nonfinite = p[5];
	ret->min_at = p[6];
	ret->max_at = p[7];
	memcpy(&ret->min_step, p + 8, 8);
	memcpy(&ret->max_step, p + 16, 8);
	memcpy(&ret->min_time, p + 24, 8);
	memcpy(&ret->max_time, p + 32, 8);
	memcpy(&ret->min, p + 40, 8);
	memcpy(&ret->max, p + 48, 8);
	memcpy(&ret->sum, p + 56, 8);
	memcpy(&ret->crc, p + 64, 4);
}

/* The chunk ends with 8 bytes of padding, so the 8-byte load below stays inside. */
static uint64_t get_bits(const unsigned char *p, unsigned at, unsigned width)
{
	unsigned shift = at & 7;
	uint64_t lo;

	memcpy(&lo, p + (at >> 3), 8);
	lo >>= shift;
	if (shift + width > 64)
		lo |= (uint64_t)p[(at >> 3) + 8] << (64 - shift);
	return width == 64 ? lo : lo & ((UINT64_C(1) << width) - 1);
}

/* Decodes one column of n words; *ret_mode has the flags of enum column_mode. */
static int get_chunk_column(const unsigned char **p, const unsigned char *end, uint64_t *w, unsigned n,
			    unsigned *ret_mode)
{
	unsigned mode, width, i, packed;
	uint64_t base, low = 0;

	if (end - *p < 2)
		return ERR_CORRUPT;
	mode = *(*p)++;
	width = *(*p)++;
	if (width > 64 || !little_get_varint(p, end, &base))
		return ERR_CORRUPT;
	if ((mode & COLUMN_DELTA) && !little_get_varint(p, end, &low))
		return ERR_CORRUPT;
	packed = mode & COLUMN_DELTA ? n - 1 : n;
	if ((size_t)(end - *p) < ((size_t)packed * width + 7) / 8)
		return ERR_CORRUPT;
	if (mode & COLUMN_DELTA) {
		low = (uint64_t)little_unzigzag(low);
		w[0] = base;
		for (i = 1; i < n; i++)
			w[i] = w[i - 1] + low + (width ? get_bits(*p, (i - 1) * width, width) : 0);
	} else {
		for (i = 0; i < n; i++)
			w[i] = base + (width ? get_bits(*p, i * width, width) : 0);
	}
	*p += ((size_t)packed * width + 7) / 8;
	*ret_mode = mode;
	return 0;
}

void chunk_group_span(const struct chunk *c, unsigned group, struct chunk_span *ret)
{
	struct chunk_group g, next;
	size_t end = c->len - CHUNK_PAD;

	chunk_group_get(c, group, &g);
	if (group + 1 < c->groups) {
		chunk_group_get(c, group + 1, &next);
		end = next.offset < end ? next.offset : end;
	}
	*ret = (struct chunk_span){ g.offset, g.offset < end ? (uint32_t)(end - g.offset) : 0, g.crc, g.points };
}

int chunk_span_points(const struct chunk_span *at, const void *bytes, struct sum_point *ret)
{
	const unsigned char *p = bytes, *end = p + at->len;
	uint64_t w[CHUNK_GROUP];
	unsigned i, mode, n = at->points;

	if (n < 1 || n > CHUNK_GROUP || crc32c(0, p, at->len) != at->crc || get_chunk_column(&p, end, w, n, &mode))
		return ERR_CORRUPT;
	for (i = 0; i < n; i++)
		ret[i].step = (int64_t)w[i];
	if (get_chunk_column(&p, end, w, n, &mode))
		return ERR_CORRUPT;
	for (i = 0; i < n; i++)
		ret[i].time = f64_of_word(w[i]);
	if (get_chunk_column(&p, end, w, n, &mode))
		return ERR_CORRUPT;
	for (i = 0; i < n; i++)
		ret[i].value = mode & COLUMN_F32 ? f64_of_word32(w[i]) : f64_of_word(w[i]);
	return 0;
}

int chunk_group_points(const struct chunk *c, unsigned group, struct sum_point *ret)
{
	struct chunk_span at;

	chunk_group_span(c, group, &at);
	return at.len ? chunk_span_points(&at, c->bytes + at.offset, ret) : ERR_CORRUPT;
}

int chunk_points(const struct chunk *c, struct sum_point *ret)
{
	unsigned i;

	for (i = 0; i < c->groups; i++) {
		struct chunk_group g;

		chunk_group_get(c, i, &g);
		if (g.points != (i + 1 < c->groups ? CHUNK_GROUP : c->points - i * CHUNK_GROUP))
			return ERR_CORRUPT;
		if (chunk_group_points(c, i, ret + (size_t)i * CHUNK_GROUP))
			return ERR_CORRUPT;
	}
	return 0;
}

/* --- rows of the ingest log ----------------------------------------------------------------------------------- */

#define POINT_BYTES_MAX 26

void pack_begin(struct buf *b)
{
	buf_add_u64le(b, FORMAT);
}

void pack_series(struct buf *b, int64_t series_id, const struct sum_point *points, size_t n)
{
	uint64_t before = 0, diff;
	unsigned char *start, *p;
	size_t i;

	start = (unsigned char *)buf_reserve(b, n * POINT_BYTES_MAX + 20);
	if (!start)
		return;
	p = little_put_varint(start, (uint64_t)series_id);
	p = little_put_varint(p, n);
	for (i = 0; i < n; i++) {
		diff = (uint64_t)points[i].step - before;
		before = (uint64_t)points[i].step;
		p = little_put_varint(p, (diff << 1) ^ (uint64_t)((int64_t)diff >> 63));
		memcpy(p, &points[i].time, 8);
		memcpy(p + 8, &points[i].value, 8);
		p += 16;
	}
	b->len += (size_t)(p - start);
}

void pack_end(struct buf *b)
{
	uint32_t crc;

	if (buf_failed(b))
		return;
	crc = crc32c(0, b->data + HEAD_BYTES, b->len - HEAD_BYTES);
	memcpy(b->data + 4, &crc, 4);
}

int pack_open(struct pack_reader *ret, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t crc;

	if (len < HEAD_BYTES || p[0] != FORMAT)
		return ERR_CORRUPT;
	memcpy(&crc, p + 4, 4);
	if (crc32c(0, p + HEAD_BYTES, len - HEAD_BYTES) != crc)
		return ERR_CORRUPT;
	*ret = (struct pack_reader){ .at = p + HEAD_BYTES, .end = p + len };
	return 0;
}

int pack_next_series(struct pack_reader *r, int64_t *ret_series_id, uint64_t *ret_points)
{
	struct sum_point skipped;
	uint64_t id;
	int rc;

	while ((rc = pack_next_point(r, &skipped)) > 0)
		;
	if (rc < 0)
		return rc;
	if (r->at == r->end)
		return 0;
	if (!little_get_varint(&r->at, r->end, &id) || !little_get_varint(&r->at, r->end, &r->left))
		return ERR_CORRUPT;
	r->step = 0;
	*ret_series_id = (int64_t)id;
	*ret_points = r->left;
	return 1;
}

int pack_next_point(struct pack_reader *r, struct sum_point *ret)
{
	uint64_t u;

	if (!r->left)
		return 0;
	if (!little_get_varint(&r->at, r->end, &u) || r->end - r->at < 16)
		return ERR_CORRUPT;
	r->step = (int64_t)((uint64_t)r->step + ((u >> 1) ^ (uint64_t)(-(int64_t)(u & 1))));
	ret->step = r->step;
	memcpy(&ret->time, r->at, 8);
	memcpy(&ret->value, r->at + 8, 8);
	r->at += 16;
	r->left--;
	return 1;
}
