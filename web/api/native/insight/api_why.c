/* SPDX-License-Identifier: Apache-2.0 */
/* api_why.c: /compare/why: the speedup of each change between consecutive runs, and the phases it comes from; as JSON,
 * CSV, Markdown or SVG. */
#include <string.h>

#include "tracker/base/utf8.h"
#include "web/api/native/insight/timing.h"
#include "web/api/native/native_inside.h"

/* Two consecutive runs. */
struct why_pair {
	const struct why_side *a, *b;
	struct run_change change;
	double product; /* product of the factors since the first run */
	const char *sentence;
	const char **params; /* keys that differ */
	size_t param_count;
	double metric[2]; /* mean of the goal's best values; NaN: none */
	int worse;	  /* 1: the second run is worse than repeats explain; 0: it is not; -1: unknown */
};

struct why_report {
	const struct why *why;
	struct why_pair *pairs;
	size_t n;
};

enum { WHY_RUNS_MAX = 50, WHY_SENTENCE_MAX = 4096 };

static void find_changed_params(struct call *c, struct why_pair *p)
{
	const struct query_run *a = p->a->run, *b = p->b->run;
	size_t i = 0, k = 0;

	p->params = arena_array(c->arena, a->param_count + b->param_count + 1, sizeof(*p->params));
	while (i < a->param_count || k < b->param_count) {
		int order = i == a->param_count	  ? 1
			    : k == b->param_count ? -1
						  : strcmp(a->params[i].key, b->params[k].key);
		const struct query_kv *kv = order > 0 ? &b->params[k] : &a->params[i];

		if ((order || strcmp(a->params[i].value, b->params[k].value)) && !why_is_own(kv))
			p->params[p->param_count++] = kv->key;
		i += order <= 0;
		k += order >= 0;
	}
}

static double mean_value(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i] / (double)n;
	return sum;
}

/* Marks the pair as worse if the goal dropped by more than repeats differ. */
static void compare_goal_metric(const struct why *w, struct why_pair *p)
{
	double half;

	p->worse = -1;
	p->metric[0] = mean_value(p->a->metrics, p->a->n);
	p->metric[1] = mean_value(p->b->metrics, p->b->n);
	if (!w->goal.best || isnan(p->metric[0]) || isnan(p->metric[1]))
		return;
	if (w->goal.best == GOAL_MAX ? p->metric[1] >= p->metric[0] : p->metric[1] <= p->metric[0]) {
		p->worse = 0;
		return;
	}
	half = run_change_half_width(p->a->metrics, p->a->n, p->b->metrics, p->b->n);
	if (!isnan(half))
		p->worse = fabs(p->metric[1] - p->metric[0]) > half;
}

/* Runs of the same name are distinguished by their ids. */
static const char *pick_side_name(struct call *c, const struct why_pair *p, const struct why_side *s)
{
	if (strcmp(p->a->run->name, p->b->run->name))
		return s->run->name;
	return arena_printf(c->arena, "%s (%.8s)", s->run->name, s->run->id);
}

/* The spread of equal runs other than the pair's own repeats. */
static struct run_change_pool make_pair_pool(const struct why *w, const struct why_pair *p)
{
	struct run_change_pool pool = w->pool;

	for (size_t i = 0; i < w->n; i++)
		if (&w->sides[i] != p->a && &w->sides[i] != p->b)
			run_change_pool_add(&pool, (struct run_change_side){ w->sides[i].paces, w->sides[i].n });
	return pool;
}

static void compare_pair(struct call *c, const struct why *w, struct why_pair *p, double before)
{
	struct run_change_pool pool = make_pair_pool(w, p);
	struct buf text;

	run_change_compute((struct run_change_side){ p->a->paces, p->a->n },
			   (struct run_change_side){ p->b->paces, p->b->n }, &pool, &p->change);
	p->change.by_step = w->by_step;
	p->change.by_clock[0] = p->a->paces[0].by_clock;
	p->change.by_clock[1] = p->b->paces[0].by_clock;
	p->product = before * p->change.factor;
	compare_goal_metric(w, p);
	buf_init(&text, WHY_SENTENCE_MAX);
	run_change_describe(&text, &p->change, pick_side_name(c, p, p->a), pick_side_name(c, p, p->b));
	p->sentence = arena_strdup(c->arena, text.data ? text.data : "");
	buf_done(&text);
	find_changed_params(c, p);
}

/* Compares the runs of the request. Returns false after failing the call. */
static bool make_why_report(struct call *c, struct why *w, struct why_report *r)
{
	const char *const *ids;
	size_t n = call_arg_all(c, "run", &ids);

	if (!call_args_done(c))
		return false;
	if (n < 2 || n > WHY_RUNS_MAX)
		return call_fail(c, CALL_bad_value, "run", "run: expected 2 to %d runs", WHY_RUNS_MAX), false;
	if (!request_run_ids(c, "run", &ids, n) || why_read(c, ids, n, w))
		return false;
	*r = (struct why_report){ .why = w, .pairs = arena_array(c->arena, n - 1, sizeof(*r->pairs)), .n = n - 1 };
	for (size_t i = 0; i < r->n; i++) {
		struct why_pair *p = &r->pairs[i];

		p->a = &w->sides[i];
		p->b = &w->sides[i + 1];
		compare_pair(c, w, p, i ? r->pairs[i - 1].product : 1);
	}
	return true;
}

