/* SPDX-License-Identifier: Apache-2.0 */
/* documents.c: reads a file in blocks, decompressed with zlib or libzstd, and iterates over plain texts, JSON lines and
 * Parquet rows. */
#include "trainer/data/corpus/documents.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <jansson.h>

#include "config.h"
#include "tracker/base/file.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/parquet.h"
#include "trainer/data/corpus/texts.h"

/* ---- the bytes of one file ---- */

struct stream;

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#define BLOCK ((size_t)1 << 20)
#define TEXT_BEGIN 4		   /* more bytes than a byte order mark has */
#define AHEAD ((uint64_t)64 << 20) /* bytes of a remote object announced ahead of the reader */
#define AHEAD_STEP ((uint64_t)8 << 20)
#define GZIP_OR_ZLIB (15 + 32)

struct stream {
	struct objects *store;
	int object;
	enum text_packing packing;
	uint64_t at, announced; /* offsets in the object */
	unsigned char *block;
	size_t n, used; /* bytes of the block; bytes already used */
	bool inside;	/* within a gzip member or zstd frame */
	bool begun;
	size_t mark; /* bytes of the byte order mark, once begun */
	z_stream z;
#ifdef HAVE_ZSTD
	ZSTD_DStream *zstd;
#endif
};

static int fail_damaged_stream(const struct stream *s, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.300s: %s", objects_address(s->store, s->object), what);
}

static void stream_close(struct stream *s)
{
	if (!s)
		return;
	if (s->packing == TEXT_GZIP)
		inflateEnd(&s->z);
#ifdef HAVE_ZSTD
	ZSTD_freeDStream(s->zstd);
#endif
	free(s->block);
	free(s);
}

/* ERR_USAGE: this build lacks the compression. */
static int stream_open(struct stream **ret, struct objects *store, int object, enum text_packing packing,
		       struct err *err)
{
	struct stream *s = mem_zalloc(sizeof(*s));
	bool good = true;

	s->block = mem_alloc(BLOCK);
	s->store = store;
	s->object = object;
	s->packing = packing;
	if (packing == TEXT_GZIP)
		good = inflateInit2(&s->z, GZIP_OR_ZLIB) == Z_OK;
#ifdef HAVE_ZSTD
	if (packing == TEXT_ZSTD)
		good = (s->zstd = ZSTD_createDStream()) != NULL;
#else
	if (packing == TEXT_ZSTD) {
		stream_close(s);
		return err_set(err, ERR_USAGE, "%.300s: this build lacks zstd (libzstd was not found)",
			       objects_address(store, object));
	}
#endif
	if (!good) {
		stream_close(s);
		return err_set(err, ERR_NOMEM, "out of memory: %.300s", objects_address(store, object));
	}
	*ret = s;
	return 0;
}

static void announce_stream_ahead(struct stream *s)
{
	uint64_t bytes = objects_bytes(s->store, s->object);

	for (; s->announced < bytes && s->announced < s->at + AHEAD; s->announced += AHEAD_STEP)
		if (!objects_want(s->store, &(struct objects_range){ .object = s->object, .at = s->announced, .n = 1 }))
			return;
}

/* Reads the next block; n = 0 at the end. */
static int read_next_block(struct stream *s, struct err *err)
{
	uint64_t left = objects_bytes(s->store, s->object) - s->at;
	size_t n = left < BLOCK ? (size_t)left : BLOCK;
	int rc = 0;

	announce_stream_ahead(s);
	if (n)
		rc = objects_read(s->store, &(struct objects_range){ .object = s->object, .at = s->at, .n = n },
				  s->block, err);
	if (!rc && !s->at)
		rc = file_refuse_pointer(objects_address(s->store, s->object), s->block, n, err);
	s->at += n;
	s->n = rc ? 0 : n;
	s->used = 0;
	return rc;
}

