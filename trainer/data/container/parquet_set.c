/* parquet_set.c: reads the labels of a row group, then adds its pictures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "trainer/data/container/parquet.h"
#include "trainer/data/container/webdataset.h"

#define IMAGE ";image;img;picture;bytes"
#define LABEL ";label;labels;fine_label;class"
#define NAMES_BYTES 1024
#define NO_LABEL INT64_MIN

struct parquet_reader {
	struct samples *to;
	const struct byte_source *file;
	uint32_t object;
	struct parquet *p;
	int image, label; /* column indices */
	int64_t *labels;  /* of the group's rows */
	int64_t first;	  /* file row of the group's first row */
};

/* A column "image.bytes" matches the name "image". */
static int rank_parquet_column(const char *list, const char *column)
{
	char name[PARQUET_NAME_MAX];
	size_t n = strlen(column);

	if (n > 6 && !strcmp(column + n - 6, ".bytes"))
		n -= 6;
	snprintf(name, sizeof(name), "%.*s", (int)n, column);
	return webdataset_rank(list, name);
}

static int find_best_column(const struct parquet *p, const char *list, enum parquet_type type)
{
	int best = -1, rank = WEBDATASET_NO_RANK;

	for (int i = 0; i < parquet_columns(p); i++) {
		int r = parquet_column(p, i)->type == type ? rank_parquet_column(list, parquet_column(p, i)->name)
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
	char image[NAMES_BYTES], label[NAMES_BYTES];

	snprintf(image, sizeof(image), "%.900s" IMAGE, f->image);
	snprintf(label, sizeof(label), "%.900s" LABEL, f->label);
	s->image = find_best_column(s->p, image, PARQUET_BYTES);
	s->label = find_best_column(s->p, label, PARQUET_NUMBER);
	if (s->image < 0)
		return refuse_missing_column(s, "of encoded pictures (--image-field)", err);
	if (s->label < 0)
		return refuse_missing_column(s, "of integer labels (--label-field)", err);
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

	(void)err;
	s->labels[row] = cell->null ? NO_LABEL : cell->number;
	return 0;
}

/* Adds a row as a sample, or notes why it is unusable. */
static int add_parquet_row(void *user, int64_t row, const struct parquet_cell *cell, struct err *err)
{
	struct parquet_reader *s = user;
	int64_t label = s->labels[row];
	char name[WEBDATASET_NAME_MAX];

	(void)err;
	if (cell->null || !cell->n || label < 0 || label >= INT32_MAX) {
		samples_lose(s->to, "%.200s: row %lld: %s", s->file->name, (long long)(s->first + row),
			     cell->null || !cell->n ? "has no picture"
			     : label == NO_LABEL    ? "has no label"
						    : "its label is not an integer >= 0");
		return 0;
	}
	snprintf(name, sizeof(name), "%.200s/%09lld.%s", s->file->name, (long long)(s->first + row),
		 cell->n > 4 && !memcmp(cell->bytes, "\x89PNG", 4) ? "png" : "jpg");
	samples_add(s->to,
		    &(struct sample){ .offset = cell->offset,
				      .packed = cell->packed,
				      .bytes = cell->n,
				      .object = s->object,
				      .label = (int32_t)label },
		    name);
	return 0;
}

/* Adds the rows of a group. A damaged group loses its rows after the damage. */
static int add_row_group(struct parquet_reader *s, int group, struct err *err)
{
	int64_t rows = parquet_rows(s->p, group);
	struct err why = ERR_INIT;
	int column = s->label, rc;

	s->labels = malloc(((size_t)rows + 1) * sizeof(*s->labels));
	if (!s->labels)
		return err_set(err, ERR_NOMEM, "out of memory: %lld labels", (long long)rows);
	rc = parquet_walk(s->p, group, column, &(struct parquet_sink){ store_row_label, s }, &why);
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

int parquet_scan(struct samples *to, const struct byte_source *file, uint32_t object,
		 const struct webdataset_fields *f, struct err *err)
{
	struct parquet_reader s = { .to = to, .file = file, .object = object };
	int rc = parquet_open(&s.p, file, err);

	if (!rc)
		rc = find_sample_columns(&s, f, err);
	for (int g = 0; !rc && g < parquet_groups(s.p); g++)
		rc = add_row_group(&s, g, err);
	parquet_close(s.p);
	return rc;
}
