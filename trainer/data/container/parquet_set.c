/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_set.c: reads the labels of a row group, then adds its pictures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/container/parquet.h"
#include "trainer/data/container/webdataset.h"

#define LABEL_MISSING INT64_MIN /* in place of a label */
#define LABEL_WRONG (INT64_MIN + 1)

struct parquet_reader {
	struct samples *to;
	const struct byte_source *file;
	uint32_t object;
	struct parquet *p;
	int image, label; /* column indices */
	int64_t *labels;  /* of the group's rows; -1 - i: name i of names */
	struct label_names names;
	int64_t n_classes; /* that the schema states; 0: none */
	int64_t first; /* file row of the group's first row */
};

/* Returns the column whose name ranks first, of one of the types (bits). -1: none. */
static int find_best_column(const struct parquet *p, const char *list, int given, unsigned types)
{
	int best = -1, rank = WEBDATASET_NO_RANK;

	for (int i = 0; i < parquet_columns(p); i++) {
		const struct parquet_column *c = parquet_column(p, i);
		int r = types >> c->type & 1 ? webdataset_rank_label(list, given, c->name, c->type == PARQUET_NUMBER)
					     : WEBDATASET_NO_RANK;

		if (r < rank) {
			rank = r;
			best = i;
		}
	}
	return best;
}

/* The message lists the columns of the file. */
static int refuse_missing_column(const struct parquet_reader *s, const char *what, struct err *err)
{
	struct buf names;
	int rc;

	buf_init(&names, 4096);
	for (int i = 0; i < parquet_columns(s->p) && names.len < 200; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", parquet_column(s->p, i)->name);
	buf_addc(&names, '\0');
	rc = err_set(err, ERR_USAGE, "%.150s: no column %s: the columns are %.200s%s", s->file->name, what,
		     names.data ? names.data : "",
		     parquet_find(s->p, "text") >= 0 ? "; tokenize texts with dptrain tokenize" : "");
	buf_done(&names);
	return rc;
}

static int find_sample_columns(struct parquet_reader *s, const struct webdataset_fields *f, struct err *err)
{
	const unsigned bytes = 1u << PARQUET_BYTES;
	char list[WEBDATASET_LIST_MAX];
	int given = webdataset_list(list, f->image, f->image_given, WEBDATASET_IMAGE_COLUMNS);

	s->image = find_best_column(s->p, list, given, bytes);
	given = webdataset_list(list, f->label, f->label_given, WEBDATASET_LABEL_COLUMNS);
	s->label = find_best_column(s->p, list, given,
				    bytes | 1u << PARQUET_NUMBER | 1u << PARQUET_TRUTH | 1u << PARQUET_REAL);
	if (s->image < 0)
		return refuse_missing_column(s, "of encoded pictures (--image-field)", err);
	if (s->label < 0)
		return refuse_missing_column(s, "of labels (--label-field)", err);
	for (int i = 0; i < 2; i++)
		if (parquet_column(s->p, i ? s->label : s->image)->repeated)
			return err_set(
				err, ERR_USAGE,
				"%.150s: column %.100s is a list, which is not supported: write one value per row",
				s->file->name, parquet_column(s->p, i ? s->label : s->image)->name);
	return 0;
}

static int store_row_label(void *user, int64_t row, const struct parquet_cell *cell, struct err *err)
{
	struct parquet_reader *s = user;
	const enum parquet_type type = parquet_column(s->p, s->label)->type;
	struct sample_label l = cell->null		? label_missing()
				: type == PARQUET_BYTES ? label_of_text((const char *)cell->bytes, cell->n)
				: type == PARQUET_REAL	? label_of_real(cell->real)
							: label_of_number(cell->number);
	int32_t name = l.name ? label_names_add(&s->names, l.name, l.n) : 0;

	(void)err;
	s->labels[row] = l.name ? -1 - name : !l.wrong ? l.number : label_is_missing(&l) ? LABEL_MISSING : LABEL_WRONG;
	return 0;
}

/* The label of a row, as stored by store_row_label. */
static struct sample_label row_label(const struct parquet_reader *s, int64_t row)
{
	const int64_t label = s->labels[row];
	const char *name;

	if (label == LABEL_MISSING)
		return label_missing();
	if (label == LABEL_WRONG || label >= 0)
		return label_of_number(label);
	name = label_names_at(&s->names, (int32_t)(-1 - label));
	return (struct sample_label){ .name = name, .n = strlen(name) };
}

/* Adds a row as a sample, or notes why it is unusable. */
static int add_parquet_row(void *user, int64_t row, const struct parquet_cell *cell, struct err *err)
{
	struct parquet_reader *s = user;
	const struct sample_label label = label_below(row_label(s, row), s->n_classes);
	char name[WEBDATASET_NAME_MAX];

	(void)err;
	if (cell->null || !cell->n || label.wrong) {
		samples_lose(s->to, "%.200s: row %lld: %s", s->file->name, (long long)(s->first + row),
			     cell->null || !cell->n ? "has no picture" : label.wrong);
		return 0;
	}
	snprintf(name, sizeof(name), "%.200s/%09lld.%s", s->file->name, (long long)(s->first + row),
		 cell->n > 4 && !memcmp(cell->bytes, "\x89PNG", 4) ? "png" : "jpg");
	samples_add_label(s->to,
			  &(struct sample){ .offset = cell->offset,
					    .packed = cell->packed,
					    .bytes = cell->n,
					    .object = s->object },
			  name, &label);
	return 0;
}

/* Adds the rows of a group. A damaged group loses its rows after the damage. */
static int add_row_group(struct parquet_reader *s, int group, struct err *err)
{
	int64_t rows = parquet_rows(s->p, group);
	struct err why = ERR_INIT;
	int column = s->label, rc;

	s->labels = mem_alloc((size_t)rows * sizeof(*s->labels));
	rc = parquet_walk(s->p, group, column, &(struct parquet_sink){ store_row_label, s }, &why);
	if (!rc)
		rc = label_names_check(&s->names, &why);
	if (!rc)
		rc = parquet_walk(s->p, group, column = s->image, &(struct parquet_sink){ add_parquet_row, s }, &why);
	free(s->labels);
	s->first += rows;
	if (rc == ERR_CORRUPT) {
		samples_lose(s->to, "%.150s: row group %d, column %.60s: %.200s: its other rows are skipped",
			     s->file->name, group, parquet_column(s->p, column)->name, why.text);
		return 0;
	}
	if (rc == ERR_USAGE)
		return err_set(err, rc, "%.150s: column %.60s %.250s", s->file->name,
			       parquet_column(s->p, column)->name, why.text);
	return rc ? err_set(err, rc, "%s", why.text) : 0;
}

int parquet_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
		 struct err *err)
{
	struct parquet_reader s = { .to = to, .file = file, .object = object };
	int rc = parquet_open(&s.p, file, err);

	label_names_init(&s.names);
	if (!rc)
		rc = find_sample_columns(&s, f, err);
	if (!rc)
		samples_use_columns(to, parquet_column(s.p, s.image)->name, parquet_column(s.p, s.label)->name);
	if (!rc && parquet_column(s.p, s.label)->type == PARQUET_NUMBER)
		s.n_classes = label_names_stated(parquet_metadata(s.p), strlen(parquet_metadata(s.p)),
						 parquet_column(s.p, s.label)->name, &to->classes);
	for (int g = 0; !rc && g < parquet_groups(s.p); g++)
		rc = add_row_group(&s, g, err);
	label_names_done(&s.names);
	parquet_close(s.p);
	return rc;
}
