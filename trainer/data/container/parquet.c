/* SPDX-License-Identifier: Apache-2.0 */
/* parquet.c: the columns of a file. The footer is found from the end of the file. The pages of a column chunk are
 * walked in order, the dictionary first. */
#include "trainer/data/container/parquet.h"

#include <stdlib.h>

#include "tracker/base/little.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/parquet_page.h"
#include "trainer/data/container/samples.h"

#define MAGIC "PAR1"
#define TAIL 8 /* length of the footer, and the magic */
#define FOOTER_MAX ((uint32_t)256 << 20)

bool parquet_probe(const void *head)
{
	return !memcmp(head, MAGIC, 4);
}

/* Reads the footer into p, with checks of the magic and of the length. */
static int read_parquet_footer(struct parquet *p, struct err *err)
{
	const struct byte_source *f = p->file;
	unsigned char tail[TAIL], *bytes;
	uint32_t n;
	int rc = f->bytes < TAIL + 4 ? 0 : f->read(f->user, f->bytes - TAIL, tail, TAIL, err);

	if (rc)
		return rc;
	n = f->bytes < TAIL + 4 ? 0 : little_get_u32(tail);
	if (f->bytes < TAIL + 4 || memcmp(tail + 4, MAGIC, 4) || n > f->bytes - TAIL - 4 || n > FOOTER_MAX)
		return err_set(
			err, ERR_USAGE,
			"%.200s: is not a complete Parquet file: it has no footer at its end (truncated or encrypted)",
			f->name);
	bytes = mem_alloc((size_t)n);
	rc = f->read(f->user, f->bytes - TAIL - n, bytes, n, err);
	if (!rc && !parquet_footer(p, bytes, n))
		rc = err_set(err, ERR_USAGE, "%.200s: the footer of the Parquet file is damaged", f->name);
	free(bytes);
	return rc;
}

int parquet_open(struct parquet **ret, const struct byte_source *file, struct err *err)
{
	struct parquet *p = mem_zalloc(sizeof(*p));
	int rc;

	p->file = file;
	rc = read_parquet_footer(p, err);
	if (rc) {
		parquet_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void parquet_close(struct parquet *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->n_groups; i++)
		free(p->group[i].chunk);
	free(p->group);
	free(p->column);
	free(p->node);
	free(p->levels);
	free(p->repeats);
	free(p->wide);
	free(p->metadata);
	free(p);
}

int parquet_columns(const struct parquet *p)
{
	return p->n_columns;
}

const struct parquet_column *parquet_column(const struct parquet *p, int column)
{
	return &p->column[column];
}

int parquet_find(const struct parquet *p, const char *name)
{
	for (int i = 0; i < p->n_columns; i++)
		if (!strcmp(p->column[i].name, name))
			return i;
	return -1;
}

int parquet_groups(const struct parquet *p)
{
	return p->n_groups;
}

int64_t parquet_rows(const struct parquet *p, int group)
{
	return p->group[group].rows;
}

const char *parquet_metadata(const struct parquet *p)
{
	return p->metadata ? p->metadata : "";
}

/* ---- values ---- */

/* A decoded value of a page. */
struct parquet_value {
	int64_t number;
	uint32_t begin, n; /* position and length of bytes in the page */
};

struct parquet_cursor {
	struct parquet *p;
	int column;
	const struct parquet_chunk *chunk;
	struct parquet_page page, dictionary;
	uint64_t page_at, next_at, dictionary_at;
	struct parquet_value *dictionary_value; /* values of the dictionary page */
	uint32_t n_dictionary;
	struct parquet_value *value; /* non-null values of the page */
	uint32_t n_values, next_value;
	struct parquet_runs repeats, levels; /* of the page's next entry */
	uint32_t n_entries;		     /* of the page, that are left */
	int64_t left;			     /* entries that later pages may have */
};

static int fail_damaged_values(struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the values of a page are damaged");
}

static bool decode_plain_bytes(const struct parquet_page *page, uint32_t at, struct parquet_value *ret, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (page->n - at < 4)
			return false;
		ret[i] = (struct parquet_value){ .begin = at + 4, .n = little_get_u32(page->bytes + at) };
		if (ret[i].n > page->n - at - 4)
			return false;
		at += 4 + ret[i].n;
	}
	return true;
}

