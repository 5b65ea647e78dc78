/* table.c: aligned tables. Knows nothing of what stands in them. */
#include "web/cli/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/base/arena.h"

enum { TABLE_COLUMNS_MAX = 64, TABLE_CELL_MAX = 48 };

struct table {
	struct arena *arena;
	struct {
		const char *title;
		bool right;
		size_t width;
	} column[TABLE_COLUMNS_MAX];
	size_t columns;
	const char **cells;
	size_t count, room;
};

struct table *table_new(void)
{
	struct table *t = calloc(1, sizeof(*t));

	if (t)
		t->arena = arena_new();
	if (t && !t->arena) {
		free(t);
		return NULL;
	}
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	arena_free(t->arena);
	free(t->cells);
	free(t);
}

/* Characters, not bytes. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

void table_column(struct table *t, const char *title, bool right)
{
	if (t->columns == TABLE_COLUMNS_MAX)
		return;
	t->column[t->columns].title = arena_strdup(t->arena, title);
	t->column[t->columns].right = right;
	t->column[t->columns].width = text_width(title);
	t->columns++;
}

/* Control characters would move the cursor of whoever looks. */
static char *printable(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text), *s;

	for (s = copy; s && *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
	return copy;
}

void table_cell(struct table *t, const char *text)
{
	const char *copy = printable(t->arena, text && *text ? text : "-");
	size_t width, at = t->count % (t->columns ? t->columns : 1);
	const char **grown;

	if (t->count == t->room) {
		grown = realloc(t->cells, (t->room ? t->room * 2 : 256) * sizeof(*grown));
		if (!grown)
			return;
		t->cells = grown;
		t->room = t->room ? t->room * 2 : 256;
	}
	t->cells[t->count++] = copy ? copy : "-";
	width = text_width(t->cells[t->count - 1]);
	if (width > t->column[at].width)
		t->column[at].width = width;
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_cell(t, text);
}

static void print_cell(FILE *out, const struct table *t, size_t column, const char *text)
{
	int pad = (int)(t->column[column].width - text_width(text));
	bool last = column + 1 == t->columns;

	if (t->column[column].right)
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", out);
}

static void print_csv(FILE *out, const char *text, bool last)
{
	if (!strcmp(text, "-"))
		text = "";
	if (strpbrk(text, ",\"\n")) {
		fputc('"', out);
		for (; *text; text++) {
			if (*text == '"')
				fputc('"', out);
			fputc(*text, out);
		}
		fputc('"', out);
	} else {
		fputs(text, out);
	}
	fputc(last ? '\n' : ',', out);
}

void table_print(struct table *t, FILE *out, bool csv)
{
	size_t i;

	for (i = 0; i < t->columns; i++)
		if (csv)
			print_csv(out, t->column[i].title, i + 1 == t->columns);
		else
			print_cell(out, t, i, t->column[i].title);
	for (i = 0; i < t->count; i++)
		if (csv)
			print_csv(out, t->cells[i], i % t->columns + 1 == t->columns);
		else
			print_cell(out, t, i % t->columns, t->cells[i]);
}

const char *table_number(char *text, double v)
{
	if (isnan(v))
		snprintf(text, 32, "NaN");
	else if (isinf(v))
		snprintf(text, 32, v > 0 ? "Infinity" : "-Infinity");
	else if (v == rint(v) && fabs(v) < 1e9)
		snprintf(text, 32, "%.0f", v);
	else
		snprintf(text, 32, "%.5g", v);
	return text;
}

const char *table_time(char *text, int64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	if (ms <= 0 || !localtime_r(&t, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, 32, "-");
	return text;
}

const char *table_duration(char *text, double seconds)
{
	int64_t s = (int64_t)seconds;

	if (!(seconds >= 0))
		snprintf(text, 32, "-");
	else if (seconds < 60)
		snprintf(text, 32, "%.1f s", seconds);
	else if (s < 3600)
		snprintf(text, 32, "%" PRId64 " min %02" PRId64 " s", s / 60, s % 60);
	else
		snprintf(text, 32, "%" PRId64 " h %02" PRId64 " min", s / 3600, s / 60 % 60);
	return text;
}
