/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_page.c: a Thrift header, then the levels (uncompressed in version 2 pages), then the compressed values. */
#include "trainer/data/container/parquet_page.h"

#include <stdlib.h>
#include <zlib.h>

#include "tracker/base/little.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/wire_formats.h"

#define HEAD_FIRST ((size_t)4 << 10)   /* first read of a header */
#define HEAD_MOST ((size_t)4 << 20) /* a header may contain the smallest and largest value */

struct page_header {
	struct parquet_page page;
	int64_t packed, unpacked; /* bytes */
	uint32_t crc;
	bool has_crc, is_packed;
	size_t bytes; /* size of the header itself */
};

/* Parses the data, dictionary or version 2 data header inside a page header; v that does not fit a count becomes
 * UINT32_MAX. */
static void read_kind_header(struct thrift *t, enum parquet_page_kind kind, struct page_header *h)
{
	static const int encodings[] = { [PARQUET_DATA] = 2, [PARQUET_DICTIONARY] = 2, [PARQUET_DATA_2] = 4 };
	struct thrift_field f = { 0, THRIFT_STOP };

	while (thrift_next(t, &f)) {
		int64_t v;

		if (f.type == THRIFT_STRUCT || f.type == THRIFT_BYTES) {
			thrift_skip(t, f.type);
			continue;
		}
		v = thrift_number(t, f.type);
		if (f.id == 1)
			h->page.values = v < 0 || v > INT32_MAX ? UINT32_MAX : (uint32_t)v;
		else if (f.id == encodings[kind])
			h->page.encoding = (int)v;
		else if (kind == PARQUET_DATA_2 && (f.id == 5 || f.id == 6))
			h->page.levels[f.id == 5] = v < 0 || v > INT32_MAX ? UINT32_MAX : (uint32_t)v;
		else if (kind == PARQUET_DATA_2 && f.id == 7)
			h->is_packed = v != 0;
	}
}

/* Parses a page header. Returns false if it is damaged or incomplete. */
static bool parse_page_header(const unsigned char *bytes, size_t n, struct page_header *ret)
{
	struct thrift t = { bytes, bytes + n, false };
	struct thrift_field f = { 0, THRIFT_STOP };
	struct page_header h = { .is_packed = true, .page = { .encoding = -1, .values = UINT32_MAX } };

	while (thrift_next(&t, &f)) {
		if (f.type == THRIFT_STRUCT && (f.id == 5 || f.id == 7 || f.id == 8))
			read_kind_header(&t,
					 f.id == 5   ? PARQUET_DATA
					 : f.id == 7 ? PARQUET_DICTIONARY
						     : PARQUET_DATA_2,
					 &h);
		else if (f.id == 1)
			h.page.kind = (enum parquet_page_kind)thrift_number(&t, f.type);
		else if (f.id == 2)
			h.unpacked = thrift_number(&t, f.type);
		else if (f.id == 3)
			h.packed = thrift_number(&t, f.type);
		else if (f.id == 4) {
			h.crc = (uint32_t)thrift_number(&t, f.type);
			h.has_crc = true;
		} else
			thrift_skip(&t, f.type);
	}
	h.bytes = (size_t)(t.at - bytes);
	*ret = h;
	return !t.bad;
}

static int fail_damaged_page(const char *why, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s", why);
}

/* Reads a header, whose length is unknown before it is parsed: retries with larger reads. */
static int read_page_header(struct page_header *ret, const struct byte_source *file, uint64_t at, uint64_t end,
			    struct err *err)
{
	bool whole = false;
	int rc = 0;

	for (size_t n = HEAD_FIRST; !rc && !whole && n <= HEAD_MOST; n *= 32) {
		size_t got = end - at < n ? (size_t)(end - at) : n;
		unsigned char *bytes = mem_alloc(got);

		rc = file->read(file->user, at, bytes, got, err);
		whole = !rc && parse_page_header(bytes, got, ret);
		free(bytes);
		if (got < n)
			break;
	}
	return rc ? rc : whole ? 0 : fail_damaged_page("the header of a page is damaged", err);
}

