/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_footer.c: parses FileMetaData, with the field ids of the format's parquet.thrift. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/container/labels.h"
#include "trainer/data/container/parquet_page.h"
#include "trainer/data/container/wire_formats.h"

#define COLUMNS_MAX 100000
#define DEPTH_MAX 16
#define GROUPS_MAX 1000000
#define CONVERTED_LIST 3

enum repetition { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum physical { BOOLEAN = 0, INT32 = 1, INT64 = 2, FLOAT = 4, DOUBLE = 5, BYTE_ARRAY = 6 };

struct schema_element {
	char name[PARQUET_NAME_MAX];
	int64_t type, repetition, children; /* type -1: a struct */
	bool list;
};

/* Parses a SchemaElement. */
static void read_schema_element(struct thrift *t, struct schema_element *ret)
{
	struct thrift_field f = { 0, THRIFT_STOP };
	const unsigned char *bytes;
	size_t n;

	*ret = (struct schema_element){ .type = -1 };
	while (thrift_next(t, &f)) {
		if (f.id == 4 && f.type == THRIFT_BYTES) {
			bytes = thrift_bytes(t, &n);
			snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(n < 200 ? n : 200), bytes);
		} else if (f.id == 1 && f.type == THRIFT_I32) {
			ret->type = thrift_number(t, f.type);
		} else if (f.id == 3 && f.type == THRIFT_I32) {
			ret->repetition = thrift_number(t, f.type);
		} else if (f.id == 5 && f.type == THRIFT_I32) {
			ret->children = thrift_number(t, f.type);
		} else if (f.id == 6 && f.type == THRIFT_I32) {
			ret->list = thrift_number(t, f.type) == CONVERTED_LIST;
		} else {
			thrift_skip(t, f.type);
		}
	}
}

/* What the enclosing schema elements contribute to a column. */
struct schema_parent {
	char name[PARQUET_NAME_MAX];
	int levels, repeats;
	int node;
	int64_t left; /* children still to be read */
};

static enum parquet_type parquet_type_of(int64_t physical)
{
	switch (physical) {
	case BOOLEAN:
		return PARQUET_TRUTH;
	case INT32:
	case INT64:
		return PARQUET_NUMBER;
	case FLOAT:
	case DOUBLE:
		return PARQUET_REAL;
	default:
		return physical == BYTE_ARRAY ? PARQUET_BYTES : PARQUET_OTHER;
	}
}

static void add_parquet_column(struct parquet *p, const struct schema_element *e, const struct schema_parent *a)
{
	int i = p->n_columns++;

	p->node[a->node].column = i;
	p->column[i] = (struct parquet_column){ .repeated = a->repeats > 0, .type = parquet_type_of(e->type) };
	memcpy(p->column[i].name, a->name, sizeof(a->name));
	p->levels[i] = a->levels;
	p->repeats[i] = a->repeats;
	p->wide[i] = e->type == INT64 || e->type == DOUBLE;
}

/* Adds an element to the tree; its end is known when the elements below it are. */
static void add_parquet_node(struct parquet *p, const struct schema_element *e, const struct schema_parent *a)
{
	struct parquet_node *node = &p->node[a->node];

	*node = (struct parquet_node){ .column = -1,
				       .end = a->node + 1,
				       .defined = a->levels,
				       .repeats = a->repeats,
				       .repeated = e->repetition == REPEATED,
				       .list = e->list && e->children == 1 };
	memcpy(node->name, e->name, sizeof(e->name));
	p->n_nodes = a->node + 1;
}

/* Parses the schema: a tree in depth-first order; each element has its number of children. The leaves are the
 * columns. */
static bool read_parquet_schema(struct parquet *p, struct thrift *t)
{
	struct schema_parent stack[DEPTH_MAX + 1];
	enum thrift_type type;
	size_t n = thrift_list(t, &type);
	int depth = -1;

	if (type != THRIFT_STRUCT || n > COLUMNS_MAX)
		return false;
	p->column = mem_array(n, sizeof(*p->column));
	p->node = mem_array(n, sizeof(*p->node));
	p->levels = mem_array(n, sizeof(*p->levels));
	p->repeats = mem_array(n, sizeof(*p->repeats));
	p->wide = mem_array(n, sizeof(*p->wide));
	for (size_t i = 0; i < n && !t->bad; i++) {
		struct schema_element e;
		struct schema_parent a = { .left = 0 };

		read_schema_element(t, &e);
		while (depth > 0 && !stack[depth].left)
			p->node[stack[depth--].node].end = (int)i;
		if (depth >= 0) {
			stack[depth].left--;
			a = stack[depth];
			snprintf(a.name, sizeof(a.name), "%.120s%s%.120s", stack[depth].name, depth ? "." : "", e.name);
			a.levels += e.repetition != REQUIRED;
			a.repeats += e.repetition == REPEATED;
		}
		a.left = e.children;
		a.node = (int)i;
		add_parquet_node(p, &e, &a);
		if (e.children < 0 || (e.children > 0 && depth == DEPTH_MAX))
			return false;
		if (e.children || depth < 0)
			stack[++depth] = a;
		else
			add_parquet_column(p, &e, &a);
	}
	for (; depth >= 0; depth--)
		p->node[stack[depth].node].end = p->n_nodes;
	return !t->bad && (p->n_nodes < 2 || p->node[p->n_nodes - 1].column >= 0);
}

