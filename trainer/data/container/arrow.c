/* SPDX-License-Identifier: Apache-2.0 */
/* arrow.c: reads messages one after the other: a schema, then batches of dictionaries and of rows. A batch lists the
 * buffers of its columns, which follow it. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/little.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/arrow_schema.h"
#include "trainer/data/container/decompress.h"

#define FILE_MAGIC "ARROW1\0\0"
#define MESSAGE_MAX ((uint32_t)64 << 20)
#define ROWS_MAX ((int64_t)1 << 24) /* rows per batch */
#define DICTIONARY_MOST 64	    /* batches of a dictionary */

enum message { SCHEMA = 1, DICTIONARY = 2, BATCH = 3 };

/* The loaded values of a column in a batch. Owned. */
struct arrow_values {
	unsigned char *fixed; /* numbers, bits, or the offsets of strings */
	unsigned char *text;
	uint64_t text_bytes;
	bool *valid; /* [row] */
	int64_t rows;
	bool good; /* false: a buffer is damaged */
};

struct arrow_reader {
	struct samples *to;
	const struct byte_source *file;
	uint32_t object;
	bool has_schema;
	struct arrow_schema schema;
	struct arrow_values dictionary[DICTIONARY_MOST]; /* dictionary of the labels: a batch, and later additions */
	int n_dictionary;
	int64_t row; /* file row of the next batch's first row */
};

bool arrow_probe(const void *head)
{
	const unsigned char *at = head;
	uint32_t n = little_get_u32(at + 4);

	return !memcmp(head, FILE_MAGIC, 6) ||
	       (little_get_u32(at) == UINT32_MAX && n && n <= MESSAGE_MAX && n % 8 == 0);
}

static int refuse_arrow(const struct arrow_reader *s, const char *why, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.150s: %s", s->file->name, why);
}

/* ---- batches ---- */

struct batch {
	const struct arrow_reader *reader;
	const struct flatbuffer *f;
	uint32_t buffers, n_buffers; /* offset and length of the vector of buffers */
	int64_t rows;
	uint64_t body, body_bytes; /* position in the file */
	int packing;		   /* compression of the buffers: enum arrow_packing; 0: none */
};

/* Position of a buffer in the file. Returns false if it exceeds the body. */
static bool locate_buffer(const struct batch *b, int i, uint64_t *ret_at, uint64_t *ret_n)
{
	uint64_t at, n;

	if ((uint32_t)i >= b->n_buffers)
		return false;
	at = little_get_u64(b->f->bytes + b->buffers + 16 * (uint32_t)i);
	n = little_get_u64(b->f->bytes + b->buffers + 16 * (uint32_t)i + 8);
	*ret_at = b->body + at;
	*ret_n = n;
	return at <= b->body_bytes && n <= b->body_bytes - at;
}

/* Position of a buffer's values. */
struct arrow_extent {
	uint64_t at, bytes; /* compressed: `at` includes the 8-byte length; bytes: uncompressed size */
	int packing;
};

/* Sets 0 bytes if the buffer exceeds the body. */
static int locate_buffer_values(const struct batch *b, int i, struct arrow_extent *ret, struct err *err)
{
	struct arrow_extent p = { .packing = b->packing };
	int64_t unpacked;
	int rc;

	*ret = (struct arrow_extent){ 0 };
	if (!locate_buffer(b, i, &p.at, &p.bytes) || (p.packing && p.bytes < ARROW_BUFFER_HEAD))
		return 0;
	rc = p.packing ? arrow_buffer_size(b->reader->file, p.at, &unpacked, err) : 0;
	if (rc)
		return rc;
	if (p.packing && unpacked == -1)
		p = (struct arrow_extent){ p.at + ARROW_BUFFER_HEAD, p.bytes - ARROW_BUFFER_HEAD, 0 };
	else if (p.packing)
		p.bytes = unpacked < 0 ? 0 : (uint64_t)unpacked;
	*ret = p;
	return 0;
}

/* Loads the first n bytes of a buffer. Returns 0 with *ret NULL if it is shorter or exceeds the body. The caller
 * frees *ret. */
