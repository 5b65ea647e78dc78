/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_page.c: a Thrift header, then the levels (uncompressed in version 2 pages), then the compressed values. */
#include "trainer/data/container/parquet_page.h"

#include <stdlib.h>
#include <zlib.h>

#include "tracker/base/little.h"
#include "trainer/data/container/wire_formats.h"

#define HEAD_FIRST ((size_t)4 << 10)   /* first read of a header */
#define STEP_BYTES ((size_t)512 << 10) /* of an uncompressed page: scanned per call */
#define JUMP_BYTES ((size_t)256)       /* read after a skipped literal */
#define WINDOW_BYTES (STEP_BYTES + JUMP_BYTES)
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
		unsigned char *bytes = malloc(got + 1);

		if (!bytes)
			return err_nomem(err, "the header of a page");
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

	return h->packed >= 0 && (uint64_t)h->packed <= room && h->unpacked >= 0 && h->unpacked <= PARQUET_PAGE_MAX &&
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
	unsigned char *packed = malloc((size_t)h->packed + 1);
	int rc = packed ? file->read(file->user, at, packed, (size_t)h->packed, err)
			: err_set(err, ERR_NOMEM, "out of memory: a page of %lld bytes", (long long)h->packed);

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
		return fail_damaged_page("a page exceeds its column chunk, or is larger than 256 MiB", err);
	to = malloc((size_t)h.unpacked + 1);
	if (!to)
		rc = err_set(err, ERR_NOMEM, "out of memory: a page of %lld bytes", (long long)h.unpacked);
	if (!rc)
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

static size_t count_snappy_blocks(size_t n)
{
	return (n + DECOMPRESS_SNAPPY_BLOCK - 1) / DECOMPRESS_SNAPPY_BLOCK;
}

/* A moving window over a page's compressed bytes. */
struct packed_window {
	const struct byte_source *file;
	uint64_t begin; /* start of the compressed bytes in the file */
	size_t n;
	unsigned char *bytes; /* WINDOW_BYTES; `have` bytes from offset `first` are valid */
	size_t first, have;
	bool whole; /* reads everything in order: the way is long, and the system reads ahead */
	int rc;
	struct err *err;
};

/* Moves the window. After a jump it reads few bytes; without one it doubles the read. */
static void move_packed_window(struct packed_window *w, size_t place)
{
	const size_t end = w->first + w->have;
	size_t most = WINDOW_BYTES;

	if (!w->whole)
		most = place > end || !w->have ? JUMP_BYTES : 2 * w->have < most ? 2 * w->have : most;
	w->first = w->whole && place > end ? end : place;
	w->have = w->n - w->first < most ? w->n - w->first : most;
}

static const unsigned char *view_packed_bytes(void *user, size_t place, size_t *ret_n)
{
	struct packed_window *w = user;

	while (!w->rc && place + DECOMPRESS_LOOK > w->first + w->have && w->first + w->have < w->n) {
		move_packed_window(w, place);
		w->rc = w->file->read(w->file->user, w->begin + w->first, w->bytes, w->have, w->err);
	}
	*ret_n = w->first + w->have - place;
	return w->rc ? NULL : w->bytes + (place - w->first);
}

/* Checks the page's CRC if it has one. */
static int check_packed_page(const struct byte_source *file, uint64_t at, const struct page_header *h, struct err *err)
{
	unsigned char *packed;
	int rc = h->has_crc ? read_packed_page(&packed, file, at, h, err) : 0;

	if (h->has_crc && !rc)
		free(packed);
	return rc;
}

int parquet_page_map(struct parquet_page_map *ret, const struct byte_source *file, uint64_t at, uint32_t least,
		     struct err *err)
{
	struct parquet_page_map m = { .begin = 0 };
	struct page_header h = { .packed = -1 };
	int rc = read_page_header(&h, file, at, file->bytes, err);

	if (rc)
		return rc;
	if (!is_sound_page_header(&h, file->bytes - at - h.bytes) || h.unpacked < (int64_t)least || !h.is_packed)
		return 1;
	m.levels = h.page.levels[0] + h.page.levels[1];
	m.begin = at + h.bytes + m.levels;
	m.n = (uint32_t)h.unpacked;
	m.packed = (uint32_t)(h.packed - m.levels);
	rc = check_packed_page(file, at + h.bytes, &h, err);
	if (rc)
		return rc;
	m.block = malloc((count_snappy_blocks(m.n - m.levels) + 1) * sizeof(*m.block));
	if (!m.block)
		return err_set(err, ERR_NOMEM, "out of memory: the block table of a page of %u bytes", m.n);
	*ret = m;
	return 0;
}

