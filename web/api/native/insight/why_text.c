/* why_text.c: /compare/why as CSV, as a Markdown table, and as a waterfall in SVG. The numbers are those of the
 * JSON. */
#include "web/api/native/insight/api_why.h"

#include <math.h>
#include <string.h>

#include "web/api/native/api_export.h"

static void add_csv_number(struct export_row *r, double v)
{
	if (isnan(v))
		export_row_none(r);
	else
		export_row_double(r, "", v);
}

/* Adds for example "lr 0.1 -> 0.2; workers 4 -> 8". */
static void add_param_changes(struct buf *out, const struct why_pair *p, const char *arrow)
{
	for (size_t i = 0; i < p->param_count; i++) {
		const char *a = why_param(p->a->run, p->params[i]), *b = why_param(p->b->run, p->params[i]);

		buf_addf(out, "%s%s %s %s %s", i ? "; " : "", p->params[i], a ? a : "none", arrow, b ? b : "none");
	}
}

static const char *format_param_changes(struct call *c, const struct why_pair *p)
{
	const char *text;
	struct buf b;

	buf_init(&b, 1 << 20);
	add_param_changes(&b, p, "->");
	text = b.data ? arena_strdup(c->arena, b.data) : "";
	buf_done(&b);
	return text ? text : "";
}

void why_csv(struct call *c, const struct why_report *r)
{
	buf_adds(&c->out, "a,b,a_name,b_name,factor,low,high,product,a_seconds,b_seconds,difference");
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		buf_addf(&c->out, ",%s", step_time_phase_name((enum step_time_phase)k));
	buf_adds(&c->out, ",params,metric,a_metric,b_metric,worse,sentence\n");
	for (size_t i = 0; i < r->n; i++) {
		const struct why_pair *p = &r->pairs[i];
		struct export_row row = { .out = &c->out, .format = EXPORT_CSV };
		const double numbers[] = { p->change.factor,	 p->change.low,		p->change.high,
					   p->product,		 p->change.seconds[0], p->change.seconds[1],
					   p->change.whole.seconds };

		export_row_open(&row);
		export_row_text(&row, "", p->a->run->id);
		export_row_text(&row, "", p->b->run->id);
		export_row_text(&row, "", p->a->run->name);
		export_row_text(&row, "", p->b->run->name);
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			add_csv_number(&row, numbers[k]);
		for (int k = 0; k < STEP_TIME_PHASES; k++)
			add_csv_number(&row, p->change.phase[k].seconds);
		export_row_text(&row, "", format_param_changes(c, p));
		export_row_text(&row, "", r->why->metric);
		add_csv_number(&row, p->metric[0]);
		add_csv_number(&row, p->metric[1]);
		export_row_text(&row, "", p->worse < 0 ? NULL : p->worse ? "true" : "false");
		export_row_text(&row, "", p->sentence);
		export_row_close(&row);
	}
}

/* Escapes text for a table cell, so that it neither ends the cell or line nor starts markup. */
static void add_markdown_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("|\\`*_<>[]", *text))
			buf_addc(out, '\\');
		buf_addc(out, (unsigned char)*text < 0x20 ? ' ' : *text);
	}
}

static void add_factor_text(struct buf *out, const struct change *c)
{
	buf_addf(out, "%.2f", c->factor);
	if (!isnan(c->low))
		buf_addf(out, " (%.2f-%.2f)", c->low, c->high);
}

/* Adds the phases that make at least a twentieth of the difference, in milliseconds per sample, with signs. */
static void add_phase_differences(struct buf *out, const struct change *c)
{
	bool any = false;

	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		if (!(fabs(c->phase[k].seconds) >= 0.05 * fabs(c->whole.seconds)) || c->phase[k].seconds == 0)
			continue;
		buf_addf(out, "%s%s %+.4g", any ? ", " : "", step_time_phase_name((enum step_time_phase)k),
			 1e3 * c->phase[k].seconds);
		any = true;
	}
}

static void add_markdown_row(struct call *c, const struct why_report *r, const struct why_pair *p)
{
	struct buf *out = &c->out;

	buf_adds(out, "| ");
	add_markdown_cell(out, p->b->run->name);
	buf_adds(out, " | ");
	add_markdown_cell(out, format_param_changes(c, p));
	buf_addf(out, " | %.5g | ", 1e3 * p->change.seconds[1]);
	add_factor_text(out, &p->change);
	buf_addf(out, " | %.2f | ", p->product);
	add_phase_differences(out, &p->change);
	if (r->why->metric && !isnan(p->metric[1]))
		buf_addf(out, " | %.5g%s |\n", p->metric[1], p->worse == 1 ? " (worse)" : "");
	else
		buf_adds(out, " | |\n");
}

