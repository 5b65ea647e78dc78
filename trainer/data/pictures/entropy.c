/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.c: first copies the data without stuffed zeros, so that 8 bytes can be loaded anywhere. One table look-up
 * gives run, value and length of most coefficients. */
#include "config.h"

#include "trainer/data/pictures/entropy.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_JPEGINT_H
#include <jpegint.h>
#endif
#include <jerror.h>

#include "tracker/mem/mem.h"
#include "trainer/data/pictures/codec.h"

#define LOOK 10	   /* bits per table look-up */
#define PAD 4096   /* zeros after the data: more than one MCU can read */
#define LONGEST 16 /* longest code in bits */
#define CONTEXT 4  /* rows above and below the wanted ones that smooth chroma upsampling reads, with reserve */

/* Kinds of a table entry, by what the next LOOK bits contain: code and value; only the code; or less. */
enum { WHOLE = 0, CODE = 0x40, LONG = 0x80, KIND = 0xc0, LENGTH = 0x3f };

struct huffman_table {
	uint32_t look[1 << LOOK];   /* value (CODE: bits of the value) << 16 | run << 8 | kind | length */
	int32_t last[LONGEST + 2];  /* largest code of each length, -1: none */
	int32_t shift[LONGEST + 1]; /* code + shift: index into symbol */
	uint8_t symbol[256];
};

struct bit_reader {
	const uint8_t *next; /* next byte to refill from */
	uint64_t bits;	     /* unread bits, left-aligned */
	int have;
};

struct mcu_span { /* half open */
	int64_t from, to;
};

struct entropy {
	struct huffman_table dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
	uint8_t *data; /* wanted segments without stuffing, then PAD zeros */
	size_t capacity;
	size_t *begin; /* [segments + 1]: start of each segment in data */
	size_t begin_bytes;
	struct mcu_span row, column;	  /* wanted MCUs */
	int64_t mcus, interval, segments; /* in the scan, and per segment; one segment without restart markers */
	int64_t segment;		  /* current segment */
	int64_t left;			  /* its remaining MCUs */
	struct bit_reader at;
	int last_dc[MAX_COMPS_IN_SCAN];
	bool idle; /* skips to the next segment: this one is unwanted or exhausted */
};

struct entropy *entropy_new(void)
{
	return mem_zalloc(sizeof(struct entropy));
}

void entropy_free(struct entropy *e)
{
	if (e) {
		free(e->data);
		free(e->begin);
	}
	free(e);
}

#ifdef HAVE_JPEGINT_H

/* Natural index of each coefficient in zigzag order. */
static const uint8_t natural[64] = { 0,	 1,  8,	 16, 9,	 2,  3,	 10, 17, 24, 32, 25, 18, 11, 4,	 5,
				     12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,	 14, 21, 28,
				     35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
				     58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63 };

/* Converts n bits to a signed value: those below half the range are negative. */
static inline int extend_sign(uint32_t v, int n)
{
	return n ? (int)v + ((int)((v >> (n - 1)) & 1) - 1) * ((1 << n) - 1) : 0;
}

/* Builds the table entry for LOOK bits that begin with a code of `length` bits for the symbol. End of block is a run
 * that leaves the block. 16 zeros are a run of 15 plus one. */
static uint32_t make_table_entry(uint32_t bits, int length, uint8_t symbol, bool dc)
{
	int size = symbol & 15, run = dc ? 0 : symbol >> 4, left = LOOK - length - size;
	uint32_t v;

	if (!size && !dc && run < 15)
		run = 64;
	if (left < 0)
		return (uint32_t)size << 16 | (uint32_t)run << 8 | CODE | (uint32_t)length;
	v = bits >> left & ((1u << size) - 1);
	return (uint32_t)extend_sign(v, size) << 16 | (uint32_t)run << 8 | WHOLE | (uint32_t)(length + size);
}