static bool decode_plain_numbers(const struct parquet_page *page, uint32_t at, struct parquet_value *ret, uint32_t n,
				 bool wide)
{
	uint32_t each = wide ? 8 : 4;

	if ((page->n - at) / each < n)
		return false;
	for (uint32_t i = 0; i < n; i++, at += each)
		ret[i].number =
			wide ? (int64_t)little_get_u64(page->bytes + at) : (int32_t)little_get_u32(page->bytes + at);
	return true;
}

/* Truth values: one bit each. */
static bool decode_plain_bits(const struct parquet_page *page, uint32_t at, struct parquet_value *ret, uint32_t n)
{
	if (((uint64_t)n + 7) / 8 > page->n - at)
		return false;
	for (uint32_t i = 0; i < n; i++)
		ret[i].number = page->bytes[at + i / 8] >> i % 8 & 1;
	return true;
}

/* Truth values as runs, after the length of them. */
static bool decode_run_bits(const struct parquet_page *page, uint32_t at, struct parquet_value *ret, uint32_t n)
{
	struct parquet_runs r = { .width = 1 };
	uint32_t bit;

	if (page->n - at < 4 || little_get_u32(page->bytes + at) > page->n - at - 4)
		return !n;
	r.at = page->bytes + at + 4;
	r.end = r.at + little_get_u32(page->bytes + at);
	for (uint32_t i = 0; i < n; i++) {
		if (!parquet_runs_next(&r, &bit))
			return false;
		ret[i].number = bit;
	}
	return true;
}

static bool decode_delta_values(const struct parquet_page *page, uint32_t at, struct parquet_value *ret, uint32_t n,
				bool lengths)
{
	const unsigned char *from = page->bytes + at, *end = page->bytes + page->n;
	int64_t *numbers = mem_alloc((size_t)n * sizeof(*numbers));
	bool good = parquet_deltas(&from, end, numbers, n);
	uint64_t begin = (uint64_t)(from - page->bytes);

	for (uint32_t i = 0; good && i < n; i++) {
		ret[i].number = numbers[i];
		if (!lengths)
			continue;
		good = numbers[i] >= 0 && (uint64_t)numbers[i] <= page->n - begin;
		ret[i] = (struct parquet_value){ .begin = (uint32_t)begin, .n = (uint32_t)numbers[i] };
		begin += good ? (uint64_t)numbers[i] : 0;
	}
	free(numbers);
	return good;
}

/* Looks up the values of a page in the dictionary. Their positions refer to the dictionary page: see
 * make_parquet_cell. */
static bool decode_dictionary_values(struct parquet_cursor *w, uint32_t at)
{
	struct parquet_runs r = { .at = w->page.bytes + at + 1, .end = w->page.bytes + w->page.n };
	uint32_t index;

	if (at >= w->page.n)
		return !w->n_values;
	r.width = w->page.bytes[at];
	if (r.width > 32)
		return false;
	for (uint32_t i = 0; i < w->n_values; i++) {
		if (!parquet_runs_next(&r, &index) || index >= w->n_dictionary)
			return false;
		w->value[i] = w->dictionary_value[index];
	}
	return true;
}

static bool uses_dictionary(const struct parquet_cursor *w)
{
	return w->page.encoding == PARQUET_RLE_DICTIONARY || w->page.encoding == PARQUET_PLAIN_DICTIONARY;
}

static int refuse_encoding(const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "has the unsupported encoding %s: write it as PLAIN or with a dictionary", what);
}