/* Decompresses the rest of the block into `to`. *ret_n 0: needs the next block. */
static int inflate_from_block(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	int rc;

	s->z.next_in = s->block + s->used;
	s->z.avail_in = (unsigned)(s->n - s->used);
	s->z.next_out = to;
	s->z.avail_out = (unsigned)(n < BLOCK ? n : BLOCK);
	*ret_n = s->z.avail_out;
	rc = inflate(&s->z, Z_NO_FLUSH);
	*ret_n -= s->z.avail_out;
	s->used = s->n - s->z.avail_in;
	s->inside = rc != Z_STREAM_END;
	if (rc == Z_STREAM_END)
		rc = inflateReset(&s->z); /* another member may follow */
	return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : fail_damaged_stream(s, "is not a gzip file, or is damaged", err);
}

#ifdef HAVE_ZSTD
static int unzstd_from_block(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	ZSTD_inBuffer in = { s->block, s->n, s->used };
	ZSTD_outBuffer out = { to, n, 0 };
	size_t rc = ZSTD_decompressStream(s->zstd, &out, &in);

	if (ZSTD_isError(rc))
		return fail_damaged_stream(s, "is not a zstd file, or is damaged", err);
	s->used = in.pos;
	s->inside = rc != 0;
	*ret_n = out.pos;
	return 0;
}
#endif

static int unpack_from_block(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	*ret_n = s->n - s->used < n ? s->n - s->used : n;
	switch (s->packing) {
	case TEXT_GZIP:
		return inflate_from_block(s, to, n, ret_n, err);
#ifdef HAVE_ZSTD
	case TEXT_ZSTD:
		return unzstd_from_block(s, to, n, ret_n, err);
#endif
	default:
		memcpy(to, s->block + s->used, *ret_n);
		s->used += *ret_n;
		return 0;
	}
}

/* A compressed block may yield no output yet, or more than fits. So the decompressor is called again before the next
 * block is read. */
static int read_stream_bytes(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	int rc = 0;

	*ret_n = 0;
	while (!rc && !*ret_n) {
		bool packed = s->packing != TEXT_UNPACKED && s->inside;

		if (s->used < s->n || packed)
			rc = unpack_from_block(s, to, n, ret_n, err);
		if (rc || *ret_n || s->used < s->n)
			continue;
		rc = read_next_block(s, err);
		if (!rc && !s->n)
			return s->inside && s->packing != TEXT_UNPACKED ? fail_damaged_stream(s, "is truncated", err)
									: 0;
	}
	return rc;
}

/* Reads the next bytes of the text, without a byte order mark in front of it. *ret_n 0: the end. */
static int stream_read(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	size_t got = 1, have = 0;
	int rc = 0;

	if (s->begun)
		return read_stream_bytes(s, to, n, ret_n, err);
	s->begun = true;
	*ret_n = 0;
	for (; !rc && got && have < TEXT_BEGIN; have += got)
		rc = read_stream_bytes(s, (char *)to + have, n - have, &got, err);
	if (!rc && have >= 2 && (!memcmp(to, "\xff\xfe", 2) || !memcmp(to, "\xfe\xff", 2)))
		rc = fail_damaged_stream(s, "is UTF-16: convert it to UTF-8: iconv -f UTF-16 -t UTF-8", err);
	if (rc)
		return rc;
	s->mark = utf8_mark(to, have);
	*ret_n = have - s->mark;
	memmove(to, (char *)to + s->mark, *ret_n);
	return 0;
}

#define PART ((size_t)1 << 20)

struct document_walk {
	const struct documents_opts *o;
	const struct documents_sink *to;
	const char *name; /* of the file, for messages */
	const char *field;
	struct stream *stream;
	struct buf line, text; /* JSON: unparsed input; the document */
	size_t searched;       /* leading bytes of the input without a newline */
	int64_t number;	       /* line from 1, or row from 0 */
	bool any_null;
};

static int emit_whole_document(const struct document_walk *w, const char *text, size_t n, struct err *err)
{
	int rc = n ? w->to->begin(w->to->user, n, err) : 0;

	if (!rc && n)
		rc = w->to->add(w->to->user, text, n, err);
	return rc || !n ? rc : w->to->end(w->to->user, err);
}

/* ---- plain texts ---- */

