/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_schema.c: a depth-first walk over the fields assigns the buffers of a batch to columns. */
#include "trainer/data/container/arrow_schema.h"

#include <stdio.h>
#include <string.h>

enum field_type { NULLS = 1, INT = 2, FLOAT = 3, BINARY = 4, UTF8 = 5, BOOL = 6, STRUCT = 13, UNION = 14,
		  FIXED_LIST = 16, LARGE_BINARY = 19, LARGE_UTF8 = 20, RUN_ENDS = 22 };

/* Position of a field in the schema. */
struct path {
	char name[256];
	int parents[ARROW_DEPTH_MAX];
	int depth;
	bool listed;
};

/* Makes the column the choice for images or labels if it ranks before the present choice. */
static void choose_arrow_column(struct arrow_column *c, const struct path *p, int rank,
				const struct arrow_column *found)
{
	if (rank >= c->rank)
		return;
	*c = *found;
	c->rank = rank;
	c->listed = p->listed;
	memcpy(c->name, p->name, sizeof(c->name));
	c->n_parents = p->depth;
	memcpy(c->parents, p->parents, sizeof(c->parents));
}

static bool is_integer_width(int width)
{
	return width == 8 || width == 16 || width == 32 || width == 64;
}

/* Reads the type of a field's values. False: no picture and no label can have it. */
static bool read_field_type(const struct flatbuffer *f, uint32_t field, struct arrow_type *ret)
{
	const int64_t type = flatbuffer_number(f, field, 2, 1, 0);
	const uint32_t what = flatbuffer_table(f, field, 3);

	*ret = (struct arrow_type){ .width = 32 };
	switch (type) {
	case INT:
		*ret = (struct arrow_type){ ARROW_INTEGER, (int)flatbuffer_number(f, what, 0, 4, 0),
					    flatbuffer_number(f, what, 1, 1, 0) != 0 };
		return is_integer_width(ret->width);
	case BOOL:
		*ret = (struct arrow_type){ ARROW_TRUTH, 1, false };
		return true;
	case FLOAT: /* half, single, double precision */
		*ret = (struct arrow_type){ ARROW_REAL, 16 << flatbuffer_number(f, what, 0, 2, 0), true };
		return ret->width == 32 || ret->width == 64;
	case UTF8:
	case LARGE_UTF8:
		*ret = (struct arrow_type){ ARROW_TEXT, type == UTF8 ? 32 : 64, true };
		return true;
	case BINARY:
	case LARGE_BINARY:
		*ret = (struct arrow_type){ ARROW_BYTES, type == BINARY ? 32 : 64, true };
		return true;
	default:
		return false;
	}
}

/* Reads a DictionaryEncoding: the number of the dictionary, and the type of the codes (without one: 32 bits). */
static bool read_field_coding(const struct flatbuffer *f, uint32_t field, struct arrow_column *c)
{
	const uint32_t coding = flatbuffer_table(f, field, 4), what = flatbuffer_table(f, coding, 1);

	c->coded = coding != 0;
	c->dictionary = flatbuffer_number(f, coding, 0, 8, 0);
	c->code = (struct arrow_type){ ARROW_INTEGER, what ? (int)flatbuffer_number(f, what, 0, 4, 0) : 32,
				       !what || flatbuffer_number(f, what, 1, 1, 0) != 0 };
	return !c->coded || is_integer_width(c->code.width);
}