/* Parses ColumnMetaData: codec, sizes, and the range of the chunk's pages in the file. */
static void read_chunk_metadata(struct thrift *t, struct parquet_chunk *c)
{
	struct thrift_field f = { 0, THRIFT_STOP };
	int64_t data = -1, dictionary = -1, bytes = -1;

	c->codec = -1;
	while (thrift_next(t, &f)) {
		if (f.id == 4 && f.type == THRIFT_I32)
			c->codec = (int)thrift_number(t, f.type);
		else if (f.id == 5 && f.type == THRIFT_I64)
			c->values = thrift_number(t, f.type);
		else if (f.id == 7 && f.type == THRIFT_I64)
			bytes = thrift_number(t, f.type);
		else if (f.id == 9 && f.type == THRIFT_I64)
			data = thrift_number(t, f.type);
		else if (f.id == 11 && f.type == THRIFT_I64)
			dictionary = thrift_number(t, f.type);
		else
			thrift_skip(t, f.type);
	}
	data = dictionary > 0 && dictionary < data ? dictionary : data;
	t->bad |= data < 0 || bytes < 0 || data > INT64_MAX - bytes;
	c->begin = (uint64_t)data;
	c->end = (uint64_t)data + (uint64_t)bytes;
}

static void read_column_chunk(struct thrift *t, struct parquet_chunk *c)
{
	struct thrift_field f = { 0, THRIFT_STOP };
	bool found = false;

	while (thrift_next(t, &f)) {
		if (f.id == 3 && f.type == THRIFT_STRUCT) {
			read_chunk_metadata(t, c);
			found = true;
		} else {
			thrift_skip(t, f.type);
		}
	}
	t->bad |= !found;
}

static bool read_column_chunks(struct parquet *p, struct thrift *t, struct parquet_group *g)
{
	enum thrift_type type;
	size_t n = thrift_list(t, &type);

	if (type != THRIFT_STRUCT || n != (size_t)p->n_columns || g->chunk)
		return false;
	g->chunk = mem_array(n, sizeof(*g->chunk));
	for (size_t i = 0; i < n && !t->bad; i++) {
		read_column_chunk(t, &g->chunk[i]);
		t->bad |= g->chunk[i].end > p->file->bytes;
	}
	return !t->bad;
}

static bool read_row_group(struct parquet *p, struct thrift *t, struct parquet_group *g)
{
	struct thrift_field f = { 0, THRIFT_STOP };

	while (thrift_next(t, &f)) {
		if (f.id == 1 && f.type == THRIFT_LIST) {
			if (!read_column_chunks(p, t, g))
				return false;
		} else if (f.id == 3 && f.type == THRIFT_I64) {
			g->rows = thrift_number(t, f.type);
		} else {
			thrift_skip(t, f.type);
		}
	}
	return !t->bad && g->chunk && g->rows >= 0 && g->rows <= PARQUET_ROWS_MAX;
}

static bool read_row_groups(struct parquet *p, struct thrift *t)
{
	enum thrift_type type;
	size_t n = thrift_list(t, &type);

	if (type != THRIFT_STRUCT || n > GROUPS_MAX || !p->column || p->group)
		return false;
	p->group = mem_array(n, sizeof(*p->group));
	for (p->n_groups = 0; (size_t)p->n_groups < n; p->n_groups++)
		if (!read_row_group(p, t, &p->group[p->n_groups])) {
			p->n_groups++; /* counted, so that its chunks are freed */
			return false;
		}
	return true;
}

/* Reads a KeyValue, and keeps that of the datasets library. */
static void read_key_value(struct parquet *p, struct thrift *t)
{
	struct thrift_field f = { 0, THRIFT_STOP };
	const unsigned char *part[3] = { NULL };
	size_t n[3] = { 0 };

	while (thrift_next(t, &f))
		if ((f.id == 1 || f.id == 2) && f.type == THRIFT_BYTES)
			part[f.id] = thrift_bytes(t, &n[f.id]);
		else
			thrift_skip(t, f.type);
	if (!t->bad && !p->metadata && n[2] && n[1] == strlen(LABELS_METADATA) &&
	    !memcmp(part[1], LABELS_METADATA, n[1]))
		p->metadata = mem_strndup((const char *)part[2], n[2]);
}

static bool read_key_values(struct parquet *p, struct thrift *t)
{
	enum thrift_type type;
	size_t n = thrift_list(t, &type);

	for (; type == THRIFT_STRUCT && n && !t->bad; n--)
		read_key_value(p, t);
	return !n && !t->bad;
}

bool parquet_footer(struct parquet *ret, const unsigned char *bytes, size_t n)
{
	struct thrift t = { bytes, bytes + n, false };
	struct thrift_field f = { 0, THRIFT_STOP };

	while (thrift_next(&t, &f)) {
		bool good = true;

		if (f.id == 2 && f.type == THRIFT_LIST && !ret->column)
			good = read_parquet_schema(ret, &t);
		else if (f.id == 4 && f.type == THRIFT_LIST)
			good = read_row_groups(ret, &t);
		else if (f.id == 5 && f.type == THRIFT_LIST)
			good = read_key_values(ret, &t);
		else
			thrift_skip(&t, f.type);
		if (!good)
			return false;
	}
	return !t.bad && ret->column && ret->group;
}
