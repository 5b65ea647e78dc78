/* trace_report.c: all texts of the table are in one buffer, and its cells point into it. */
#include "trainer/run/trace_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/log.h"

enum { COLUMNS = 6 };

#define TEXTS_MAX ((size_t)64 << 20)

static void add_text_cell(struct buf *texts, size_t *cell, const char *text)
{
	*cell = texts->len;
	buf_add(texts, text, strlen(text) + 1);
}

static void add_number_cell(struct buf *texts, size_t *cell, int64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)v);
	add_text_cell(texts, cell, text);
}

/* Adjacent spans of the trace stay adjacent in the table: begin and end are rounded alike, and the length is their
 * difference. */
static void add_span_row(struct buf *texts, size_t cell[COLUMNS], const struct trace_span *s, int64_t offset_ns)
{
	int64_t from_ns = (int64_t)(s->from_s * 1e9);
	char row[64];

	snprintf(row, sizeof(row), strcmp(s->row, "loader") ? "%s" : "%s %d", s->row, s->number);
	add_text_cell(texts, &cell[0], row);
	add_text_cell(texts, &cell[1], s->name);
	add_text_cell(texts, &cell[2], s->phase);
	add_number_cell(texts, &cell[3], s->node);
	add_number_cell(texts, &cell[4], offset_ns + from_ns);
	add_number_cell(texts, &cell[5], (int64_t)(s->to_s * 1e9) - from_ns);
}

/* at[i]: offset of the text of cell i. */
static int record_span_table(struct dptrack_run *run, int64_t step, const struct buf *texts, const size_t *at,
			     size_t rows)
{
	const char **cells = calloc(rows * COLUMNS, sizeof(*cells));
	int rc;

	if (!cells || buf_failed(texts)) {
		free(cells);
		return DPTRACK_NOMEM;
	}
	for (size_t i = 0; i < rows * COLUMNS; i++)
		cells[i] = texts->data + at[i];
	rc = dptrack_table(run, step, "trace/spans", cells, rows, COLUMNS);
	free(cells);
	return rc;
}

void trace_report_step(struct trace *t, struct dptrack_run *run, int64_t step, double to_s)
{
	size_t n, lost;
	const struct trace_span *spans = trace_end(t, to_s, &n, &lost);
	struct trace_span whole = { TRACE_STEP_ROW, 0, "", "", -1, trace_from(t), to_s };
	size_t *at = calloc((n + 1) * COLUMNS, sizeof(*at));
	int64_t offset_ns = trace_date_offset_ns(t);
	struct buf texts;
	char name[40];

	buf_init(&texts, TEXTS_MAX);
	snprintf(name, sizeof(name), "step %lld", (long long)step);
	whole.name = name;
	if (at)
		add_span_row(&texts, at, &whole, offset_ns);
	for (size_t i = 0; at && i < n; i++)
		add_span_row(&texts, at + (i + 1) * COLUMNS, &spans[i], offset_ns);
	if (lost || !at || record_span_table(run, step, &texts, at, n + 1))
		log_warn("--trace-steps: spans of step %lld are missing", (long long)step);
	buf_done(&texts);
	free(at);
}