static int load_buffer(const struct batch *b, int i, uint64_t n, unsigned char **ret, struct err *err)
{
	const struct byte_source *file = b->reader->file;
	struct err why = ERR_INIT;
	struct arrow_extent p;
	int rc;

	*ret = NULL;
	rc = locate_buffer_values(b, i, &p, err);
	if (rc || p.bytes < n)
		return rc;
	*ret = mem_alloc((size_t)n);
	rc = p.packing ? arrow_buffer_read(&(struct arrow_buffer){ file, p.at, p.packing }, *ret, (size_t)n, &why)
		       : file->read(file->user, p.at, *ret, (size_t)n, err);
	if (rc) {
		free(*ret);
		*ret = NULL;
	}
	if (rc == ERR_CORRUPT)
		return 0;
	return rc && p.packing ? err_set(err, rc, "%s", why.text) : rc;
}

/* Clears the rows that a column's validity bitmap marks as null. An empty bitmap: no row is null. Sets *good to
 * false if it is damaged. */
static int apply_validity_bitmap(const struct batch *b, int i, bool *valid, bool *good, struct err *err)
{
	unsigned char *bits;
	uint64_t at, n;
	int rc;

	if (locate_buffer(b, i, &at, &n) && !n)
		return 0;
	rc = load_buffer(b, i, ((uint64_t)b->rows + 7) / 8, &bits, err);
	*good &= bits != NULL;
	for (int64_t row = 0; bits && row < b->rows; row++)
		valid[row] &= bits[row / 8] >> row % 8 & 1;
	free(bits);
	return rc;
}

static int apply_validity_bitmaps(const struct batch *b, const struct arrow_column *c, bool *valid, bool *good,
				  struct err *err)
{
	int rc = apply_validity_bitmap(b, c->buffer, valid, good, err);

	for (int i = 0; !rc && i < c->n_parents; i++)
		rc = apply_validity_bitmap(b, c->parents[i], valid, good, err);
	return rc;
}

static int64_t decode_integer(const unsigned char *bytes, const struct arrow_type *type, int64_t row)
{
	const unsigned char *at = bytes + row * (type->width / 8);

	switch (type->width) {
	case 8:
		return type->is_signed ? (signed char)*at : *at;
	case 16:
		return type->is_signed ? (int16_t)little_get_u16(at) : (int64_t)little_get_u16(at);
	case 32:
		return type->is_signed ? (int32_t)little_get_u32(at) : (int64_t)little_get_u32(at);
	default:
		return (int64_t)little_get_u64(at);
	}
}

static double decode_real(const unsigned char *bytes, const struct arrow_type *type, int64_t row)
{
	const uint32_t low = type->width == 32 ? little_get_u32(bytes + 4 * row) : 0;
	const uint64_t bits = type->width == 64 ? little_get_u64(bytes + 8 * row) : 0;
	float narrow;
	double wide;

	memcpy(&narrow, &low, sizeof(narrow));
	memcpy(&wide, &bits, sizeof(wide));
	return type->width == 32 ? (double)narrow : wide;
}

static void free_arrow_values(struct arrow_values *v)
{
	free(v->fixed);
	free(v->text);
	free(v->valid);
	*v = (struct arrow_values){ .rows = 0 };
}

/* Loads the values of a column of labels. type: of what the batch has: values, or codes. free_arrow_values frees *ret,
 * also after a failure. */
static int load_arrow_values(const struct batch *b, const struct arrow_column *c, const struct arrow_type *type,
			     struct arrow_values *ret, struct err *err)
{
	const uint64_t rows = (uint64_t)b->rows;
	const bool text = type->kind == ARROW_TEXT;
	int rc;