/* Decodes the values of the data page from offset `at` on, by the page's encoding. */
static int decode_page_values(struct parquet_cursor *w, uint32_t at, struct err *err)
{
	const enum parquet_type type = w->p->column[w->column].type;
	bool bytes = type == PARQUET_BYTES, wide = w->p->wide[w->column], good;

	switch (w->page.encoding) {
	case PARQUET_PLAIN:
		good = bytes		       ? decode_plain_bytes(&w->page, at, w->value, w->n_values)
		       : type == PARQUET_TRUTH ? decode_plain_bits(&w->page, at, w->value, w->n_values)
					       : decode_plain_numbers(&w->page, at, w->value, w->n_values, wide);
		break;
	case PARQUET_RLE:
		good = type == PARQUET_TRUTH && decode_run_bits(&w->page, at, w->value, w->n_values);
		break;
	case PARQUET_PLAIN_DICTIONARY:
	case PARQUET_RLE_DICTIONARY:
		good = decode_dictionary_values(w, at);
		break;
	case PARQUET_DELTA_NUMBERS:
		good = type == PARQUET_NUMBER && decode_delta_values(&w->page, at, w->value, w->n_values, false);
		break;
	case PARQUET_DELTA_LENGTHS:
		good = bytes && decode_delta_values(&w->page, at, w->value, w->n_values, true);
		break;
	case PARQUET_DELTA_BYTES:
		return refuse_encoding("DELTA_BYTE_ARRAY", err);
	case PARQUET_SPLIT:
		return refuse_encoding("BYTE_STREAM_SPLIT", err);
	default:
		return refuse_encoding("(unknown)", err);
	}
	return good ? 0 : fail_damaged_values(err);
}

/* ---- entries ---- */

/* Cuts the levels at *at from a page, of which version 1 states their bytes in front of them. Returns false if they
 * exceed the page. */
static bool cut_levels(const struct parquet_page *page, uint32_t n, int most, uint32_t *at, struct parquet_runs *ret)
{
	if (page->kind == PARQUET_DATA && most) {
		if (page->n - *at < 4)
			return false;
		n = little_get_u32(page->bytes + *at);
		*at += 4;
		if (n > page->n - *at)
			return false;
	}
	*ret = (struct parquet_runs){ .at = page->bytes + *at, .end = page->bytes + *at + n };
	while (most >> ret->width)
		ret->width++;
	*at += n;
	return true;
}

/* The value of a FLOAT or DOUBLE column, whose bits are in v. */
static double parquet_real(const struct parquet_value *v, bool wide)
{
	float narrow;
	double real;

	memcpy(&narrow, &v->number, sizeof(narrow));
	memcpy(&real, &v->number, sizeof(real));
	return wide ? real : (double)narrow;
}

static struct parquet_cell make_parquet_cell(const struct parquet_cursor *w, const struct parquet_value *h)
{
	bool dictionary_value = uses_dictionary(w);
	const struct parquet_page *page = dictionary_value ? &w->dictionary : &w->page;
	struct parquet_cell c = { .number = h->number };

	if (w->p->column[w->column].type == PARQUET_REAL)
		c.real = parquet_real(h, w->p->wide[w->column]);
	if (w->p->column[w->column].type != PARQUET_BYTES)
		return c;
	c.bytes = page->bytes + h->begin;
	c.n = h->n;
	c.offset = page->plain ? page->plain + h->begin : dictionary_value ? w->dictionary_at : w->page_at;
	c.packed = page->plain ? 0 : samples_packed(w->chunk->codec, h->begin);
	return c;
}

/* Counts the non-null values of a page. Returns false if the levels are damaged. */
static bool count_present_values(struct parquet_cursor *w)
{
	uint32_t whole = (uint32_t)w->p->levels[w->column], level = whole;
	struct parquet_runs levels = w->levels;

	w->n_values = 0;
	for (uint32_t i = 0; i < w->page.values; i++) {
		if (whole && !parquet_runs_next(&levels, &level))
			return false;
		w->n_values += level == whole;
	}
	return true;
}

static int decode_data_page(struct parquet_cursor *w, struct err *err)
{
	const struct parquet_page *page = &w->page;
	uint32_t at = 0;

	if (page->values > w->left || !cut_levels(page, page->levels[0], w->p->repeats[w->column], &at, &w->repeats) ||
	    !cut_levels(page, page->levels[1], w->p->levels[w->column], &at, &w->levels) || !count_present_values(w))
		return fail_damaged_values(err);
	free(w->value);
	w->value = mem_array((size_t)w->n_values, sizeof(*w->value));
	w->next_value = 0;
	w->n_entries = page->values;
	if (!w->p->repeats[w->column])
		w->left -= page->values;
	return decode_page_values(w, at, err);
}

