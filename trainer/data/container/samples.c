/* samples.c: the table of samples, and its file: a header, rows, names and notes, with a CRC-32C over all of them.
 * The file uses the machine's byte order, because it never leaves the machine. */
#include "trainer/data/container/samples.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"

#define MAGIC "DPTsmp1\n"
#define BYTES_MAX ((size_t)1 << 38)

struct samples_header {
	char magic[8];
	uint32_t crc, zero; /* of the whole file, computed with crc = 0 */
	uint64_t n, name_bytes, line_bytes;
	int64_t lost;
};

void samples_init(struct samples *s)
{
	*s = (struct samples){ .n = 0 };
	buf_init(&s->rows, BYTES_MAX);
	buf_init(&s->text, BYTES_MAX);
	buf_init(&s->lines, BYTES_MAX);
}

void samples_done(struct samples *s)
{
	buf_done(&s->rows);
	buf_done(&s->text);
	buf_done(&s->lines);
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
		buf_add(&s->rows, &row, sizeof(row));
	}
	buf_add(&s->text, more->text.data, more->text.len);
	s->rows.failed |= more->rows.failed || more->text.failed || more->lines.failed;
	append_sample_notes(s, more);
}

int samples_end(struct samples *s, struct err *err)
{
	buf_add(&s->lines, "", 1);
	if (buf_failed(&s->rows) || buf_failed(&s->text) || buf_failed(&s->lines))
		return err_set(err, ERR_NOMEM, "out of memory: a table of %zu samples",
			       s->rows.len / sizeof(struct sample));
	s->at = (const void *)s->rows.data;
	s->n = (int64_t)(s->rows.len / sizeof(struct sample));
	s->names = s->text.data;
	s->notes = s->lines.data;
	return 0;
}

const char *samples_name(const struct samples *s, int64_t i)
{
	return s->names + s->at[i].key;
}

bool samples_keep(const struct samples *s, const char *path)
{
	struct samples_header h = {
		.n = (uint64_t)s->n, .name_bytes = s->text.len, .line_bytes = s->lines.len, .lost = s->lost
	};
	char temporary[4300];
	bool whole;
	int fd;

	snprintf(temporary, sizeof(temporary), "%.4200s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return false;
	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.crc = crc32c(0, &h, sizeof(h));
	h.crc = crc32c(h.crc, s->rows.data, s->rows.len);
	h.crc = crc32c(h.crc, s->text.data, s->text.len);
	h.crc = crc32c(h.crc, s->lines.data, s->lines.len);
	whole = !file_write(fd, &h, sizeof(h)) && !file_write(fd, s->rows.data, s->rows.len) &&
		!file_write(fd, s->text.data, s->text.len) && !file_write(fd, s->lines.data, s->lines.len) &&
		!fchmod(fd, 0644);
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

	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) || h->n > left / sizeof(struct sample))
		return false;
	left -= (size_t)h->n * sizeof(struct sample);
	if (h->name_bytes > left || h->line_bytes != left - h->name_bytes || !h->line_bytes)
		return false;
	summed.crc = 0;
	return crc32c(crc32c(0, &summed, sizeof(summed)), m->bytes + sizeof(*h), m->n - sizeof(*h)) == h->crc;
}

bool samples_take(struct samples *ret, const char *path)
{
	struct samples s;
	struct samples_header h;

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
	s.n = (int64_t)h.n;
	s.names = (const char *)(s.at + s.n);
	s.notes = s.names + h.name_bytes;
	s.lost = h.lost;
	*ret = s;
	return true;
}