	*ret = (struct arrow_values){ .rows = b->rows, .valid = mem_alloc((size_t)rows), .good = true };
	memset(ret->valid, 1, (size_t)rows);
	rc = apply_validity_bitmaps(b, c, ret->valid, &ret->good, err);
	if (!rc)
		rc = load_buffer(b, c->buffer + 1, ((rows + text) * (unsigned)type->width + 7) / 8, &ret->fixed, err);
	if (!rc && ret->fixed && text) {
		ret->text_bytes = (uint64_t)decode_integer(ret->fixed, type, b->rows);
		if (ret->text_bytes <= ARROW_BUFFER_MAX)
			rc = load_buffer(b, c->buffer + 2, ret->text_bytes, &ret->text, err);
	}
	ret->good &= ret->fixed && (ret->text || !text);
	return rc;
}

/* The label of a row of values. */
static struct sample_label decode_arrow_label(const struct arrow_values *v, const struct arrow_type *type, int64_t row)
{
	int64_t begin, end;

	if (!v->valid[row])
		return label_missing();
	switch (type->kind) {
	case ARROW_INTEGER:
		return label_of_number(decode_integer(v->fixed, type, row));
	case ARROW_TRUTH:
		return label_of_number(v->fixed[row / 8] >> row % 8 & 1);
	case ARROW_REAL:
		return label_of_real(decode_real(v->fixed, type, row));
	default:
		begin = decode_integer(v->fixed, type, row);
		end = decode_integer(v->fixed, type, row + 1);
		if (begin < 0 || end < begin || (uint64_t)end > v->text_bytes)
			return (struct sample_label){ .wrong = "its label exceeds the file" };
		return label_of_text((const char *)v->text + begin, (size_t)(end - begin));
	}
}

/* The label of a row of a batch, by the dictionary if the column has one. */
static struct sample_label find_arrow_label(const struct arrow_reader *s, const struct arrow_values *v, int64_t row)
{
	const struct arrow_column *c = &s->schema.label;
	int64_t code;

	if (!c->coded)
		return decode_arrow_label(v, &c->type, row);
	if (!v->valid[row])
		return label_missing();
	code = decode_integer(v->fixed, &c->code, row);
	for (int i = 0; code >= 0 && i < s->n_dictionary; code -= s->dictionary[i++].rows)
		if (code < s->dictionary[i].rows)
			return decode_arrow_label(&s->dictionary[i], &c->type, code);
	return (struct sample_label){ .wrong = "its label is not in the dictionary" };
}

/* The buffers of a batch that are read. */
struct arrow_rows {
	bool *valid; /* pictures */
	unsigned char *offsets;
	struct arrow_extent data; /* of all pictures */
	struct arrow_values labels;
};

/* Adds row `row` of the batch as a sample, or notes why it is unusable. */
static void add_arrow_row(struct arrow_reader *s, const struct arrow_rows *r, int64_t row)
{
	const struct arrow_type offset = { ARROW_INTEGER, s->schema.image.type.width, true };
	int64_t begin = decode_integer(r->offsets, &offset, row), end = decode_integer(r->offsets, &offset, row + 1);
	const struct sample_label label = label_below(find_arrow_label(s, &r->labels, row), s->schema.n_classes);
	int packing = r->data.packing;
	bool inside = begin >= 0 && end >= begin && (uint64_t)end <= r->data.bytes && end - begin <= UINT32_MAX;
	const char *wrong = !r->valid[row] || begin == end ? "has no picture"
			    : !inside			   ? "its picture exceeds the file"
							   : label.wrong;
	char name[WEBDATASET_NAME_MAX];

	if (wrong) {
		samples_lose(s->to, "%.200s: row %lld: %s", s->file->name, (long long)(s->row + row), wrong);
		return;
	}
	snprintf(name, sizeof(name), "%.200s/%09lld.jpg", s->file->name, (long long)(s->row + row));
	samples_add_label(s->to,
			  &(struct sample){ .offset = packing ? r->data.at : r->data.at + (uint64_t)begin,
					    .packed = packing ? samples_packed(packing, (uint32_t)begin) : 0,
					    .bytes = (uint32_t)(end - begin),
					    .object = s->object },
			  name, &label);
}

