/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c: prints what the Parquet reader reads from a file, for tests in Python:
 *   columns FILE [records]
 * One line per readable column: name, rows, nulls, and the SHA-256 over its values: a byte 0 for a null; otherwise a
 * byte 1, and the number in 8 bytes, or the length in 4 bytes and the bytes; little-endian. For the others, the name
 * and why they are not read. With `records` one line per row: the object that the whole row becomes. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/sha256.h"
#include "trainer/data/container/parquet.h"

struct sum {
	struct sha256 sum;
	int64_t rows, nulls;
};

static int read_file(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	FILE *f = user;

	return fseeko(f, (off_t)at, SEEK_SET) || fread(to, 1, n, f) != n ? err_set(err, ERR_IO, "cannot be read") : 0;
}

static int take(void *user, int64_t row, const struct parquet_cell *cell, struct err *err)
{
	struct sum *s = user;
	unsigned char there = !cell->null;

	(void)row;
	(void)err;
	s->rows++;
	s->nulls += cell->null;
	sha256_add(&s->sum, &there, 1);
	if (there && cell->bytes) {
		sha256_add(&s->sum, &cell->n, sizeof(cell->n));
		sha256_add(&s->sum, cell->bytes, cell->n);
	} else if (there) {
		sha256_add(&s->sum, &cell->number, sizeof(cell->number));
	}
	return 0;
}

static void print(struct parquet *p, int column)
{
	const struct parquet_column *c = parquet_column(p, column);
	struct err err = ERR_INIT;
	struct sum s = { .rows = 0 };
	char hex[65];
	int rc = 0;

	if (c->repeated || c->type == PARQUET_OTHER) {
		printf("%s: %s\n", c->name, c->repeated ? "lists" : "another type");
		return;
	}
	sha256_init(&s.sum);
	for (int g = 0; !rc && g < parquet_groups(p); g++)
		rc = parquet_walk(p, g, column, &(struct parquet_sink){ take, &s }, &err);
	sha256_end(&s.sum, hex);
	if (rc)
		printf("%s: %s\n", c->name, err.text);
	else
		printf("%s %lld %lld %s\n", c->name, (long long)s.rows, (long long)s.nulls, hex);
}

static bool take_all(const char *name)
{
	return *name;
}

static int print_record(void *user, const char *json, size_t n, struct err *err)
{
	(void)user;
	(void)err;
	for (size_t i = 0; i < n; i++)
		if (json[i] != '\n')
			putchar(json[i]);
	putchar('\n');
	return 0;
}

static void print_records(struct parquet *p)
{
	struct err err = ERR_INIT;
	int rc = 0;

	for (int g = 0; !rc && g < parquet_groups(p); g++)
		rc = parquet_walk_records(p, g, &(struct parquet_record_sink){ take_all, print_record, NULL }, &err);
	if (rc)
		puts(err.text);
}

int main(int argc, char *argv[])
{
	FILE *f = argc >= 2 ? fopen(argv[1], "rb") : NULL;
	struct err err = ERR_INIT;
	struct byte_source source;
	struct parquet *p;
	struct stat st;

	if (!f || fstat(fileno(f), &st))
		return 2;
	source = (struct byte_source){ (uint64_t)st.st_size, read_file, f, argv[1] };
	if (parquet_open(&p, &source, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int i = 0; argc == 2 && i < parquet_columns(p); i++)
		print(p, i);
	if (argc > 2)
		print_records(p);
	parquet_close(p);
	fclose(f);
	return 0;
}