static int count_unpacked_bytes(struct objects *store, int object, enum text_packing packing, uint64_t *ret,
				struct err *err)
{
	struct stream *s;
	size_t n = 1;
	int rc = stream_open(&s, store, object, packing, err);
	char *part;

	if (rc)
		return rc;
	part = mem_alloc(PART);
	for (*ret = 0; !rc && n; *ret += n)
		rc = stream_read(s, part, PART, &n, err);
	stream_close(s);
	free(part);
	return rc;
}

static int walk_plain_text(struct document_walk *w, enum text_packing packing, struct err *err)
{
	uint64_t bytes = objects_bytes(w->o->store, w->o->object);
	char *part = mem_alloc(PART);
	bool begun = false;
	size_t n = 1;
	int rc = 0;

	if (packing != TEXT_UNPACKED && w->o->sizes)
		rc = count_unpacked_bytes(w->o->store, w->o->object, packing, &bytes, err);
	while (!rc && n) {
		rc = stream_read(w->stream, part, PART, &n, err);
		if (!rc && n && !begun)
			rc = w->to->begin(w->to->user, bytes - (packing == TEXT_UNPACKED ? w->stream->mark : 0), err);
		begun |= n > 0;
		if (!rc && n)
			rc = w->to->add(w->to->user, part, n, err);
	}
	free(part);
	return rc || !begun ? rc : w->to->end(w->to->user, err);
}

/* ---- lines of JSON ---- */

/* Counts a document that is null; where: its line from 1, or its row from 0. */
static void skip_null(struct document_walk *w, const char *where, int64_t number)
{
	char example[DATA_ACCOUNT_TEXT_BYTES];

	snprintf(example, sizeof(example), "%.200s:%s%lld", objects_name(w->o->store, w->o->object), where,
		 (long long)number);
	data_account_leave_samples(w->o->account, 1, w->any_null ? NULL : example, "%.60s is null", w->field);
	w->any_null = true;
}

/* The members of a JSON line that are strings, also those of its members. */
static void list_text_members(const json_t *object, const char *above, struct buf *to)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value) {
		if (json_is_string(value) && to->len < 200)
			buf_addf(to, "%s%s%.60s", to->len ? ", " : "", above, name);
		if (json_is_object(value) && !*above) {
			char path[80];

			snprintf(path, sizeof(path), "%.60s.", name);
			list_text_members(value, path, to);
		}
	}
}

static int refuse_json_line(const struct document_walk *w, const char *line, size_t n, struct err *err)
{
	json_t *object = json_loadb(line, n, 0, NULL);
	struct buf names;
	int rc;

	buf_init(&names, 4096);
	list_text_members(object, "", &names);
	rc = err_set(err, ERR_USAGE,
		     "%.200s:%lld: has no string member %.60s: use --text-field with one of: %.120s; or conversations: "
		     "messages, conversations, instruction and output, prompt and completion",
		     w->name, (long long)w->number, w->field, names.len ? names.data : "(no string member)");
	buf_done(&names);
	json_decref(object);
	return rc;
}

/* Emits the text member of one line; skips an empty line or a null. */
static int emit_json_line(struct document_walk *w, const char *line, size_t n, struct err *err)
{
	w->number++;
	if (strspn(line, " \t\r") >= n)
		return 0;
	if (!*w->field)
		return emit_whole_document(w, line, n, err);
	buf_reset(&w->text);
	switch (json_member(line, n, w->field, &w->text)) {
	case JSON_MEMBER_FOUND:
		return emit_whole_document(w, w->text.data, w->text.len, err);
	case JSON_MEMBER_NULL:
		skip_null(w, "", w->number);
		return 0;
	case JSON_MEMBER_NONE:
		return refuse_json_line(w, line, n, err);
	case JSON_MEMBER_WRONG:
		return err_set(err, ERR_USAGE, "%.300s:%lld: is not a JSON object", w->name, (long long)w->number);
	}
	return 0;
}