/* Reads the buffers of a batch that its rows need. Sets *good to false if one is damaged. */
static int read_arrow_rows(const struct batch *b, struct arrow_rows *r, bool *good, struct err *err)
{
	const struct arrow_reader *s = b->reader;
	const struct arrow_column *image = &s->schema.image, *label = &s->schema.label;
	int rc = apply_validity_bitmaps(b, image, r->valid, good, err);

	if (!rc)
		rc = load_arrow_values(b, label, label->coded ? &label->code : &label->type, &r->labels, err);
	if (!rc)
		rc = load_buffer(b, image->buffer + 1, (uint64_t)(b->rows + 1) * (unsigned)image->type.width / 8,
				 &r->offsets, err);
	if (!rc)
		rc = locate_buffer_values(b, image->buffer + 2, &r->data, err);
	if (!rc && r->data.packing && r->data.bytes > ARROW_BUFFER_MAX)
		return refuse_arrow(
			s,
			"a batch holds more than 256 MiB of pictures in one compressed buffer: write smaller batches "
			"(max_chunksize), or use compression='uncompressed'",
			err);
	*good &= r->offsets && r->labels.good;
	return rc;
}

/* Adds all rows of a batch. A damaged batch loses its rows. */
static int add_arrow_rows(struct arrow_reader *s, const struct batch *b, struct err *err)
{
	struct arrow_rows r = { .valid = mem_alloc((size_t)b->rows) };
	bool good = true;
	int rc = 0;

	memset(r.valid, 1, (size_t)b->rows);
	if (b->rows)
		rc = read_arrow_rows(b, &r, &good, err);
	for (int64_t row = 0; !rc && good && row < b->rows; row++)
		add_arrow_row(s, &r, row);
	if (!rc && !good)
		samples_lose(s->to, "%.200s: the batch at byte %llu is damaged: its rows are skipped", s->file->name,
			     (unsigned long long)b->body);
	free(r.valid);
	free(r.offsets);
	free_arrow_values(&r.labels);
	return rc;
}

/* Parses the header of a record batch, whose body is already in *b. */
static int read_batch_header(const struct flatbuffer *f, uint32_t table, struct batch *b, struct err *err)
{
	const uint32_t packed = flatbuffer_table(f, table, 3);
	const struct arrow_reader *s = b->reader;

	if (packed)
		b->packing = arrow_packing_of(flatbuffer_number(f, packed, 0, 1, 0));
	if (b->packing < 0)
		return refuse_arrow(s,
				    "its batches use a compression that this build lacks (lz4, zstd): write them with "
				    "compression='uncompressed', or as Parquet",
				    err);
	b->f = f;
	b->rows = flatbuffer_number(f, table, 0, 8, 0);
	b->buffers = flatbuffer_vector(f, table, 2, 16, &b->n_buffers);
	if (!s->has_schema || b->rows < 0 || b->rows > ROWS_MAX)
		return refuse_arrow(s, "a batch has no schema, or more than 16 million rows", err);
	return 0;
}

static int read_record_batch(struct arrow_reader *s, const struct flatbuffer *f, uint32_t table,
			     const struct batch *where, struct err *err)
{
	struct batch b = *where;
	int rc = read_batch_header(f, table, &b, err);

	if (!rc)
		rc = add_arrow_rows(s, &b, err);
	s->row += rc ? 0 : b.rows;
	return rc;
}

static void free_dictionary(struct arrow_reader *s)
{
	while (s->n_dictionary)
		free_arrow_values(&s->dictionary[--s->n_dictionary]);
}

/* Keeps the values of the labels' dictionary. A delta appends values; else they replace earlier ones. */
static int read_dictionary_batch(struct arrow_reader *s, const struct flatbuffer *f, uint32_t table,
				 const struct batch *where, struct err *err)
{
	const struct arrow_column *label = &s->schema.label, values = { .type = label->type };
	struct arrow_values *to;
	struct batch b = *where;
	int rc;

	if (!s->has_schema || !label->coded || flatbuffer_number(f, table, 0, 8, 0) != label->dictionary)
		return 0;
	if (!flatbuffer_number(f, table, 2, 1, 0))
		free_dictionary(s);
	if (s->n_dictionary == DICTIONARY_MOST)
		return refuse_arrow(s, "the dictionary of the labels has too many parts: write it in one", err);
	rc = read_batch_header(f, flatbuffer_table(f, table, 1), &b, err);
	if (rc)
		return rc;
	to = &s->dictionary[s->n_dictionary++];
	rc = load_arrow_values(&b, &values, &values.type, to, err);
	return rc || to->good ? rc : refuse_arrow(s, "the dictionary of the labels is damaged", err);
}

