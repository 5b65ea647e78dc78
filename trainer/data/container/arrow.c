/* arrow.c: reads messages one after the other: a schema, then batches. A batch lists the buffers of its columns; the
 * buffers follow it. A depth-first walk over the schema's fields assigns the buffers to columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/little.h"
#include "trainer/data/container/decompress.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/container/wire_formats.h"

#define FILE_MAGIC "ARROW1\0\0"
#define MESSAGE_MAX ((uint32_t)64 << 20)
#define ROWS_MAX ((int64_t)1 << 24) /* rows per batch */
#define NAMES_BYTES 1024
#define DEPTH_MAX 16
#define IMAGE ";image;img;picture;bytes"
#define LABEL ";label;labels;fine_label;class"

enum message { SCHEMA = 1, BATCH = 3 };
enum type { INT = 2, BINARY = 4, UTF8 = 5, STRUCT = 13, UNION = 14, FIXED_LIST = 16,
	    LARGE_BINARY = 19, LARGE_UTF8 = 20, RUN_ENDS = 22 };

/* A column to read. */
struct arrow_column {
	int rank;		/* position of its name in the list; the best so far */
	int buffer;		/* its first buffer: the validity bitmap */
	int parents[DEPTH_MAX]; /* validity bitmaps of the structs that contain it */
	int n_parents;
	int width; /* bits of a number; of bytes: 32 or 64 for their offsets */
	bool is_signed, listed, coded;
};

struct arrow_reader {
	struct samples *to;
	const struct byte_source *file;
	uint32_t object;
	char image_names[NAMES_BYTES], label_names[NAMES_BYTES];
	bool has_schema;
	struct arrow_column image, label;
	int buffers; /* per batch, by the schema */
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

/* ---- the schema ---- */

/* Position of a field in the schema. */
struct path {
	char name[256];
	int parents[DEPTH_MAX];
	int depth;
	bool listed;
};

static int rank_arrow_column(const char *list, const char *column)
{
	char name[256];
	size_t n = strlen(column);

	snprintf(name, sizeof(name), "%.*s", (int)(n > 6 && !strcmp(column + n - 6, ".bytes") ? n - 6 : n), column);
	return webdataset_rank(list, name);
}

/* Makes the column the choice for images or labels if its name ranks before the present choice. */
static void choose_arrow_column(struct arrow_column *c, const struct path *p, const char *names,
				const struct arrow_column *found)
{
	int rank = rank_arrow_column(names, p->name);

	if (rank >= c->rank)
		return;
	*c = *found;
	c->rank = rank;
	c->listed = p->listed;
	c->n_parents = p->depth;
	memcpy(c->parents, p->parents, sizeof(c->parents));
}

/* Number of buffers that a field itself has; -1: unknown type. */
static int count_field_buffers(int64_t type)
{
	switch (type) {
	case 1: /* null type */
	case RUN_ENDS:
		return 0;
	case STRUCT:
	case FIXED_LIST:
		return 1;
	case BINARY:
	case UTF8:
	case LARGE_BINARY:
	case LARGE_UTF8:
		return 3;
	default:
		return type == UNION || type > RUN_ENDS ? -1 : 2;
	}
}

static bool walk_schema_field(struct arrow_reader *s, const struct flatbuffer *f, uint32_t field,
			      const struct path *above);

static bool walk_field_members(struct arrow_reader *s, const struct flatbuffer *f, uint32_t field, const struct path *p)
{
	uint32_t n, children = flatbuffer_vector(f, field, 5, 4, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!walk_schema_field(s, f, flatbuffer_member(f, children, i), p))
			return false;
	return true;
}

/* Counts the buffers of a field and its members, and chooses the columns of images and labels. Returns false for an
 * unknown type. */
static bool walk_schema_field(struct arrow_reader *s, const struct flatbuffer *f, uint32_t field,
			      const struct path *above)
{
	uint32_t n, name = flatbuffer_vector(f, field, 0, 1, &n), what = flatbuffer_table(f, field, 3);
	int64_t type = flatbuffer_number(f, field, 2, 1, 0);
	struct arrow_column c = { .buffer = s->buffers, .coded = flatbuffer_table(f, field, 4) != 0 };
	struct path p = *above;
	int own = c.coded ? 2 : count_field_buffers(type);

	if (!field || own < 0 || p.depth == DEPTH_MAX || s->buffers > 1 << 20)
		return false;
	snprintf(p.name, sizeof(p.name), "%.120s%s%.*s", above->name, *above->name ? "." : "",
		 (int)(n < 120 ? n : 120), (const char *)f->bytes + name);
	s->buffers += own;
	c.width = type == INT ? (int)flatbuffer_number(f, what, 0, 4, 0) : type == LARGE_BINARY ? 64 : 32;
	c.is_signed = flatbuffer_number(f, what, 1, 1, 0) != 0;
	if (type == INT && (c.width == 8 || c.width == 16 || c.width == 32 || c.width == 64))
		choose_arrow_column(&s->label, &p, s->label_names, &c);
	if (type == BINARY || type == LARGE_BINARY)
		choose_arrow_column(&s->image, &p, s->image_names, &c);
	if (type == STRUCT)
		p.parents[p.depth++] = c.buffer;
	else if (count_field_buffers(type) >= 0)
		p.listed = true;
	return c.coded || walk_field_members(s, f, field, &p);
}

static int check_arrow_column(const struct arrow_reader *s, const struct arrow_column *c, const char *what,
			      struct err *err)
{
	char text[200];