static bool is_sound_page_header(const struct page_header *h, uint64_t room)
{
	const struct parquet_page *p = &h->page;

	return h->packed >= 0 && (uint64_t)h->packed <= room && h->unpacked >= 0 && h->unpacked <= INT32_MAX &&
	       p->kind <= PARQUET_DATA_2 && (p->kind == PARQUET_INDEX || p->values <= INT32_MAX) &&
	       (uint64_t)p->levels[0] + p->levels[1] <= (uint64_t)h->unpacked &&
	       (uint64_t)p->levels[0] + p->levels[1] <= (uint64_t)h->packed;
}

static bool unpack_parquet_page(const struct page_header *h, int codec, const unsigned char *packed, unsigned char *to)
{
	size_t levels = (size_t)h->page.levels[0] + h->page.levels[1];

	memcpy(to, packed, levels);
	return decompress(h->is_packed ? codec : DECOMPRESS_NONE, packed + levels, (size_t)h->packed - levels,
			  to + levels, (size_t)h->unpacked - levels);
}

/* Reads the page's compressed bytes and checks their CRC. The caller frees *ret. */
static int read_packed_page(unsigned char **ret, const struct byte_source *file, uint64_t at,
			    const struct page_header *h, struct err *err)
{
	unsigned char *packed = mem_alloc((size_t)h->packed);
	int rc = file->read(file->user, at, packed, (size_t)h->packed, err);

	if (!rc && h->has_crc && crc32(0, packed, (unsigned)h->packed) != h->crc)
		rc = fail_damaged_page("a page has a wrong checksum", err);
	if (rc)
		free(packed);
	else
		*ret = packed;
	return rc;
}

int parquet_page_read(struct parquet_page *ret, const struct parquet_page_place *p, struct err *err)
{
	const uint64_t at = p->at;
	unsigned char *packed = NULL, *to;
	struct page_header h = { .packed = -1 };
	int rc = read_page_header(&h, p->file, at, p->end, err);

	if (rc)
		return rc;
	if (!is_sound_page_header(&h, p->end - at - h.bytes))
		return fail_damaged_page("a page exceeds its column chunk", err);
	if (h.unpacked > PARQUET_PAGE_MAX)
		return err_set(err, ERR_USAGE,
			       "has a page of %lld MiB: expected at most %u MiB: write the file with a smaller "
			       "row_group_size or data_page_size (pyarrow)",
			       (long long)divide_up(h.unpacked, 1 << 20), (PARQUET_PAGE_MAX + 1) >> 20);
	to = mem_alloc((size_t)h.unpacked);
	rc = read_packed_page(&packed, p->file, at + h.bytes, &h, err);
	if (!rc && !unpack_parquet_page(&h, p->codec, packed, to))
		rc = fail_damaged_page("a page cannot be decompressed", err);
	free(packed);
	if (rc) {
		free(to);
		return rc;
	}
	*ret = h.page;
	ret->bytes = to;
	ret->n = (uint32_t)h.unpacked;
	ret->next = at + h.bytes + (uint64_t)h.packed;
	ret->plain = p->codec == DECOMPRESS_NONE || !h.is_packed ? at + h.bytes : 0;
	return 0;
}

/* ---- number streams: the RLE/bit-packed hybrid, and delta encoding ---- */

#define MINIBLOCKS_MAX 64

/* Extracts `width` bits (at most 64) from bit number `bit`, least significant first. Bits after the end read as 0. */
static uint64_t extract_bits(const unsigned char *at, const unsigned char *end, uint64_t bit, int width)
{
	uint64_t v = 0;

	for (int got = 0; got < width;) {
		uint64_t byte = (bit + (uint64_t)got) / 8;
		int from = (int)((bit + (uint64_t)got) % 8), n = 8 - from < width - got ? 8 - from : width - got;

		if (byte < (uint64_t)(end - at))
			v |= (uint64_t)(at[byte] >> from & ((1 << n) - 1)) << got;
		got += n;
	}
	return v;
}