/* Processes the complete lines of the input and moves the rest to the front. */
static int emit_json_lines(struct document_walk *w, bool last, struct err *err)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && at < w->line.len) {
		char *from = w->line.data + at, *end = memchr(from + w->searched, '\n', w->line.len - at - w->searched);
		size_t n = end ? (size_t)(end - from) : w->line.len - at;

		w->searched = end || last ? 0 : n;
		if (!end && !last)
			break;
		if (end)
			*end = '\0';
		rc = emit_json_line(w, from, n, err);
		at += n + (end != NULL);
	}
	if (!rc)
		buf_consume(&w->line, at);
	return rc;
}

static int walk_json_lines(struct document_walk *w, struct err *err)
{
	size_t n = 1;
	int rc = 0;

	while (!rc && n) {
		char *to = w->line.len > DOCUMENTS_LINE_MAX ? NULL : buf_reserve(&w->line, PART + 1);

		if (!to)
			return err_set(err, ERR_USAGE, "%.300s:%lld: a line exceeds %zu MiB", w->name,
				       (long long)w->number + 1, DOCUMENTS_LINE_MAX >> 20);
		rc = stream_read(w->stream, to, PART, &n, err);
		to[rc ? 0 : n] = '\0';
		w->line.len += rc ? 0 : n;
		if (!rc)
			rc = emit_json_lines(w, !n, err);
	}
	return rc;
}

/* ---- elements of a JSON array ---- */

/* Where in an array the next byte is. */
struct array_place {
	int depth; /* 0: outside, 1: between elements */
	bool quoted, escaped, ended;
};

/* Moves over one byte. Returns true if it belongs to an element. */
static bool step_array(struct array_place *p, char c)
{
	const bool inside = p->depth > 1 || (p->depth == 1 && c != ']' && c != ',');

	if (p->quoted) {
		p->quoted = p->escaped || c != '"';
		p->escaped = !p->escaped && c == '\\';
	} else if (c == '"') {
		p->quoted = true;
	} else if (c == '[' || c == '{') {
		p->depth++;
	} else if (c == ']' || c == '}') {
		p->ended = --p->depth == 0;
	}
	return inside;
}

/* Cuts the text of an array at its elements, and emits each as a line. */
static int emit_array_part(struct document_walk *w, struct array_place *p, const char *text, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		const char c = text[i];

		if (isspace((unsigned char)c) && !p->quoted)
			continue;
		if (p->ended || (!p->depth && c != '['))
			return err_set(err, ERR_USAGE, "%.300s: expected a JSON array of records", w->name);
		if (step_array(p, c)) {
			buf_addc(&w->line, c);
		} else if (w->line.len) {
			buf_addc(&w->line, '\0');
			rc = emit_json_line(w, w->line.data, w->line.len - 1, err);
			buf_reset(&w->line);
		}
		if (w->line.len > DOCUMENTS_LINE_MAX)
			rc = err_set(err, ERR_USAGE, "%.300s: record %lld exceeds %zu MiB", w->name,
				     (long long)w->number + 1, DOCUMENTS_LINE_MAX >> 20);
	}
	return rc;
}

static int walk_json_array(struct document_walk *w, struct err *err)
{
	struct array_place place = { .depth = 0 };
	char *part = mem_alloc(PART);
	size_t n = 1;
	int rc = 0;

	while (!rc && n) {
		rc = stream_read(w->stream, part, PART, &n, err);
		if (!rc)
			rc = emit_array_part(w, &place, part, n, err);
	}
	free(part);
	if (!rc && !place.ended)
		rc = err_set(err, ERR_USAGE, "%.300s: the JSON array does not end: is the file whole?", w->name);
	return rc;
}

/* ---- tables ---- */

static int emit_table_row(void *user, int64_t row, const struct parquet_cell *cell, struct err *err)
{
	struct document_walk *w = user;

	if (cell->null)
		skip_null(w, " row ", row);
	return cell->null ? 0 : emit_whole_document(w, (const char *)cell->bytes, cell->n, err);
}