/* Builds a look-up table from counts and symbols that the library has checked. */
static void make_huffman_table(struct huffman_table *t, const JHUFF_TBL *from, bool dc)
{
	int32_t code = 0, n = 0;

	memcpy(t->symbol, from->huffval, sizeof(t->symbol));
	for (int i = 0; i < 1 << LOOK; i++)
		t->look[i] = LONG;
	for (int length = 1; length <= LONGEST; length++, code <<= 1) {
		t->shift[length] = n - code;
		for (int i = 0; i < from->bits[length]; i++, code++, n++) {
			int free_bits = LOOK - length;

			for (uint32_t k = 0; free_bits >= 0 && k < 1u << free_bits; k++) {
				uint32_t bits = (uint32_t)code << free_bits | k;

				t->look[bits] = make_table_entry(bits, length, t->symbol[n], dc);
			}
		}
		t->last[length] = from->bits[length] ? code - 1 : -1;
	}
}

static inline void refill_bits(struct bit_reader *r)
{
	uint64_t more;

	memcpy(&more, r->next, sizeof(more));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	more = __builtin_bswap64(more);
#endif
	r->bits |= more >> r->have;
	r->next += (63 - r->have) >> 3;
	r->have |= 56;
}

static inline void consume_bits(struct bit_reader *r, int n)
{
	r->bits <<= n;
	r->have -= n;
}

/* Decodes a code longer than LOOK bits to an entry of kind CODE. */
static uint32_t decode_long_code(struct bit_reader *r, const struct huffman_table *t, j_decompress_ptr d, bool dc)
{
	for (int length = LOOK + 1; length <= LONGEST; length++) {
		int32_t code = (int32_t)(r->bits >> (64 - length));

		if (code <= t->last[length]) {
			uint8_t symbol = t->symbol[(code + t->shift[length]) & 255];

			return make_table_entry(0, length, symbol, dc);
		}
	}
	WARNMS(d, JWRN_HUFF_BAD_CODE);
	return (dc ? 0u : 64u << 8) | CODE | LONGEST;
}

/* Decodes the value of an entry that is not WHOLE; *entry becomes kind CODE. Requires at least 31 bits. */
static inline int decode_split_value(struct bit_reader *r, const struct huffman_table *t, uint32_t *entry,
				     j_decompress_ptr d, bool dc)
{
	uint32_t v;
	int size;

	if (*entry & LONG)
		*entry = decode_long_code(r, t, d, dc);
	consume_bits(r, (int)(*entry & LENGTH));
	size = (int)(*entry >> 16);
	v = size ? (uint32_t)(r->bits >> (64 - size)) : 0;
	consume_bits(r, size);
	return extend_sign(v, size);
}

static inline int decode_dc_value(struct bit_reader *r, const struct huffman_table *t, j_decompress_ptr d)
{
	uint32_t x;

	refill_bits(r);
	x = t->look[r->bits >> (64 - LOOK)];
	if (x & KIND)
		return decode_split_value(r, t, &x, d, true);
	consume_bits(r, (int)(x & LENGTH));
	return (int32_t)x >> 16;
}

/* Decodes the 63 AC coefficients. block NULL: skips them. */
static inline void decode_ac_values(struct bit_reader *r, const struct huffman_table *t, j_decompress_ptr d,
				    JCOEF *block)
{
	for (int k = 1; k < 64;) {
		uint32_t x;
		int v;

		refill_bits(r);
		x = t->look[r->bits >> (64 - LOOK)];
		/* 56 bits suffice: four codes of at most 10 bits, and 10 to look at */
		for (int i = 0; i < 4 && !(x & KIND); i++) {
			consume_bits(r, (int)(x & LENGTH));
			k += (int)(x >> 8 & 0xff);
			if (k > 63)
				return;
			if (block)
				block[natural[k]] = (JCOEF)((int32_t)x >> 16);
			if (++k > 63)
				return;
			x = t->look[r->bits >> (64 - LOOK)];
		}
		if (!(x & KIND))
			continue;
		refill_bits(r);
		v = decode_split_value(r, t, &x, d, false);
		k += (int)(x >> 8 & 0xff);
		if (k > 63)
			return;
		if (block)
			block[natural[k]] = (JCOEF)v;
		k++;
	}
}