static void write_repeat_pace(struct js *j, const char *id, const struct step_time *p)
{
	js_open(j, '{');
	js_key_str(j, "id", id);
	js_key_number(j, "seconds", p->seconds);
	js_key_int(j, "steps", (int64_t)p->steps);
	js_key_int(j, "warmup", (int64_t)p->warmup);
	js_key_number(j, "effective", p->effective);
	js_close(j, '}');
}

static void write_why_side(struct js *j, const struct why_side *s)
{
	js_open(j, '{');
	js_key_str(j, "id", s->run->id);
	js_key_str(j, "name", s->run->name);
	js_key_number(j, "seconds", why_mean(s, STEP_TIME_PHASES));
	js_key_open(j, "phases", '{');
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		js_key_number(j, step_time_phase_name((enum step_time_phase)k), why_mean(s, k));
	js_close(j, '}');
	js_key_open(j, "repeats", '[');
	for (size_t i = 0; i < s->n; i++)
		write_repeat_pace(j, i ? s->repeats[i - 1] : s->run->id, &s->paces[i]);
	js_close(j, ']');
	js_close(j, '}');
}

static void write_change_part(struct js *j, const char *key, const struct run_change_part *p)
{
	js_key_open(j, key, '{');
	js_key_number(j, "seconds", p->seconds);
	js_key_number(j, "low", p->low);
	js_key_number(j, "high", p->high);
	js_close(j, '}');
}

