/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c: the table of samples, and its file: a header, rows, names, names of classes, columns and notes, with a
 * CRC-32C over all of them. The file uses the machine's byte order, because it never leaves the machine. */
#include "trainer/data/container/samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"

#define MAGIC "DPTsmp3" /* and a NUL */
#define BYTES_MAX ((size_t)1 << 38)

enum { ROWS, NAMES, CLASSES, COLUMNS, LINES, PARTS };

struct samples_header {
	char magic[8];
	uint32_t crc, zero; /* checksum of the whole file, computed with crc = 0 */
	uint64_t bytes[PARTS];
	int64_t lost;
};

void samples_init(struct samples *s)
{
	*s = (struct samples){ .n = 0 };
	buf_init(&s->rows, BYTES_MAX);
	buf_init(&s->text, BYTES_MAX);
	buf_init(&s->lines, BYTES_MAX);
	buf_init(&s->classes, BYTES_MAX);
	buf_init(&s->used_columns, BYTES_MAX);
	label_names_init(&s->labels);
}

void samples_done(struct samples *s)
{
	buf_done(&s->rows);
	buf_done(&s->text);
	buf_done(&s->lines);
	buf_done(&s->classes);
	buf_done(&s->used_columns);
	label_names_done(&s->labels);
	free(s->class_names);
	file_map_close(&s->map);
	*s = (struct samples){ .n = 0 };
}

void samples_add(struct samples *s, const struct sample *one, const char *name)
{
	struct sample row = *one;

	row.key = s->text.len;
	buf_add(&s->rows, &row, sizeof(row));
	buf_add(&s->text, name, strlen(name) + 1);
}

void samples_add_label(struct samples *s, const struct sample *one, const char *name, const struct sample_label *label)
{
	struct sample row = *one;
	int32_t number = label->name ? label_names_add(&s->labels, label->name, label->n) : 0;

	row.label = label->name ? -1 - number : (int32_t)label->number;
	samples_add(s, &row, name);
}

void samples_lose(struct samples *s, const char *fmt, ...)
{
	va_list ap;

	if (s->lost++ >= SAMPLES_NOTES)
		return;
	va_start(ap, fmt);
	buf_addvf(&s->lines, fmt, ap);
	va_end(ap);
	buf_addc(&s->lines, '\n');
}

void samples_use_columns(struct samples *s, const char *image, const char *label)
{
	if (!s->used_columns.len)
		buf_addf(&s->used_columns, "%s and %s", image, label);
}

static void append_sample_notes(struct samples *s, const struct samples *more)
{
	const char *line = more->lines.data, *end;

	for (int64_t i = s->lost; i < SAMPLES_NOTES && line && (end = strchr(line, '\n')); i++, line = end + 1)
		buf_add(&s->lines, line, (size_t)(end + 1 - line));
	s->lost += more->lost;
}

void samples_append(struct samples *s, const struct samples *more)
{
	size_t n = more->rows.len / sizeof(struct sample);
	const struct sample *rows = (const void *)more->rows.data;

	for (size_t i = 0; i < n; i++) {
		struct sample row = rows[i];

		row.key += s->text.len;
		if (row.label < 0) {
			const char *name = label_names_at(&more->labels, -1 - row.label);

			row.label = -1 - label_names_add(&s->labels, name, strlen(name));
		}
		buf_add(&s->rows, &row, sizeof(row));
	}
	buf_add(&s->text, more->text.data, more->text.len);
	if (!s->used_columns.len)
		buf_add(&s->used_columns, more->used_columns.data, more->used_columns.len);
	if (!s->classes.len)
		buf_add(&s->classes, more->classes.data, more->classes.len);
	else if (n && !s->differs && more->classes.len &&
		 (s->classes.len != more->classes.len || memcmp(s->classes.data, more->classes.data, s->classes.len)))
		s->differs = rows->object + 1;
	append_sample_notes(s, more);
}