/* Number of Snappy blocks from the first one up to the end of the range. */
static size_t count_blocks_until(const struct parquet_page_map *m, const struct parquet_page_range *r)
{
	const size_t room = m->n - m->levels, begin = r->at < m->levels ? 0 : r->at - m->levels;

	return count_snappy_blocks(r->n < room - (begin < room ? begin : room) ? begin + r->n : room);
}

bool parquet_page_reaches(const struct parquet_page_map *m, const struct parquet_page_range *r)
{
	return m->walk.known > count_blocks_until(m, r);
}

int parquet_page_grow(struct parquet_page_map *m, const struct byte_source *file, const struct parquet_page_range *r,
		      struct err *err)
{
	const size_t left = count_blocks_until(m, r) * DECOMPRESS_SNAPPY_BLOCK - m->walk.done;
	struct packed_window w = { .file = file,
				   .begin = m->begin,
				   .n = m->packed,
				   .first = m->walk.at,
				   .whole = left > STEP_BYTES,
				   .err = err };
	bool sound;

	w.bytes = malloc(WINDOW_BYTES);
	if (!w.bytes)
		return err_nomem(err, "a part of a page");
	sound = decompress_snappy_walk(&(struct decompress_look){ view_packed_bytes, &w, m->packed, m->n - m->levels },
				       m->walk.done + (w.whole ? STEP_BYTES : left), &m->walk, m->block);
	free(w.bytes);
	return w.rc ? w.rc : !sound;
}

/* A Snappy block in the file. */
struct snappy_block {
	const struct byte_source *file;
	uint64_t at;
	size_t packed, n; /* compressed and uncompressed size */
	bool raw;
};

static struct snappy_block locate_snappy_block(const struct parquet_page_map *m, const struct byte_source *file,
					       size_t k)
{
	size_t left = m->n - m->levels - k * DECOMPRESS_SNAPPY_BLOCK;

	return (struct snappy_block){ .file = file,
				      .at = m->begin + m->block[k].at,
				      .packed = m->block[k + 1].at - m->block[k].at,
				      .n = left < DECOMPRESS_SNAPPY_BLOCK ? left : DECOMPRESS_SNAPPY_BLOCK,
				      .raw = m->block[k].raw };
}

/* Copies n bytes of a block, from offset `skip`. */
static int read_snappy_block(const struct snappy_block *b, size_t skip, size_t n, void *to, struct err *err)
{
	unsigned char *packed;
	int rc;

	if (b->raw)
		return b->file->read(b->file->user, b->at + b->packed - b->n + skip, to, n, err);
	packed = malloc(b->packed + b->n + 1);
	if (!packed)
		return err_nomem(err, "a part of a page");
	rc = b->file->read(b->file->user, b->at, packed, b->packed, err);
	if (!rc && !decompress_snappy_blocks(packed, b->packed, packed + b->packed, b->n))
		rc = fail_damaged_page("a page cannot be decompressed", err);
	if (!rc)
		memcpy(to, packed + b->packed + skip, n);
	free(packed);
	return rc;
}

int parquet_page_part(const struct parquet_page_map *m, const struct byte_source *file,
		      const struct parquet_page_range *r, void *to, struct err *err)
{
	unsigned char *into = to;
	const size_t n = r->n, from = r->at - m->levels;
	int rc = 0;

	if (r->at < m->levels || n > m->n - r->at || !n)
		return fail_damaged_page("a page has changed since it was indexed", err);
	for (size_t done = 0, part; !rc && done < n; done += part) {
		const struct snappy_block b = locate_snappy_block(m, file, (from + done) / DECOMPRESS_SNAPPY_BLOCK);
		const size_t skip = (from + done) % DECOMPRESS_SNAPPY_BLOCK;

		part = n - done < b.n - skip ? n - done : b.n - skip;
		rc = read_snappy_block(&b, skip, part, into + done, err);
	}
	return rc;
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
