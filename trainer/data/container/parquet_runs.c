/* parquet_runs.c: decodes the number streams of pages: the RLE/bit-packed hybrid, and delta encoding. */
#include "trainer/data/container/parquet_inside.h"

#define MINIBLOCKS_MAX 64
#define VARINT_BYTES 10

static bool read_run_varint(const unsigned char **at, const unsigned char *end, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < VARINT_BYTES && *at < end; i++) {
		unsigned char byte = *(*at)++;

		*ret |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			return true;
	}
	return false;
}

static int64_t decode_zigzag64(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

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

	if (!read_run_varint(&r->at, r->end, &head) || head < 2)
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

	if (!read_run_varint(at, end, &least) || (uint64_t)(end - *at) < d->miniblocks)
		return false;
	for (uint64_t i = 0; i < d->miniblocks; i++)
		widths[i] = *(*at)++;
	for (uint64_t part = 0; part < d->miniblocks && left; part++) {
		uint64_t bytes = d->each * widths[part] / 8, n = left < d->each ? left : d->each;

		if (widths[part] > 64 || bytes > (uint64_t)(end - *at))
			return false;
		for (uint64_t i = 0; i < n; i++) {
			d->value += (uint64_t)decode_zigzag64(least) +
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

	if (!read_run_varint(at, end, &d.block) || !read_run_varint(at, end, &d.miniblocks) ||
	    !read_run_varint(at, end, &count) || !read_run_varint(at, end, &first) || count != n)
		return false;
	if (!d.miniblocks || d.miniblocks > MINIBLOCKS_MAX || d.block % d.miniblocks || d.block > 1 << 20)
		return false;
	d.each = d.block / d.miniblocks;
	if (!d.each || d.each % 8)
		return false;
	d.value = (uint64_t)decode_zigzag64(first);
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