/* Reads the header of the next run: an even number is twice the length of a run of one value; an odd one encodes the
 * number of bit-packed groups of eight. */
static bool begin_parquet_run(struct parquet_runs *r)
{
	uint64_t head;
	size_t bytes = ((size_t)r->width + 7) / 8;

	if (!little_get_varint(&r->at, r->end, &head) || head < 2)
		return false;
	if (head & 1) {
		r->packed = (head >> 1) > UINT32_MAX ? 0 : (head >> 1) * 8;
		r->bit = 0;
		return r->packed && (r->at < r->end || !r->width);
	}
	if ((size_t)(r->end - r->at) < bytes)
		return false;
	r->run = head >> 1;
	r->value = (uint32_t)extract_bits(r->at, r->end, 0, r->width);
	r->at += bytes;
	return true;
}

bool parquet_runs_next(struct parquet_runs *r, uint32_t *ret)
{
	if (!r->run && !r->packed && !begin_parquet_run(r))
		return false;
	if (r->run) {
		r->run--;
		*ret = r->value;
		return true;
	}
	if (r->width && r->at >= r->end)
		return false;
	*ret = (uint32_t)extract_bits(r->at, r->end, (uint64_t)r->bit, r->width);
	r->bit += r->width;
	r->at += r->bit / 8 < r->end - r->at ? r->bit / 8 : r->end - r->at;
	r->bit %= 8;
	r->packed--;
	return true;
}

struct deltas {
	uint64_t block, miniblocks, each; /* values per block, miniblocks per block, values per miniblock */
	uint64_t value;			  /* the last value; differences wrap around */
};

/* Decodes `left` values of one block into ret. */
static bool decode_delta_block(struct deltas *d, const unsigned char **at, const unsigned char *end, int64_t *ret,
			       uint64_t left)
{
	unsigned char widths[MINIBLOCKS_MAX];
	uint64_t least;

	if (!little_get_varint(at, end, &least) || (uint64_t)(end - *at) < d->miniblocks)
		return false;
	for (uint64_t i = 0; i < d->miniblocks; i++)
		widths[i] = *(*at)++;
	for (uint64_t part = 0; part < d->miniblocks && left; part++) {
		uint64_t bytes = d->each * widths[part] / 8, n = left < d->each ? left : d->each;

		if (widths[part] > 64 || bytes > (uint64_t)(end - *at))
			return false;
		for (uint64_t i = 0; i < n; i++) {
			d->value += (uint64_t)little_unzigzag(least) +
				    extract_bits(*at, end, i * widths[part], widths[part]);
			*ret++ = (int64_t)d->value;
		}
		left -= n;
		*at += bytes;
	}
	return true;
}

bool parquet_deltas(const unsigned char **at, const unsigned char *end, int64_t *ret, uint32_t n)
{
	struct deltas d;
	uint64_t count, first;

	if (!little_get_varint(at, end, &d.block) || !little_get_varint(at, end, &d.miniblocks) ||
	    !little_get_varint(at, end, &count) || !little_get_varint(at, end, &first) || count != n)
		return false;
	if (!d.miniblocks || d.miniblocks > MINIBLOCKS_MAX || d.block % d.miniblocks || d.block > 1 << 20)
		return false;
	d.each = d.block / d.miniblocks;
	if (!d.each || d.each % 8)
		return false;
	d.value = (uint64_t)little_unzigzag(first);
	if (n)
		ret[0] = (int64_t)d.value;
	for (uint64_t done = 1; done < n;) {
		uint64_t left = n - done < d.block ? n - done : d.block;

		if (!decode_delta_block(&d, at, end, ret + done, left))
			return false;
		done += left;
	}
	return true;
}
