/* SPDX-License-Identifier: Apache-2.0 */
/* layer_series.c: removes per-layer series from CSV as it passes. */
#include "web/cli/layer_series.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

enum { RECORD_BYTES_MAX = 1 << 26 };

struct csv_field {
	size_t from, bytes; /* in record, with quotes */
};

struct layer_filter {
	const struct local_sink *to;
	struct buf record; /* the record that is being read, without its end of line */
	struct csv_field *field;
	size_t fields, cap;
	bool *hidden; /* by column */
	size_t columns, key_column;
	bool quoted, headed;
	size_t left_out;
};

struct layer_filter *layer_filter_new(const struct local_sink *to)
{
	struct layer_filter *f = mem_zalloc(sizeof(*f));

	f->to = to;
	f->key_column = SIZE_MAX;
	buf_init(&f->record, RECORD_BYTES_MAX);
	return f;
}

void layer_filter_free(struct layer_filter *f)
{
	if (!f)
		return;
	buf_done(&f->record);
	free(f->field);
	free(f->hidden);
	free(f);
}

size_t layer_filter_left_out(const struct layer_filter *f)
{
	return f->left_out;
}

/* Divides the record at the commas outside quotes. */
static void split_record(struct layer_filter *f)
{
	bool quoted = false;
	size_t from = 0;

	f->fields = 0;
	for (size_t i = 0; i <= f->record.len; i++) {
		const char c = i < f->record.len ? f->record.data[i] : ',';

		quoted ^= c == '"';
		if (c != ',' || (quoted && i < f->record.len))
			continue;
		mem_push(&f->field, &f->fields, &f->cap, (struct csv_field){ from, i - from });
		from = i + 1;
	}
}

/* The field without its opening quote. The groups' names have no quotes. */
static const char *field_text(const struct layer_filter *f, size_t i)
{
	const char *text = f->record.data + f->field[i].from;

	return text + (*text == '"');
}

/* Finds the columns to hide, and the column with keys, in the first record. */
static void read_csv_head(struct layer_filter *f)
{
	static const char metrics[] = "metrics.";

	f->headed = true;
	f->columns = f->fields;
	f->hidden = mem_array(f->fields + 1, sizeof(*f->hidden));
	for (size_t i = 0; i < f->fields; i++) {
		const char *text = field_text(f, i);

		f->hidden[i] =
			!strncmp(text, metrics, sizeof(metrics) - 1) && query_layer_group(text + sizeof(metrics) - 1);
		f->left_out += f->hidden[i];
		if (f->field[i].bytes == 3 && !strncmp(text, "key", 3))
			f->key_column = i;
	}
}

/* Passes the record on without hidden columns, or drops it. */
static int pass_record(struct layer_filter *f, struct err *err)
{
	struct buf out;
	int rc;

	buf_addc(&f->record, '\0');
	if (buf_failed(&f->record))
		return err_set(err, ERR_LIMIT, "a line of CSV is too long");
	f->record.len--;
	split_record(f);
	if (!f->headed)
		read_csv_head(f);
	if (f->key_column < f->fields && query_layer_group(field_text(f, f->key_column))) {
		f->left_out++;
		return 0;
	}
	buf_init(&out, SIZE_MAX);
	for (size_t i = 0, shown = 0; i < f->fields; i++) {
		if (i < f->columns && f->hidden[i])
			continue;
		buf_adds(&out, shown++ ? "," : "");
		buf_add(&out, f->record.data + f->field[i].from, f->field[i].bytes);
	}
	buf_addc(&out, '\n');
	rc = f->to->take(f->to->arg, out.data, out.len, err);
	buf_done(&out);
	return rc;
}

static int take_csv_bytes(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct layer_filter *f = arg;
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		f->quoted ^= bytes[i] == '"';
		if (bytes[i] != '\n' || f->quoted) {
			buf_addc(&f->record, bytes[i]);
			continue;
		}
		rc = pass_record(f, err);
		buf_reset(&f->record);
	}
	return rc;
}

struct local_sink layer_filter_sink(struct layer_filter *f)
{
	return (struct local_sink){ take_csv_bytes, f };
}