/* ---- messages ---- */

static int dispatch_arrow_message(struct arrow_reader *s, const struct flatbuffer *f, struct batch *where,
				  struct err *err)
{
	uint32_t root = flatbuffer_root(f), header = flatbuffer_table(f, root, 2);
	int rc;

	switch (flatbuffer_number(f, root, 1, 1, 0)) {
	case SCHEMA:
		if (s->has_schema)
			return 0;
		s->has_schema = true;
		rc = arrow_schema_read(&s->schema, f, header, err);
		samples_use_columns(s->to, s->schema.image.name, s->schema.label.name);
		return rc;
	case DICTIONARY:
		return read_dictionary_batch(s, f, header, where, err);
	case BATCH:
		return read_record_batch(s, f, header, where, err);
	default:
		return 0;
	}
}

static int note_truncated_arrow(struct arrow_reader *s, uint64_t at)
{
	samples_lose(s->to, "%.200s: damaged or truncated at byte %llu: the rows after it are skipped", s->file->name,
		     (unsigned long long)at);
	return 0;
}

/* Reads the message at *at and advances *at past it. *ret_more is false after the last message. */
static int read_arrow_message(struct arrow_reader *s, uint64_t *at, bool *ret_more, struct err *err)
{
	const struct byte_source *file = s->file;
	unsigned char head[8], *bytes;
	struct flatbuffer f = { .n = 0 };
	struct batch where = { .reader = s };
	int64_t body;
	int rc;

	*ret_more = false;
	if (file->bytes - *at < sizeof(head)) /* a stream may end without an end marker */
		return file->bytes == *at ? 0 : note_truncated_arrow(s, *at);
	rc = file->read(file->user, *at, head, sizeof(head), err);
	if (rc)
		return rc;
	f.n = little_get_u32(head + 4);
	if (little_get_u32(head) == UINT32_MAX && !f.n)
		return 0;
	if (little_get_u32(head) != UINT32_MAX || f.n > MESSAGE_MAX || f.n > file->bytes - *at - sizeof(head))
		return note_truncated_arrow(s, *at);
	bytes = mem_alloc((size_t)f.n);
	f.bytes = bytes;
	where.body = *at + sizeof(head) + f.n;
	rc = file->read(file->user, *at + sizeof(head), bytes, f.n, err);
	body = rc ? 0 : flatbuffer_number(&f, flatbuffer_root(&f), 3, 8, 0);
	if (!rc && (body < 0 || (uint64_t)body > file->bytes - where.body)) {
		rc = note_truncated_arrow(s, *at);
	} else if (!rc) {
		where.body_bytes = (uint64_t)body;
		rc = dispatch_arrow_message(s, &f, &where, err);
		*at = where.body + (uint64_t)body;
		*ret_more = true;
	}
	free(bytes);
	return rc;
}

int arrow_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
	       struct err *err)
{
	struct arrow_reader *s = mem_zalloc(sizeof(*s));
	char head[8] = "";
	uint64_t at = 0;
	bool more = true;
	int rc = 0;

	s->to = to;
	s->file = file;
	s->object = object;
	s->schema.fields = f;
	s->schema.file = file->name;
	s->schema.classes = &to->classes;
	if (file->bytes >= sizeof(head))
		rc = file->read(file->user, 0, head, sizeof(head), err);
	if (!memcmp(head, FILE_MAGIC, sizeof(head)))
		at = sizeof(head);
	while (!rc && more)
		rc = read_arrow_message(s, &at, &more, err);
	free_dictionary(s);
	free(s);
	return rc;
}
