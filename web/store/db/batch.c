/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c: many rows in one statement, and arrays in PostgreSQL's binary format. */
#include "web/store/db/engine.h"

#include <endian.h>
#include <math.h>

/* --- arrays --------------------------------------------------------------------------------------------------- */

void array_begin(struct buf *b)
{
	buf_init(b, SIZE_MAX);
	buf_addc(b, '{');
}

void array_text(struct buf *b, const char *text)
{
	buf_adds(b, b->len > 1 ? ",\"" : "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_addc(b, '\\');
		buf_addc(b, *text);
	}
	buf_addc(b, '"');
}

void array_int(struct buf *b, int64_t v)
{
	buf_addf(b, b->len > 1 ? ",%lld" : "%lld", (long long)v);
}

const char *array_end(struct buf *b)
{
	buf_addc(b, '}');
	return b->data;
}

const char *array_of(struct buf *b, const int64_t *v, size_t n)
{
	size_t i;

	array_begin(b);
	for (i = 0; i < n; i++)
		array_int(b, v[i]);
	return array_end(b);
}

#define COUNT_AT 12 /* offset of the element count in the head */

/* OIDs of PostgreSQL types, which never change. */
enum { TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_TEXT = 25, TYPE_FLOAT8 = 701 };

static void put_array_word(struct buf *b, uint32_t v)
{
	v = htobe32(v);
	buf_add(b, &v, sizeof(v));
}

static uint32_t array_type_of(char letter)
{
	switch (letter) {
	case 'd':
		return TYPE_FLOAT8;
	case 't':
		return TYPE_TEXT;
	case 'b':
		return TYPE_BYTEA;
	default:
		return TYPE_INT8;
	}
}

/* Number of dimensions, NULL flag, type, number of elements, lower bound. */
static void put_array_head(struct buf *b, char letter)
{
	const uint32_t head[] = { 1, 1, array_type_of(letter), 0, 1 };

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		put_array_word(b, head[i]);
}

static void put_array_bytes(struct buf *b, const void *at, size_t n)
{
	put_array_word(b, at ? (uint32_t)n : UINT32_MAX);
	if (at)
		buf_add(b, at, n);
}

static void put_array_number(struct buf *b, uint64_t bits, bool null)
{
	bits = htobe64(bits);
	put_array_bytes(b, null ? NULL : &bits, sizeof(bits));
}

static void put_array_real(struct buf *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_array_number(b, bits, isnan(v));
}

void db_batch_init(struct db_batch *b, struct db *d, enum db_query q, const char *fmt)
{
	memset(b, 0, sizeof(*b));
	b->d = d;
	b->q = q;
	b->fmt = fmt;
	for (size_t i = 0; fmt[i]; i++)
		buf_init(&b->columns[i], SIZE_MAX);
}

/* Appends a row to the arrays. */
static void add_array_row(struct db_batch *b, va_list ap)
{
	struct buf *to = b->columns;
	const char *letter;
	const void *at;
	int64_t i;

	for (letter = b->fmt; *letter; letter++, to++) {
		if (!b->rows)
			put_array_head(to, *letter);
		if (*letter == 'd') {
			put_array_real(to, va_arg(ap, double));
		} else if (*letter == 't' || *letter == 'b') {
			at = va_arg(ap, const void *);
			put_array_bytes(to, at, *letter == 'b' ? va_arg(ap, size_t) : at ? strlen(at) : 0);
		} else {
			i = va_arg(ap, int64_t);
			put_array_number(to, (uint64_t)i, *letter == 'x' && i == INT64_MIN);
		}
	}
	b->rows++;
}

int db_batch_add(struct db_batch *b, struct err *err, ...)
{
	va_list ap;
	int rc = 0;

	va_start(ap, err);
	if (db_shared(b->d))
		add_array_row(b, ap);
	else
		rc = b->d->engine->run(b->d, &(struct db_call){ b->q, b->fmt, &ap }, err);
	va_end(ap);
	return rc;
}

void db_batch_drop(struct db_batch *b)
{
	for (size_t i = 0; b->fmt[i]; i++)
		buf_done(&b->columns[i]);
	b->rows = 0;
}

/* The letter of an array is the capital of its element's. */
static char array_letter(char letter)
{
	return letter == 'x' ? 'I' : (char)(letter - 'a' + 'A');
}

int db_batch_run(struct db_batch *b, struct err *err)
{
	struct db_value v[DB_VALUES_MAX];
	uint32_t rows = htobe32((uint32_t)b->rows);
	int n, rc;

	if (!b->rows)
		return 0;
	for (n = 0; b->fmt[n]; n++) {
		struct buf *c = &b->columns[n];

		memcpy(c->data + COUNT_AT, &rows, sizeof(rows));
		v[n] = (struct db_value){ .kind = array_letter(b->fmt[n]), .at = c->data, .n = c->len };
	}
	rc = db_run_values(b->d, b->q, v, n, err);
	db_batch_drop(b);
	return rc;
}