/* Drops the samples whose labels are names if most of the others' are numbers. Returns false if the names remain. */
static bool drop_named_samples(struct samples *s)
{
	struct sample *rows = (void *)s->rows.data;
	const size_t n = s->rows.len / sizeof(*rows);
	size_t named = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		named += rows[i].label < 0;
	if (2 * named >= n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (rows[i].label >= 0)
			rows[kept++] = rows[i];
		else
			samples_lose(s, "%.200s: %.200s: its label is not a number, as most are: %.100s",
				     s->object_name ? s->object_name(s->user, rows[i].object) : "",
				     s->text.data + rows[i].key, label_names_at(&s->labels, -1 - rows[i].label));
	s->rows.len = kept * sizeof(*rows);
	return true;
}

/* Replaces every label by the number of its class. */
static void number_classes(struct samples *s)
{
	struct sample *rows = (void *)s->rows.data;
	const size_t n = s->rows.len / sizeof(*rows);
	int32_t *rank;
	char digits[16];

	buf_reset(&s->classes);
	for (size_t i = 0; i < n; i++)
		if (rows[i].label >= 0)
			rows[i].label =
				-1 - label_names_add(&s->labels, digits,
						     (size_t)snprintf(digits, sizeof(digits), "%d", rows[i].label));
	rank = label_names_sort(&s->labels, &s->classes);
	for (size_t i = 0; i < n; i++)
		rows[i].label = rank[-1 - rows[i].label];
	free(rank);
}

/* Lists the names of the classes. */
static void list_classes(struct samples *s, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		s->n_classes += !text[i];
	s->class_names = mem_array((size_t)s->n_classes, sizeof(*s->class_names));
	for (int i = 0; i < s->n_classes; i++, text += strlen(text) + 1)
		s->class_names[i] = text;
}

int samples_end(struct samples *s, struct err *err)
{
	if (s->differs)
		return err_set(err, ERR_USAGE,
			       "%.200s: its schema names other classes than those of the files before it: write all "
			       "files with one list of names",
			       s->object_name ? s->object_name(s->user, s->differs - 1) : "");
	if (label_names_check(&s->labels, err))
		return ERR_USAGE;
	if (label_names_count(&s->labels) && !drop_named_samples(s))
		number_classes(s);
	buf_add(&s->lines, "", 1);
	buf_add(&s->used_columns, "", 1);
	list_classes(s, s->classes.data, s->classes.len);
	s->at = (const void *)s->rows.data;
	s->n = (int64_t)(s->rows.len / sizeof(struct sample));
	s->names = s->text.data;
	s->notes = s->lines.data;
	s->columns = s->used_columns.data;
	return 0;
}

const char *samples_name(const struct samples *s, int64_t i)
{
	return s->names + s->at[i].key;
}

bool samples_keep(const struct samples *s, const char *path)
{
	const struct buf *const part[PARTS] = { &s->rows, &s->text, &s->classes, &s->used_columns, &s->lines };
	struct samples_header h = { .magic = MAGIC, .lost = s->lost };
	char temporary[4300];
	bool whole;
	int fd;

	snprintf(temporary, sizeof(temporary), "%.4200s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return false;
	for (int i = 0; i < PARTS; i++)
		h.bytes[i] = part[i]->len;
	h.crc = crc32c(0, &h, sizeof(h));
	for (int i = 0; i < PARTS; i++)
		h.crc = crc32c(h.crc, part[i]->data, part[i]->len);
	whole = !file_write(fd, &h, sizeof(h));
	for (int i = 0; i < PARTS; i++)
		whole = whole && !file_write(fd, part[i]->data, part[i]->len);
	whole = whole && !fchmod(fd, 0644);
	whole = !close(fd) && whole && !rename(temporary, path);
	if (!whole)
		unlink(temporary);
	return whole;
}

/* Checks that the lengths add up, and the CRC. */
static bool is_whole_table(const struct file_map *m, const struct samples_header *h)
{
	size_t left = m->n - sizeof(*h);
	struct samples_header summed = *h;

	for (int i = 0; i < PARTS; left -= (size_t)h->bytes[i++])
		if (h->bytes[i] > left)
			return false;
	summed.crc = 0;
	return !left && h->bytes[COLUMNS] && h->bytes[LINES] && h->bytes[ROWS] % sizeof(struct sample) == 0 &&
	       !memcmp(h->magic, MAGIC, sizeof(h->magic)) &&
	       crc32c(crc32c(0, &summed, sizeof(summed)), m->bytes + sizeof(*h), m->n - sizeof(*h)) == h->crc;
}

bool samples_take(struct samples *ret, const char *path)
{
	struct samples s;
	struct samples_header h;
	const char *classes;

	samples_init(&s);
	if (file_map_open(&s.map, path, NULL))
		return false;
	if (s.map.n > sizeof(h))
		memcpy(&h, s.map.bytes, sizeof(h));
	if (s.map.n <= sizeof(h) || !is_whole_table(&s.map, &h)) {
		samples_done(&s);
		return false;
	}
	s.at = (const void *)(s.map.bytes + sizeof(h));
	s.n = (int64_t)(h.bytes[ROWS] / sizeof(struct sample));
	s.names = (const char *)(s.at + s.n);
	classes = s.names + h.bytes[NAMES];
	s.columns = classes + h.bytes[CLASSES];
	s.notes = s.columns + h.bytes[COLUMNS];
	s.lost = h.lost;
	if (s.notes[-1] || (h.bytes[CLASSES] && s.columns[-1])) {
		samples_done(&s);
		return false;
	}
	list_classes(&s, classes, h.bytes[CLASSES]);
	*ret = s;
	return true;
}