	if (c->rank == WEBDATASET_NO_RANK)
		snprintf(text, sizeof(text), "no column of %s", what);
	else if (c->listed || c->coded)
		snprintf(text, sizeof(text), "the column of %s %s: write it plain", what,
			 c->listed ? "is a list" : "is dictionary-encoded");
	else
		return 0;
	return refuse_arrow(s, text, err);
}

static int read_arrow_schema(struct arrow_reader *s, const struct flatbuffer *f, uint32_t schema, struct err *err)
{
	uint32_t n, fields = flatbuffer_vector(f, schema, 1, 4, &n);
	struct path top = { .name = "" };
	int rc;

	if (flatbuffer_number(f, schema, 0, 2, 0))
		return refuse_arrow(s, "is big-endian: write it little-endian", err);
	s->has_schema = true;
	for (uint32_t i = 0; i < n; i++)
		if (!walk_schema_field(s, f, flatbuffer_member(f, fields, i), &top))
			return refuse_arrow(s, "the schema is damaged or has unsupported columns (unions, views)", err);
	rc = check_arrow_column(s, &s->image, "encoded pictures of type binary (--image-field)", err);
	return rc ? rc : check_arrow_column(s, &s->label, "integer labels (--label-field)", err);
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
	*ret = malloc((size_t)n + 1);
	if (!*ret)
		return err_set(err, ERR_NOMEM, "out of memory: %.200s", file->name);
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

static int64_t decode_integer(const unsigned char *bytes, const struct arrow_column *c, int64_t row)
{
	const unsigned char *at = bytes + row * (c->width / 8);

	switch (c->width) {
	case 8:
		return c->is_signed ? (signed char)*at : *at;
	case 16:
		return c->is_signed ? (int16_t)little_get_u16(at) : (int64_t)little_get_u16(at);
	case 32:
		return c->is_signed ? (int32_t)little_get_u32(at) : (int64_t)little_get_u32(at);
	default:
		return (int64_t)little_get_u64(at);
	}
}

/* The buffers of a batch that are read. */
struct arrow_rows {
	bool *valid[2]; /* images, labels */
	unsigned char *offsets, *labels;
	struct arrow_extent data; /* of all pictures */
};

/* Adds row `row` of the batch as a sample, or notes why it is unusable. */
static void add_arrow_row(struct arrow_reader *s, const struct arrow_rows *r, int64_t row)
{
	const struct arrow_column offset = { .width = s->image.width, .is_signed = true };
	int64_t begin = decode_integer(r->offsets, &offset, row), end = decode_integer(r->offsets, &offset, row + 1);
	int64_t label = decode_integer(r->labels, &s->label, row);
	int packing = r->data.packing;
	bool inside = begin >= 0 && end >= begin && (uint64_t)end <= r->data.bytes && end - begin <= UINT32_MAX;
	const char *wrong = !r->valid[0][row] || begin == end ? "has no picture"
			    : !inside			      ? "its picture exceeds the file"
			    : !r->valid[1][row]		      ? "has no label"
			    : label < 0 || label >= INT32_MAX ? "its label is not an integer >= 0"
							      : NULL;
	char name[WEBDATASET_NAME_MAX];

	if (wrong) {
		samples_lose(s->to, "%.200s: row %lld: %s", s->file->name, (long long)(s->row + row), wrong);
		return;
	}
	snprintf(name, sizeof(name), "%.200s/%09lld.jpg", s->file->name, (long long)(s->row + row));
	samples_add(s->to,
		    &(struct sample){ .offset = packing ? r->data.at : r->data.at + (uint64_t)begin,
				      .packed = packing ? samples_packed(packing, (uint32_t)begin) : 0,
				      .bytes = (uint32_t)(end - begin),
				      .object = s->object,
				      .label = (int32_t)label },
		    name);
}

/* Reads the buffers of a batch that its rows need. Sets *good to false if one is damaged. */
static int read_arrow_rows(const struct batch *b, struct arrow_rows *r, bool *good, struct err *err)
{
	const struct arrow_reader *s = b->reader;
	int rc = apply_validity_bitmaps(b, &s->image, r->valid[0], good, err);

	if (!rc)
		rc = apply_validity_bitmaps(b, &s->label, r->valid[1], good, err);
	if (!rc)
		rc = load_buffer(b, s->image.buffer + 1, (uint64_t)(b->rows + 1) * (unsigned)s->image.width / 8,
				 &r->offsets, err);
	if (!rc)
		rc = load_buffer(b, s->label.buffer + 1, (uint64_t)b->rows * (unsigned)s->label.width / 8, &r->labels,
				 err);
	if (!rc)
		rc = locate_buffer_values(b, s->image.buffer + 2, &r->data, err);
	if (!rc && r->data.packing && r->data.bytes > ARROW_BUFFER_MAX)
		return refuse_arrow(
			s,
			"a batch holds more than 256 MiB of pictures in one compressed buffer: write smaller batches "
			"(max_chunksize), or use compression='uncompressed'",
			err);
	*good &= r->offsets && r->labels;
	return rc;
}

/* Adds all rows of a batch. A damaged batch loses its rows. */
static int add_arrow_rows(struct arrow_reader *s, const struct batch *b, struct err *err)
{
	struct arrow_rows r = { .offsets = NULL };
	bool good = true;
	int rc = 0;

	for (int i = 0; i < 2; i++) {
		r.valid[i] = malloc((size_t)b->rows + 1);
		if (!r.valid[i])
			rc = err_set(err, ERR_NOMEM, "out of memory: %lld rows", (long long)b->rows);
		else
			memset(r.valid[i], 1, (size_t)b->rows);
	}
	if (!rc && b->rows)
		rc = read_arrow_rows(b, &r, &good, err);
	for (int64_t row = 0; !rc && good && row < b->rows; row++)
		add_arrow_row(s, &r, row);
	if (!rc && !good)
		samples_lose(s->to, "%.200s: the batch at byte %llu is damaged: its rows are skipped", s->file->name,
			     (unsigned long long)b->body);
	free(r.valid[0]);
	free(r.valid[1]);
	free(r.offsets);
	free(r.labels);
	return rc;
}

/* Parses the header of a record batch and adds its rows. where: the body. */
static int read_record_batch(struct arrow_reader *s, const struct flatbuffer *f, uint32_t table,
			     const struct batch *where, struct err *err)
{
	struct batch b = *where;
	int rc;

	uint32_t packed = flatbuffer_table(f, table, 3);

	if (packed)
		b.packing = arrow_packing_of(flatbuffer_number(f, packed, 0, 1, 0));
	if (b.packing < 0)
		return refuse_arrow(s,
				    "its batches use a compression that this build lacks (lz4, zstd): write them with "
				    "compression='uncompressed', or as Parquet",
				    err);
	b.f = f;
	b.rows = flatbuffer_number(f, table, 0, 8, 0);
	b.buffers = flatbuffer_vector(f, table, 2, 16, &b.n_buffers);
	if (!s->has_schema || b.rows < 0 || b.rows > ROWS_MAX)
		return refuse_arrow(s, "a batch has no schema, or more than 16 million rows", err);
	rc = add_arrow_rows(s, &b, err);
	s->row += b.rows;
	return rc;
}

/* ---- messages ---- */

static int dispatch_arrow_message(struct arrow_reader *s, const struct flatbuffer *f, struct batch *where,
				  struct err *err)
{
	uint32_t root = flatbuffer_root(f), header = flatbuffer_table(f, root, 2);

	switch (flatbuffer_number(f, root, 1, 1, 0)) {
	case SCHEMA:
		return s->has_schema ? 0 : read_arrow_schema(s, f, header, err);
	case BATCH:
		return read_record_batch(s, f, header, where, err);
	default: /* a dictionary: columns that need one are refused */
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
	bytes = malloc((size_t)f.n + 1);
	if (!bytes)
		return err_set(err, ERR_NOMEM, "out of memory: a message of %u bytes", f.n);
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
	struct arrow_reader *s = calloc(1, sizeof(*s));
	char head[8] = "";
	uint64_t at = 0;
	bool more = true;
	int rc = s ? 0 : err_set(err, ERR_NOMEM, "out of memory");

	if (rc)
		return rc;
	s->to = to;
	s->file = file;
	s->object = object;
	s->image.rank = s->label.rank = WEBDATASET_NO_RANK;
	snprintf(s->image_names, sizeof(s->image_names), "%.900s" IMAGE, f->image);
	snprintf(s->label_names, sizeof(s->label_names), "%.900s" LABEL, f->label);
	if (file->bytes >= sizeof(head))
		rc = file->read(file->user, 0, head, sizeof(head), err);
	if (!memcmp(head, FILE_MAGIC, sizeof(head)))
		at = sizeof(head);
	while (!rc && more)
		rc = read_arrow_message(s, &at, &more, err);
	free(s);
	return rc;
}
