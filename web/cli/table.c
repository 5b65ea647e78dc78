/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: prints aligned tables. Independent of their content. */
#include "tracker/base/terminal.h"
#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "web/cli/cli.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { TABLE_COLUMNS_MAX = 64, TABLE_GAP = 2, TABLE_TEXT_MIN = 12, TABLE_TEXT_MAX = 64 };

struct table {
	struct arena *arena;
	locale_t utf8; /* locale for libc's character widths; 0: unavailable */
	bool cut;      /* cut cells that are wider than their column; else they shift the rest of the row */
	struct {
		const char *title;
		bool right, hidden;
		size_t width;
	} column[TABLE_COLUMNS_MAX];
	size_t columns;
	const char **cells;
	size_t count, room;
};

struct table *table_new(void)
{
	struct table *t = mem_zalloc(sizeof(*t));

	t->arena = arena_new();
	t->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	arena_free(t->arena);
	if (t->utf8)
		freelocale(t->utf8);
	free(t->cells);
	free(t);
}

/* Number of bytes of the character at s, and its columns on a terminal: CJK characters have two, combining accents
 * none. */
static size_t measure_character(const char *s, size_t *ret_columns)
{
	mbstate_t state = { 0 };
	wchar_t c;
	size_t n;

	*ret_columns = 1;
	if ((unsigned char)*s < 0x80)
		return 1;
	n = mbrtowc(&c, s, strnlen(s, MB_LEN_MAX), &state);
	if (n <= MB_LEN_MAX) {
		*ret_columns = wcwidth(c) < 0 ? 1 : (size_t)wcwidth(c);
		return n;
	}
	for (n = 1; ((unsigned char)s[n] & 0xc0) == 0x80; n++)
		;
	return n;
}

/* Number of bytes of the longest prefix of s that fits into `columns`; *ret_columns: its width. */
static size_t fit_text_bytes(const struct table *t, const char *s, size_t columns, size_t *ret_columns)
{
	locale_t before = uselocale(t->utf8);
	size_t n = 0, width, bytes;

	*ret_columns = 0;
	while (s[n]) {
		bytes = measure_character(s + n, &width);
		if (width > columns - *ret_columns)
			break;
		n += bytes;
		*ret_columns += width;
	}
	uselocale(before);
	return n;
}

static size_t measure_text_width(const struct table *t, const char *s)
{
	size_t width;

	fit_text_bytes(t, s, SIZE_MAX, &width);
	return width;
}

/* The byte at *s, or a blank for a control character, which is skipped completely. */
static char next_printable_byte(const char **s, const char *end)
{
	const size_t control = utf8_control(*s, (size_t)(end - *s));
	const char c = control ? ' ' : **s;

	*s += control ? control : 1;
	return c;
}

void table_text(FILE *out, const char *text, size_t n)
{
	for (const char *end = text + n; text < end;)
		putc(next_printable_byte(&text, end), out);
}

static const char *copy_printable(struct arena *a, const char *text)
{
	const char *end = text + strlen(text);
	char *copy = arena_strdup(a, text);
	size_t to = 0;

	while (text < end)
		copy[to++] = next_printable_byte(&text, end);
	copy[to] = '\0';
	return copy;
}

void table_column(struct table *t, const char *title, bool right)
{
	if (t->columns == TABLE_COLUMNS_MAX)
		return;
	t->column[t->columns].title = copy_printable(t->arena, title);
	t->column[t->columns].right = right;
	t->column[t->columns].width = measure_text_width(t, t->column[t->columns].title);
	t->columns++;
}

void table_columns(struct table *t, const char *titles)
{
	char title[64];

	for (size_t n; t && *titles; titles += n + (titles[n] == ',')) {
		n = strcspn(titles, ",");
		snprintf(title, sizeof(title), "%.*s", (int)n, titles);
		table_column(t, title + (*title == '>'), *title == '>');
	}
}

void table_cell(struct table *t, const char *text)
{
	const char *copy = copy_printable(t->arena, text && *text ? text : "-");
	size_t width, at = t->count % (t->columns ? t->columns : 1);

	mem_push(&t->cells, &t->count, &t->room, copy);
	width = measure_text_width(t, t->cells[t->count - 1]);
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

static size_t measure_table_width(const struct table *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->columns; i++)
		n += t->column[i].hidden ? 0 : t->column[i].width + (n ? TABLE_GAP : 0);
	return n;
}