static void write_changed_params(struct js *j, const struct why_pair *p)
{
	js_key_open(j, "params", '[');
	for (size_t i = 0; i < p->param_count; i++) {
		js_open(j, '{');
		js_key_str(j, "key", p->params[i]);
		js_key_str(j, "a", api_param(p->a->run, p->params[i]));
		js_key_str(j, "b", api_param(p->b->run, p->params[i]));
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_goal_metric(struct js *j, const struct why *w, const struct why_pair *p)
{
	js_key(j, "metric");
	if (!w->goal.key) {
		js_null(j);
		return;
	}
	js_open(j, '{');
	js_key_str(j, "key", w->goal.key);
	js_key_number(j, "a", p->metric[0]);
	js_key_number(j, "b", p->metric[1]);
	js_key(j, "worse");
	if (p->worse < 0)
		js_null(j);
	else
		js_bool(j, p->worse);
	js_close(j, '}');
}

/* Names that by which seconds are divided. */
static const char *why_unit(const struct why *w)
{
	return w->by_step ? "step" : "sample";
}

/* Writes the comparison of two consecutive runs. */
static void write_why_pair(struct js *j, const struct why *w, const struct why_pair *p)
{
	static const char *const bases[] = { [RUN_CHANGE_REPEATS] = "repeats",
					     [RUN_CHANGE_POOLED] = "other repeats",
					     [RUN_CHANGE_ALONE] = "single runs",
					     [RUN_CHANGE_TOO_FEW] = "too few steps" };
	const struct run_change *c = &p->change;

	js_open(j, '{');
	js_key_str(j, "a", p->a->run->id);
	js_key_str(j, "b", p->b->run->id);
	js_key_str(j, "sentence", p->sentence);
	js_key_number(j, "factor", c->factor);
	js_key_number(j, "low", c->low);
	js_key_number(j, "high", c->high);
	js_key_str(j, "basis", bases[c->basis]);
	js_key_number(j, "steps_low", c->steps_low);
	js_key_number(j, "steps_high", c->steps_high);
	js_key_number(j, "product", p->product);
	write_change_part(j, "difference", &c->whole);
	js_key_open(j, "phases", '{');
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		write_change_part(j, step_time_phase_name((enum step_time_phase)k), &c->phase[k]);
	js_close(j, '}');
	write_changed_params(j, p);
	write_goal_metric(j, w, p);
	js_close(j, '}');
}

enum call_next on_compare_why(struct call *c)
{
	struct js j = { .out = &c->out };
	struct why_report r;
	struct why w;

	if (!make_why_report(c, &w, &r))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, "runs", '[');
	for (size_t i = 0; i < w.n; i++)
		write_why_side(&j, &w.sides[i]);
	js_close(&j, ']');
	js_key_open(&j, "pairs", '[');
	for (size_t i = 0; i < r.n; i++)
		write_why_pair(&j, &w, &r.pairs[i]);
	js_close(&j, ']');
	js_key_str(&j, "per", why_unit(&w));
	js_key_str(&j, "warmup_rule", WARMUP_RULE);
	return js_reply(c, &j);
}

/* --- as CSV, as a Markdown table, and as a waterfall in SVG, with the numbers of the JSON ----------------------- */

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
		const char *a = api_param(p->a->run, p->params[i]), *b = api_param(p->b->run, p->params[i]);

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

/* Writes a line of numbers and names for each pair. */
static void write_why_rows(struct call *c, const struct why_report *r, bool raw)
{
	buf_adds(&c->out, "a,b,a_name,b_name,factor,low,high,product,a_seconds,b_seconds,difference");
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		buf_addf(&c->out, ",%s", step_time_phase_name((enum step_time_phase)k));
	buf_adds(&c->out, ",params,metric,a_metric,b_metric,worse,sentence\n");
	for (size_t i = 0; i < r->n; i++) {
		const struct why_pair *p = &r->pairs[i];
		struct export_row row = { .out = &c->out, .format = EXPORT_CSV, .raw = raw };
		const double numbers[] = { p->change.factor,	   p->change.low,
					   p->change.high,	   p->product,
					   p->change.seconds[0],   p->change.seconds[1],
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
		export_row_text(&row, "", r->why->goal.key);
		add_csv_number(&row, p->metric[0]);
		add_csv_number(&row, p->metric[1]);
		export_row_text(&row, "", p->worse < 0 ? NULL : p->worse ? "true" : "false");
		export_row_text(&row, "", p->sentence);
		export_row_close(&row);
	}
}

static void write_why_csv(struct call *c, const struct why_report *r)
{
	write_why_rows(c, r, false);
}

static void write_why_csv_raw(struct call *c, const struct why_report *r)
{
	write_why_rows(c, r, true);
}

/* Escapes text for a table cell, so that it neither ends the cell or line nor starts markup nor changes directions. */
static void add_markdown_cell(struct buf *out, const char *text)
{
	for (const char *end = text + strlen(text); text < end;) {
		const size_t control = utf8_control(text, (size_t)(end - text));

		if (strchr("|\\`*_<>[]", *text))
			buf_addc(out, '\\');
		buf_addc(out, control ? ' ' : *text);
		text += control ? control : 1;
	}
}

static void add_factor_text(struct buf *out, const struct run_change *c)
{
	buf_addf(out, "%.2f", c->factor);
	if (!isnan(c->low))
		buf_addf(out, " (%.2f-%.2f)", c->low, c->high);
}

/* Adds the phases that make at least a twentieth of the difference, in milliseconds, with signs. */
static void add_phase_differences(struct buf *out, const struct run_change *c)
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
	if (r->why->goal.key && !isnan(p->metric[1]))
		buf_addf(out, " | %.5g%s |\n", p->metric[1], p->worse == 1 ? " (worse)" : "");
	else
		buf_adds(out, " | |\n");
}

/* Writes a table with one run per row, then a sentence for each change. */
static void write_why_markdown(struct call *c, const struct why_report *r)
{
	const struct why_pair *first = &r->pairs[0];
	struct buf *out = &c->out;

	buf_addf(out, "| run | changed | ms per %s | factor | product | difference, ms per %s | ", why_unit(r->why),
		 why_unit(r->why));
	add_markdown_cell(out, r->why->goal.key ? r->why->goal.key : "metric");
	buf_adds(out, " |\n|---|---|---:|---:|---:|---|---:|\n| ");
	add_markdown_cell(out, first->a->run->name);
	buf_addf(out, " | | %.5g | | 1.00 | |", 1e3 * first->change.seconds[0]);
	if (r->why->goal.key && !isnan(first->metric[0]))
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
	[STEP_TIME_data_wait] = "#c9820a", [STEP_TIME_h2d] = "#8e6bbf",		 [STEP_TIME_forward] = "#2f7ec2",
	[STEP_TIME_backward] = "#1b4f8a",  [STEP_TIME_comm_exposed] = "#c4462f", [STEP_TIME_optimizer] = "#2a9a78",
	[STEP_TIME_bubble] = "#cc79a7",	   [STEP_TIME_copy_exposed] = "#882255", [STEP_TIME_other] = "#b9c1ca",
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
		buf_addf(out, "%.4g ms per %s", 1e3 * s->paces[0].seconds, s->by_step ? "step" : "sample");
	}
	buf_adds(out, "</text></g>\n");
}

static void write_why_svg(struct call *c, const struct why_report *r)
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

static enum call_next reply_why_text(struct call *c, const char *type,
				     void (*write)(struct call *c, const struct why_report *r))
{
	struct why_report r;
	struct why w;

	if (make_why_report(c, &w, &r)) {
		c->type = type;
		write(c, &r);
	}
	return CALL_DONE;
}

enum call_next on_compare_why_csv(struct call *c)
{
	bool raw;

	if (!export_raw_arg(c, &raw))
		return CALL_DONE;
	reply_why_text(c, "text/csv; charset=utf-8", raw ? write_why_csv_raw : write_why_csv);
	c->reply.disposition = c->status == 200 ? "attachment; filename=why.csv" : NULL;
	return CALL_DONE;
}

enum call_next on_compare_why_md(struct call *c)
{
	return reply_why_text(c, "text/markdown; charset=utf-8", write_why_markdown);
}

enum call_next on_compare_why_svg(struct call *c)
{
	return reply_why_text(c, "image/svg+xml", write_why_svg);
}