void why_markdown(struct call *c, const struct why_report *r)
{
	const struct why_pair *first = &r->pairs[0];
	struct buf *out = &c->out;

	buf_adds(out, "| run | changed | ms per sample | factor | product | difference, ms per sample | ");
	add_markdown_cell(out, r->why->metric ? r->why->metric : "metric");
	buf_adds(out, " |\n|---|---|---:|---:|---:|---|---:|\n| ");
	add_markdown_cell(out, first->a->run->name);
	buf_addf(out, " | | %.5g | | 1.00 | |", 1e3 * first->change.seconds[0]);
	if (r->why->metric && !isnan(first->metric[0]))
		buf_addf(out, " %.5g", first->metric[0]);
	buf_adds(out, " |\n");
	for (size_t i = 0; i < r->n; i++)
		add_markdown_row(c, r, &r->pairs[i]);
	for (size_t i = 0; i < r->n; i++) {
		buf_adds(out, "\n- ");
		add_markdown_cell(out, r->pairs[i].sentence);
		buf_adds(out, ".");
	}
	buf_adds(out, "\n");
}

enum { SVG_WIDTH = 960, SVG_LEFT = 200, SVG_BARS = 480, SVG_ROW = 34, SVG_TOP = 50, SVG_LETTER = 7 };

static const char *const colours[STEP_TIME_PHASES] = {
	[STEP_TIME_data_wait] = "#c9820a", [STEP_TIME_h2d] = "#8e6bbf",	       [STEP_TIME_forward] = "#2f7ec2",
	[STEP_TIME_backward] = "#1b4f8a",  [STEP_TIME_comm_exposed] = "#c4462f", [STEP_TIME_optimizer] = "#2a9a78",
	[STEP_TIME_bubble] = "#cc79a7",    [STEP_TIME_copy_exposed] = "#882255", [STEP_TIME_other] = "#b9c1ca",
	[STEP_TIME_between] = "#7f8b99",
};

static void add_xml_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&\"", *text) || (unsigned char)*text < 0x20)
			buf_addf(out, "&#%d;", (unsigned char)*text < 0x20 ? ' ' : *text);
		else
			buf_addc(out, *text);
	}
}

static void add_svg_text(struct buf *out, double x, double y, const char *text)
{
	buf_addf(out, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
	add_xml_text(out, text);
	buf_adds(out, "</text>\n");
}

/* A legend of the phases that occur in a bar. */
static void add_svg_legend(struct buf *out, const struct why_report *r)
{
	double x = 10;

	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		const char *name = step_time_phase_name((enum step_time_phase)k);
		bool drawn = false;

		for (size_t i = 0; i < r->why->n; i++)
			drawn |= why_mean(&r->why->sides[i], k) > 0;
		if (!drawn)
			continue;
		buf_addf(out, "<rect x=\"%.0f\" y=\"12\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x, colours[k]);
		add_svg_text(out, x + 14, 21, name);
		x += 30 + SVG_LETTER * (double)strlen(name);
	}
}

/* Draws one run as a bar of phases; negative phases are omitted. */
static void add_svg_row(struct call *c, const struct why_side *s, const struct why_pair *to, double y, double scale)
{
	struct buf *out = &c->out;
	double x = SVG_LEFT;

	buf_addf(out, "<g><title>");
	add_xml_text(out, to ? to->sentence : s->run->name);
	buf_adds(out, "</title>\n");
	add_svg_text(out, 10, y + 15, s->run->name);
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		const double width = why_mean(s, k) * scale;

		if (width <= 0)
			continue;
		buf_addf(out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"20\" fill=\"%s\"/>\n", x, y, width,
			 colours[k]);
		x += width;
	}
	buf_addf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 6, y + 15);
	if (to) {
		add_factor_text(out, &to->change);
		buf_addf(out, "x, %.2fx in total", to->product);
	} else {
		buf_addf(out, "%.4g ms per sample", 1e3 * s->paces[0].seconds);
	}
	buf_adds(out, "</text></g>\n");
}

void why_svg(struct call *c, const struct why_report *r)
{
	int height = SVG_TOP + SVG_ROW * (int)r->why->n + 10;
	double longest = 0;

	for (size_t i = 0; i < r->n; i++)
		longest = fmax(longest, fmax(r->pairs[i].change.seconds[0], r->pairs[i].change.seconds[1]));
	buf_addf(&c->out,
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
		 "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		 SVG_WIDTH, height);
	add_svg_legend(&c->out, r);
	for (size_t i = 0; i < r->why->n; i++)
		add_svg_row(c, &r->why->sides[i], i ? &r->pairs[i - 1] : NULL, SVG_TOP + SVG_ROW * (double)i,
			    SVG_BARS / longest);
	buf_adds(&c->out, "</svg>\n");
}