static int decode_dictionary_page(struct parquet_cursor *w, struct err *err)
{
	bool bytes = w->p->column[w->column].type == PARQUET_BYTES;

	if (w->dictionary.bytes || w->page.values > PARQUET_ROWS_MAX)
		return fail_damaged_values(err);
	w->dictionary = w->page;
	w->dictionary_at = w->page_at;
	w->page.bytes = NULL;
	w->n_dictionary = w->dictionary.values;
	w->dictionary_value = mem_array((size_t)w->n_dictionary, sizeof(*w->dictionary_value));
	return (bytes ? decode_plain_bytes(&w->dictionary, 0, w->dictionary_value, w->n_dictionary)
		      : decode_plain_numbers(&w->dictionary, 0, w->dictionary_value, w->n_dictionary,
					     w->p->wide[w->column]))
		       ? 0
		       : fail_damaged_values(err);
}

static int decode_next_page(struct parquet_cursor *w, struct err *err)
{
	const struct parquet_page_place place = { w->p->file, w->next_at, w->chunk->end, w->chunk->codec };
	int rc;

	free(w->page.bytes);
	w->page.bytes = NULL;
	rc = parquet_page_read(&w->page, &place, err);
	if (rc)
		return rc;
	w->page_at = w->next_at;
	w->next_at = w->page.next;
	if (w->page.kind == PARQUET_DICTIONARY)
		return decode_dictionary_page(w, err);
	return w->page.kind == PARQUET_INDEX ? 0 : decode_data_page(w, err);
}

int parquet_cursor_open(struct parquet_cursor **ret, struct parquet *p, int group, int column, struct err *err)
{
	const struct parquet_chunk *chunk = &p->group[group].chunk[column];
	struct parquet_cursor *w;

	if (!decompress_can(chunk->codec))
		return err_set(err, ERR_USAGE,
			       "is compressed with %s, which this build lacks: use zstd, gzip or snappy",
			       decompress_name(chunk->codec));
	*ret = w = mem_zalloc(sizeof(*w));
	w->p = p;
	w->column = column;
	w->chunk = chunk;
	w->next_at = chunk->begin;
	w->left = p->repeats[column] ? PARQUET_ROWS_MAX : p->group[group].rows;
	return 0;
}

void parquet_cursor_close(struct parquet_cursor *w)
{
	if (!w)
		return;
	free(w->dictionary_value);
	free(w->value);
	free(w->dictionary.bytes);
	free(w->page.bytes);
	free(w);
}

int parquet_cursor_next(struct parquet_cursor *w, struct parquet_entry *ret, struct err *err)
{
	const uint32_t whole = (uint32_t)w->p->levels[w->column];
	int rc = 0;

	while (!rc && !w->n_entries && w->next_at < w->chunk->end)
		rc = decode_next_page(w, err);
	if (rc)
		return rc;
	*ret = (struct parquet_entry){ .end = !w->n_entries, .defined = whole, .cell.null = true };
	if (ret->end)
		return 0;
	w->n_entries--;
	if ((w->p->repeats[w->column] && !parquet_runs_next(&w->repeats, &ret->repeats)) ||
	    (whole && !parquet_runs_next(&w->levels, &ret->defined)) ||
	    (ret->defined == whole && w->next_value == w->n_values))
		return fail_damaged_values(err);
	if (ret->defined == whole)
		ret->cell = make_parquet_cell(w, &w->value[w->next_value++]);
	return 0;
}

int parquet_walk(struct parquet *p, int group, int column, const struct parquet_sink *to, struct err *err)
{
	struct parquet_cursor *c = NULL;
	struct parquet_entry e;
	int rc = parquet_cursor_open(&c, p, group, column, err);

	for (int64_t row = 0; !rc && row < p->group[group].rows; row++) {
		rc = parquet_cursor_next(c, &e, err);
		if (!rc)
			rc = e.end ? fail_damaged_values(err) : to->each(to->user, row, &e.cell, err);
	}
	parquet_cursor_close(c);
	return rc;
}