/* The widest left-aligned column that may still be cut; else t->columns. */
static size_t find_widest_column(const struct table *t)
{
	size_t i, best = t->columns;

	for (i = 0; i < t->columns; i++)
		if (!t->column[i].hidden && !t->column[i].right && t->column[i].width > TABLE_TEXT_MIN &&
		    (best == t->columns || t->column[i].width > t->column[best].width))
			best = i;
	return best;
}

/* Cuts long texts first, then hides columns, beginning with the last but one, so that a row stays one line. The first
 * two identify the row, the last is its status. Returns the number of hidden columns. */
static size_t fit_table_to_width(struct table *t, size_t width)
{
	size_t i, hidden = 0;

	while (measure_table_width(t) > width && (i = find_widest_column(t)) < t->columns)
		t->column[i].width--;
	for (i = t->columns > 3 ? t->columns - 2 : 0; i > 1 && measure_table_width(t) > width; i--) {
		t->column[i].hidden = true;
		hidden++;
	}
	return hidden;
}

/* Without a terminal nothing is cut, and a few long texts do not widen every row. */
static void limit_column_widths(struct table *t)
{
	for (size_t i = 0; i < t->columns; i++)
		if (!t->column[i].right && t->column[i].width > TABLE_TEXT_MAX)
			t->column[i].width = TABLE_TEXT_MAX;
}

static void print_table_cell(FILE *out, const struct table *t, size_t column, const char *text)
{
	size_t width = t->column[column].width, have = measure_text_width(t, text), cut;
	int pad = have < width ? (int)(width - have) : 0;
	bool last = column + 1 == t->columns;

	if (t->column[column].hidden)
		return;
	if (have > width && t->cut) {
		cut = fit_text_bytes(t, text, width - 1, &have);
		fprintf(out, "%.*s\u2026%*s", (int)cut, text, last ? 0 : (int)(width - 1 - have), "");
	} else if (t->column[column].right) {
		fprintf(out, "%*s%s", pad, "", text);
	} else {
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	}
	fputs(last ? "\n" : "  ", out);
}

static void print_csv_cell(FILE *out, const char *text, bool raw, bool last)
{
	const char *mark;

	if (!strcmp(text, "-"))
		text = "";
	mark = !raw && text_is_formula(text) ? "'" : "";
	if (strpbrk(text, ",\"\r\n")) {
		fprintf(out, "\"%s", mark);
		for (; *text; text++) {
			if (*text == '"')
				fputc('"', out);
			fputc(*text, out);
		}
		fputc('"', out);
	} else {
		fprintf(out, "%s%s", mark, text);
	}
	fputc(last ? '\n' : ',', out);
}

void table_print(struct table *t, FILE *out, enum table_form form)
{
	const bool csv = form != TABLE_TEXT, raw = form == TABLE_CSV_RAW;
	const bool whole = csv || !isatty(fileno(out)); /* nothing is cut */
	size_t i, width = whole ? 0 : (size_t)terminal_columns(fileno(out), 0);
	size_t hidden = width ? fit_table_to_width(t, width) : 0;

	t->cut = width;
	if (!width)
		limit_column_widths(t);
	for (i = 0; i < t->columns; i++)
		if (csv)
			print_csv_cell(out, t->column[i].title, raw, i + 1 == t->columns);
		else
			print_table_cell(out, t, i, t->column[i].title);
	for (i = 0; i < t->count; i++)
		if (csv)
			print_csv_cell(out, t->cells[i], raw, i % t->columns + 1 == t->columns);
		else
			print_table_cell(out, t, i % t->columns, t->cells[i]);
	if (hidden)
		fprintf(out, "(%zu column%s hidden: use a wider terminal, --csv or --json to see %s)\n", hidden,
			hidden == 1 ? "" : "s", hidden == 1 ? "it" : "them");
}

const char *table_exact(char *text, double v)
{
	return text_double(text, v, 15);
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

	if (ms <= 0 || !gmtime_r(&t, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%SZ", &tm))
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