static int find_text_column(const struct document_walk *w, const struct parquet *p, int *ret, struct err *err)
{
	struct buf names;
	int i = parquet_find(p, w->field), rc;

	*ret = i;
	if (i >= 0 && parquet_column(p, i)->type == PARQUET_BYTES && !parquet_column(p, i)->repeated)
		return 0;
	buf_init(&names, 4096);
	for (int k = 0; k < parquet_columns(p) && names.len < 200; k++)
		if (parquet_column(p, k)->type == PARQUET_BYTES && !parquet_column(p, k)->repeated)
			buf_addf(&names, "%s%s", names.len ? ", " : "", parquet_column(p, k)->name);
	buf_addc(&names, '\0');
	rc = err_set(err, ERR_USAGE,
		     "%.200s: no text column %.60s: use --text-field with one of: %.150s; conversations are read as "
		     "they are, "
		     "without dptrain tokenize",
		     w->name, w->field, names.data && *names.data ? names.data : "(no text column)");
	buf_done(&names);
	return rc;
}

static int emit_table_record(void *user, const char *json, size_t n, struct err *err)
{
	return emit_whole_document(user, json, n, err);
}

/* Emits the text column, or the records, row group by row group. */
static int walk_table_rows(struct document_walk *w, struct parquet *p, struct err *err)
{
	const struct parquet_record_sink records = { w->o->takes, emit_table_record, w };
	const struct parquet_sink rows = { emit_table_row, w };
	struct err why = ERR_INIT;
	int column = 0, rc = *w->field ? find_text_column(w, p, &column, err) : 0;

	if (rc)
		return rc;
	for (int g = 0; !rc && g < parquet_groups(p); g++)
		rc = *w->field ? parquet_walk(p, g, column, &rows, &why) : parquet_walk_records(p, g, &records, &why);
	if (rc != ERR_USAGE && rc != ERR_CORRUPT)
		return rc ? err_set(err, rc, "%s", why.text) : 0;
	if (!*w->field)
		return err_set(err, ERR_USAGE, "%.200s: %.300s", w->name, why.text);
	return err_set(err, ERR_USAGE, "%.200s: column %.60s: %.250s", w->name, w->field, why.text);
}

static int walk_parquet_table(struct document_walk *w, struct err *err)
{
	struct object_source source = { .store = w->o->store, .object = w->o->object };
	const struct byte_source file = objects_source(&source);
	struct parquet *p;
	char head[128];
	const uint64_t bytes = objects_bytes(w->o->store, w->o->object);
	const size_t n = bytes < sizeof(head) ? (size_t)bytes : sizeof(head);
	const struct objects_range first = { .object = w->o->object, .n = n };
	int rc = objects_read(w->o->store, &first, head, err);

	if (!rc)
		rc = file_refuse_pointer(w->name, head, n, err);
	if (!rc)
		rc = parquet_open(&p, &file, err);
	if (rc)
		return rc;
	rc = walk_table_rows(w, p, err);
	parquet_close(p);
	return rc;
}

static int walk_text_stream(struct document_walk *w, enum text_kind kind, enum text_packing packing, struct err *err)
{
	int rc = stream_open(&w->stream, w->o->store, w->o->object, packing, err);

	if (rc)
		return rc;
	buf_init(&w->line, DOCUMENTS_LINE_MAX + 2 * PART);
	buf_init(&w->text, DOCUMENTS_LINE_MAX + 2 * PART);
	rc = kind == TEXT_LINES	  ? walk_json_lines(w, err)
	     : kind == TEXT_ARRAY ? walk_json_array(w, err)
				  : walk_plain_text(w, packing, err);
	buf_done(&w->line);
	buf_done(&w->text);
	stream_close(w->stream);
	return rc;
}

int documents_walk(const struct documents_opts *o, const struct documents_sink *to, struct err *err)
{
	struct document_walk w = { .o = o,
				   .to = to,
				   .name = objects_address(o->store, o->object),
				   .field = o->field ? o->field : DOCUMENTS_FIELD };
	enum text_packing packing;
	enum text_kind kind = texts_kind(objects_name(o->store, o->object), &packing);

	return kind == TEXT_TABLE ? walk_parquet_table(&w, err) : walk_text_stream(&w, kind, packing, err);
}