/* A segment that wraps to the next row counts as if it filled both rows. */
static bool is_segment_wanted(const struct entropy *e, const struct jpeg_decompress_struct *d, int64_t segment)
{
	int64_t first = segment * e->interval, last = first + e->interval - 1, per_row = (int64_t)d->MCUs_per_row;
	struct mcu_span row;

	last = last < e->mcus ? last : e->mcus - 1;
	row = (struct mcu_span){ first / per_row, last / per_row };
	if (row.to < e->row.from || row.from >= e->row.to)
		return false;
	return row.from != row.to || (last % per_row >= e->column.from && first % per_row < e->column.to);
}

static void begin_restart_segment(struct entropy *e, const struct jpeg_decompress_struct *d, int64_t segment)
{
	e->segment = segment;
	e->left = e->interval;
	e->idle = segment >= e->segments || !is_segment_wanted(e, d, segment);
	memset(e->last_dc, 0, sizeof(e->last_dc));
	if (!e->idle)
		e->at = (struct bit_reader){ .next = e->data + e->begin[segment] };
}

static inline bool is_segment_exhausted(const struct entropy *e)
{
	return (e->at.next - e->data) * 8 - e->at.have > (ptrdiff_t)e->begin[e->segment + 1] * 8;
}

/* Decodes one MCU; replaces the library's function. Skips it if its segment is unwanted. */
static boolean decode_mcu(j_decompress_ptr d, JBLOCKROW *blocks)
{
	struct entropy *e = d->client_data;
	struct bit_reader r; /* in registers */

	if (!e->left)
		begin_restart_segment(e, d, e->segment + 1);
	e->left--;
	if (e->idle)
		return TRUE;
	r = e->at;
	for (int i = 0; i < d->blocks_in_MCU; i++) {
		int c = d->MCU_membership[i];
		const jpeg_component_info *info = d->cur_comp_info[c];

		e->last_dc[c] =
			(int)((unsigned)e->last_dc[c] + (unsigned)decode_dc_value(&r, &e->dc[info->dc_tbl_no], d));
		if (blocks) {
			blocks[i][0][0] = (JCOEF)e->last_dc[c];
			decode_ac_values(&r, &e->ac[info->ac_tbl_no], d, blocks[i][0]);
		} else {
			decode_ac_values(&r, &e->ac[info->ac_tbl_no], d, NULL);
		}
	}
	e->at = r;
	e->idle = is_segment_exhausted(e);
	if (e->idle)
		WARNMS(d, JWRN_HIT_MARKER);
	return TRUE;
}

/* Copies data from *from to *to up to the next marker, without the stuffed zeros after 0xff. to NULL: skips them.
 * Returns the marker, to which *from then points; 0: none. */
static int copy_unstuffed_segment(const uint8_t **from, const uint8_t *end, uint8_t **to)
{
	while (*from < end) {
		const uint8_t *mark = memchr(*from, 0xff, (size_t)(end - *from)), *upto = mark ? mark : end;

		if (to)
			memcpy(*to, *from, (size_t)(upto - *from));
		if (to)
			*to += upto - *from;
		*from = upto;
		while (end - *from > 1 && (*from)[1] == 0xff) /* fill bytes */
			++*from;
		if (end - *from < 2)
			return 0;
		if ((*from)[1])
			return (*from)[1];
		if (to)
			*(*to)++ = 0xff;
		*from += 2;
	}
	return 0;
}

/* Returns false on a restart marker out of sequence; the library knows how to resynchronise. */
static bool unstuff_segments(struct entropy *e, const struct jpeg_decompress_struct *d)
{
	const uint8_t *from = d->src->next_input_byte, *end = from + d->src->bytes_in_buffer;
	size_t room = (size_t)(end - from) + PAD, list = ((size_t)e->segments + 1) * sizeof(*e->begin);
	uint8_t *to;

	if (e->segments > end - from)
		return false;
	grow_to(&e->data, &e->capacity, room);
	grow_to(&e->begin, &e->begin_bytes, list);
	to = e->data;
	for (int64_t s = 0; s < e->segments; s++) {
		int marker;

		e->begin[s] = (size_t)(to - e->data);
		marker = copy_unstuffed_segment(&from, end, is_segment_wanted(e, d, s) ? &to : NULL);
		if (s + 1 == e->segments)
			break;
		if (marker != JPEG_RST0 + s % 8)
			return false;
		from += 2;
	}
	e->begin[e->segments] = (size_t)(to - e->data);
	memset(to, 0, PAD);
	return true;
}

