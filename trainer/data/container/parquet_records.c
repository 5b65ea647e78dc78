/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_records.c: puts the values of a row together as one JSON object, by the levels that each value has
 * (https://parquet.apache.org/docs/file-format/nesteddata/). A column is read one value ahead, to see where its lists
 * end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/parquet_page.h"

#define VALUES_MAX (1 << 20) /* of a row */
#define ROW_MAX ((size_t)256 << 20)

struct record_writer {
	struct parquet *p;
	struct parquet_cursor **cursor; /* [column]; NULL: not taken */
	struct parquet_entry *ahead;	/* [column]: the next value */
	struct buf text;
	int64_t row;
	int values; /* of the row, so far */
};

static int fail_damaged_row(const struct record_writer *w, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the levels of row %lld are damaged", (long long)w->row);
}

/* The next value of the first column of a node, whose levels tell for the node. */
static const struct parquet_entry *lead_of(const struct record_writer *w, int node)
{
	while (w->p->node[node].column < 0)
		node++;
	return &w->ahead[w->p->node[node].column];
}

static bool is_present(const struct record_writer *w, int node)
{
	return lead_of(w, node)->defined >= (uint32_t)w->p->node[node].defined;
}

/* Moves each column of a node to its next value. repeats: the level that the present one must have. */
static int pass_values(struct record_writer *w, int node, uint32_t repeats, struct err *err)
{
	const struct parquet_node *n = w->p->node;
	int rc = 0;

	for (int i = node; !rc && i < n[node].end; i++) {
		struct parquet_entry *e = n[i].column < 0 ? NULL : &w->ahead[n[i].column];

		if (!e)
			continue;
		if (e->end || e->repeats != repeats)
			return fail_damaged_row(w, err);
		if (w->values++ == VALUES_MAX)
			return err_set(err, ERR_USAGE, "row %lld has more than %d values", (long long)w->row,
				       VALUES_MAX);
		rc = parquet_cursor_next(w->cursor[n[i].column], e, err);
	}
	return rc;
}

/* Writes the value of a column as JSON. */
static int write_leaf(struct record_writer *w, int node, uint32_t repeats, struct err *err)
{
	const struct parquet_column *column = parquet_column(w->p, w->p->node[node].column);
	const struct parquet_cell *cell = &lead_of(w, node)->cell;
	json_t *text;

	if (cell->null)
		return fail_damaged_row(w, err);
	if (column->type == PARQUET_BYTES) {
		text = json_stringn((const char *)cell->bytes, cell->n);
		if (!text)
			return err_set(err, ERR_USAGE, "row %lld: %.100s is not UTF-8", (long long)w->row,
				       column->name);
		json_append(text, JSON_ENCODE_ANY, &w->text);
	} else if (column->type == PARQUET_TRUTH) {
		buf_adds(&w->text, cell->number ? "true" : "false");
	} else if (column->type == PARQUET_REAL) {
		json_append(isfinite(cell->real) ? json_real(cell->real) : json_null(), JSON_ENCODE_ANY, &w->text);
	} else {
		buf_addf(&w->text, "%lld", (long long)cell->number);
	}
	return pass_values(w, node, repeats, err);
}

static int write_value(struct record_writer *w, int node, uint32_t repeats, struct err *err);

/* Returns the node of a list's elements: by the format's rules the only member of the repeated group, unless that is
 * the element itself. */
static int element_of(const struct record_writer *w, int list)
{
	const struct parquet_node *n = &w->p->node[list];
	const size_t length = strlen(n->name);

	if (n->column >= 0 || n[1].end != n->end || !strcmp(n->name, "array") ||
	    (length > 6 && !strcmp(n->name + length - 6, "_tuple")))
		return list;
	return list + 1;
}

static int write_element(struct record_writer *w, int list, uint32_t repeats, struct err *err)
{
	const int element = element_of(w, list);

	if (is_present(w, element))
		return write_value(w, element, repeats, err);
	buf_adds(&w->text, "null");
	return pass_values(w, element, repeats, err);
}

/* list: the repeated node. */
static int write_list(struct record_writer *w, int list, uint32_t repeats, struct err *err)
{
	const uint32_t own = (uint32_t)w->p->node[list].repeats;
	bool more = is_present(w, list);
	int rc = more ? 0 : pass_values(w, list, repeats, err);

	buf_addc(&w->text, '[');
	while (!rc && more) {
		rc = write_element(w, list, repeats, err);
		repeats = own;
		more = !rc && lead_of(w, list)->repeats == own;
		if (more)
			buf_addc(&w->text, ',');
	}
	buf_addc(&w->text, ']');
	return rc;
}

static bool is_taken(const struct record_writer *w, int node)
{
	while (w->p->node[node].column < 0)
		node++;
	return w->cursor[w->p->node[node].column] != NULL;
}

/* A table has every member in every row: those that are null are left out. */
static int write_members(struct record_writer *w, int group, uint32_t repeats, struct err *err)
{
	const struct parquet_node *n = w->p->node;
	bool any = false;
	int rc = 0;

	buf_addc(&w->text, '{');
	for (int i = group + 1; !rc && i < n[group].end; i = n[i].end) {
		if (!is_taken(w, i))
			continue;
		if (!is_present(w, i) && !n[i].repeated) {
			rc = pass_values(w, i, repeats, err);
			continue;
		}
		if (any)
			buf_addc(&w->text, ',');
		any = true;
		json_append(json_string(n[i].name), JSON_ENCODE_ANY, &w->text);
		buf_addc(&w->text, ':');
		rc = n[i].repeated ? write_list(w, i, repeats, err) : write_value(w, i, repeats, err);
	}
	buf_addc(&w->text, '}');
	return rc;
}

static int write_value(struct record_writer *w, int node, uint32_t repeats, struct err *err)
{
	const struct parquet_node *n = &w->p->node[node];

	if (n->column >= 0)
		return write_leaf(w, node, repeats, err);
	if (n->list && n[1].repeated)
		return write_list(w, node + 1, repeats, err);
	return write_members(w, node, repeats, err);
}

/* Opens a column at its first value. */
static int open_record_column(struct record_writer *w, int group, int column, struct err *err)
{
	const struct parquet_column *c = parquet_column(w->p, column);
	int rc = c->type == PARQUET_OTHER ? err_set(err, ERR_USAGE, "has values that are neither texts nor numbers")
					  : parquet_cursor_open(&w->cursor[column], w->p, group, column, err);

	if (!rc)
		rc = parquet_cursor_next(w->cursor[column], &w->ahead[column], err);
	return rc ? err_prefix(err, "column %.100s", c->name) : 0;
}

static int open_record_columns(struct record_writer *w, int group, bool (*takes)(const char *name), struct err *err)
{
	const struct parquet_node *n = w->p->node;
	int rc = 0;

	for (int i = 1; i < n->end; i = n[i].end)
		for (int k = i; !rc && takes(n[i].name) && k < n[i].end; k++)
			if (n[k].column >= 0)
				rc = open_record_column(w, group, n[k].column, err);
	return rc;
}

int parquet_walk_records(struct parquet *p, int group, const struct parquet_record_sink *to, struct err *err)
{
	const size_t columns = (size_t)p->n_columns;
	struct record_writer w = { .p = p };
	int rc;

	w.cursor = mem_array(columns, sizeof(struct parquet_cursor *));
	w.ahead = mem_array(columns, sizeof(*w.ahead));
	buf_init(&w.text, ROW_MAX);
	rc = open_record_columns(&w, group, to->takes, err);
	for (; !rc && w.row < p->group[group].rows; w.row++) {
		w.values = 0;
		buf_reset(&w.text);
		rc = write_members(&w, 0, 0, err);
		if (!rc && buf_failed(&w.text))
			rc = err_set(err, ERR_USAGE, "row %lld exceeds %zu MiB, or a name in it is not UTF-8",
				     (long long)w.row, ROW_MAX >> 20);
		if (!rc)
			rc = to->each(to->user, w.text.data, w.text.len, err);
	}
	for (int i = 0; i < p->n_columns; i++)
		parquet_cursor_close(w.cursor[i]);
	free(w.cursor);
	free(w.ahead);
	buf_done(&w.text);
	return rc;
}