/* Number of buffers that a field itself has; -1: unknown type. */
static int count_field_buffers(int64_t type)
{
	switch (type) {
	case NULLS:
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

static bool walk_schema_field(struct arrow_schema *s, const struct flatbuffer *f, uint32_t field,
			      const struct path *above);

static bool walk_field_members(struct arrow_schema *s, const struct flatbuffer *f, uint32_t field, const struct path *p)
{
	uint32_t n, children = flatbuffer_vector(f, field, 5, 4, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!walk_schema_field(s, f, flatbuffer_member(f, children, i), p))
			return false;
	return true;
}

/* Makes a field the column of images or labels if its name and its type fit. */
static void match_schema_field(struct arrow_schema *s, const struct flatbuffer *f, uint32_t field, const struct path *p)
{
	struct arrow_column c = { .buffer = s->buffers };
	bool number;

	if (!read_field_type(f, field, &c.type) || !read_field_coding(f, field, &c))
		return;
	number = c.type.kind == ARROW_INTEGER && !c.coded;
	if (c.type.kind == ARROW_BYTES)
		choose_arrow_column(&s->image, p, webdataset_rank_column(s->image_names, p->name), &c);
	else
		choose_arrow_column(&s->label, p,
				    webdataset_rank_label(s->label_names, s->given_labels, p->name, number), &c);
}

/* Counts the buffers of a field and its members, and chooses the columns of images and labels. Returns false for an
 * unknown type. */
static bool walk_schema_field(struct arrow_schema *s, const struct flatbuffer *f, uint32_t field,
			      const struct path *above)
{
	const uint32_t coding = flatbuffer_table(f, field, 4);
	uint32_t n, name = flatbuffer_vector(f, field, 0, 1, &n);
	int64_t type = flatbuffer_number(f, field, 2, 1, 0);
	struct path p = *above;
	int own = coding ? 2 : count_field_buffers(type);
	size_t said = strlen(s->names);

	if (!field || own < 0 || p.depth == ARROW_DEPTH_MAX || s->buffers > 1 << 20)
		return false;
	snprintf(p.name, sizeof(p.name), "%.120s%s%.*s", above->name, *above->name ? "." : "", (int)(n < 120 ? n : 120),
		 (const char *)f->bytes + name);
	if (type != STRUCT)
		snprintf(s->names + said, sizeof(s->names) - said, "%s%.60s", said ? ", " : "", p.name);
	match_schema_field(s, f, field, &p);
	if (type == STRUCT)
		p.parents[p.depth++] = s->buffers;
	else if (count_field_buffers(type) >= 0)
		p.listed = true;
	s->buffers += own;
	return coding || walk_field_members(s, f, field, &p);
}

static int check_arrow_column(const struct arrow_schema *s, const struct arrow_column *c, const char *what,
			      struct err *err)
{
	if (c->rank == WEBDATASET_NO_RANK)
		return err_set(err, ERR_USAGE, "%.150s: no column of %s: the columns are %.200s", s->file, what,
			       s->names);
	if (c->listed || (c->coded && c == &s->image))
		return err_set(err, ERR_USAGE, "%.150s: the column of %s %s: write it plain", s->file, what,
			       c->listed ? "is a list" : "is dictionary-encoded");
	return 0;
}

/* Appends the names of classes that the metadata state for the column of labels. */
static void take_stated_classes(struct arrow_schema *s, const struct flatbuffer *f, uint32_t table)
{
	uint32_t n, length, list = flatbuffer_vector(f, table, 2, 4, &n);

	for (uint32_t i = 0; i < n && s->label.type.kind == ARROW_INTEGER && !s->label.coded; i++) {
		const uint32_t entry = flatbuffer_member(f, list, i);
		const char *key = (const char *)f->bytes + flatbuffer_vector(f, entry, 0, 1, &length);
		const bool found = length == strlen(LABELS_METADATA) && !memcmp(key, LABELS_METADATA, length);
		const char *value = (const char *)f->bytes + flatbuffer_vector(f, entry, 1, 1, &length);

		if (found && !s->n_classes)
			s->n_classes = label_names_stated(value, length, s->label.name, s->classes);
	}
}

int arrow_schema_read(struct arrow_schema *s, const struct flatbuffer *f, uint32_t table, struct err *err)
{
	const struct webdataset_fields *fields = s->fields;
	uint32_t n, list = flatbuffer_vector(f, table, 1, 4, &n);
	struct path top = { .name = "" };
	int rc;

	if (flatbuffer_number(f, table, 0, 2, 0))
		return err_set(err, ERR_USAGE, "%.150s: is big-endian: write it little-endian", s->file);
	s->image.rank = s->label.rank = WEBDATASET_NO_RANK;
	webdataset_list(s->image_names, fields->image, fields->image_given, WEBDATASET_IMAGE_COLUMNS);
	s->given_labels = webdataset_list(s->label_names, fields->label, fields->label_given, WEBDATASET_LABEL_COLUMNS);
	for (uint32_t i = 0; i < n; i++)
		if (!walk_schema_field(s, f, flatbuffer_member(f, list, i), &top))
			return err_set(err, ERR_USAGE,
				       "%.150s: the schema is damaged or has unsupported columns (unions, views)",
				       s->file);
	rc = check_arrow_column(s, &s->image, "encoded pictures of type binary (--image-field)", err);
	if (!rc)
		rc = check_arrow_column(s, &s->label, "labels (--label-field)", err);
	if (!rc)
		take_stated_classes(s, f, table);
	return rc;
}