static bool is_supported_scan(const struct jpeg_decompress_struct *d)
{
	return !d->progressive_mode && !d->arith_code && d->data_precision == 8 && !d->buffered_image &&
	       d->comps_in_scan == d->num_components && d->comps_in_scan <= MAX_COMPS_IN_SCAN && !d->unread_marker &&
	       d->entropy;
}

static int64_t count_mcus_covering(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Side of a block in output pixels. */
static int scaled_block_side(const struct jpeg_decompress_struct *d)
{
#if JPEG_LIB_VERSION >= 70
	return d->min_DCT_h_scaled_size;
#else
	return d->min_DCT_scaled_size;
#endif
}

/* Converts the wanted pixels to MCUs. In a file with one component an MCU is a block, whatever its sampling factors. */
static void set_wanted_part(struct entropy *e, const struct jpeg_decompress_struct *d, const struct entropy_part *p)
{
	int width = d->max_h_samp_factor * scaled_block_side(d), height = d->max_v_samp_factor * scaled_block_side(d);

	e->mcus = (int64_t)d->MCUs_per_row * d->MCU_rows_in_scan;
	e->interval = d->restart_interval ? d->restart_interval : e->mcus;
	e->segments = count_mcus_covering(e->mcus, e->interval);
	e->row = (struct mcu_span){ 0, d->MCU_rows_in_scan };
	e->column = (struct mcu_span){ 0, d->MCUs_per_row };
	if (!p || (d->comps_in_scan == 1 && d->max_h_samp_factor * d->max_v_samp_factor > 1))
		return;
	e->row = (struct mcu_span){ (p->y0 > CONTEXT ? p->y0 - CONTEXT : 0) / height,
				    count_mcus_covering(p->y1 + CONTEXT, height) };
	e->column = (struct mcu_span){ p->x0 / width, count_mcus_covering(p->x1, width) };
}

static bool make_huffman_tables(struct entropy *e, const struct jpeg_decompress_struct *d)
{
	for (int c = 0; c < d->comps_in_scan; c++) {
		int dc = d->cur_comp_info[c]->dc_tbl_no, ac = d->cur_comp_info[c]->ac_tbl_no;
		bool seen_dc = false, seen_ac = false;

		if (dc < 0 || dc >= NUM_HUFF_TBLS || ac < 0 || ac >= NUM_HUFF_TBLS || !d->dc_huff_tbl_ptrs[dc] ||
		    !d->ac_huff_tbl_ptrs[ac])
			return false;
		for (int k = 0; k < c; k++) {
			seen_dc |= d->cur_comp_info[k]->dc_tbl_no == dc;
			seen_ac |= d->cur_comp_info[k]->ac_tbl_no == ac;
		}
		if (!seen_dc)
			make_huffman_table(&e->dc[dc], d->dc_huff_tbl_ptrs[dc], true);
		if (!seen_ac)
			make_huffman_table(&e->ac[ac], d->ac_huff_tbl_ptrs[ac], false);
	}
	return true;
}

bool entropy_take(struct entropy *e, struct jpeg_decompress_struct *d, const struct entropy_part *part)
{
	if (!is_supported_scan(d) || !make_huffman_tables(e, d))
		return false;
	set_wanted_part(e, d, part);
	if (!unstuff_segments(e, d))
		return false;
	begin_restart_segment(e, d, 0);
	d->client_data = e;
	d->entropy->decode_mcu = decode_mcu;
	return true;
}

#else

bool entropy_take(struct entropy *e, struct jpeg_decompress_struct *d, const struct entropy_part *part)
{
	(void)e;
	(void)d;
	(void)part;
	return false;
}

#endif
