/* api_why.c: /compare/why: the speedup of each change between consecutive runs, and the phases it comes from. */
#include "web/api/native/insight/api_why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/insight/run_change.h"
#include "tracker/insight/step_time.h"
#include "web/api/handlers.h"
#include "web/api/native/request.h"

enum { WHY_RUNS_MAX = 50, WHY_SENTENCE_MAX = 4096 };

static int find_changed_params(struct call *c, struct why_pair *p)
{
	const struct query_run *a = p->a->run, *b = p->b->run;
	size_t i = 0, k = 0;

	p->params = arena_array(c->arena, a->param_count + b->param_count + 1, sizeof(*p->params));
	if (!p->params)
		return -1;
	while (i < a->param_count || k < b->param_count) {
		int order = i == a->param_count ? 1 : k == b->param_count ? -1
			: strcmp(a->params[i].key, b->params[k].key);
		const struct query_kv *kv = order > 0 ? &b->params[k] : &a->params[i];

		if ((order || strcmp(a->params[i].value, b->params[k].value)) && !why_is_own(kv))
			p->params[p->param_count++] = kv->key;
		i += order <= 0;
		k += order >= 0;
	}
	return 0;
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
	if (!w->metric || isnan(p->metric[0]) || isnan(p->metric[1]))
		return;
	if (w->more ? p->metric[1] >= p->metric[0] : p->metric[1] <= p->metric[0]) {
		p->worse = 0;
		return;
	}
	half = change_half_width(p->a->metrics, p->a->n, p->b->metrics, p->b->n);
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
static struct change_pool make_pair_pool(const struct why *w, const struct why_pair *p)
{
	struct change_pool pool = w->pool;

	for (size_t i = 0; i < w->n; i++)
		if (&w->sides[i] != p->a && &w->sides[i] != p->b)
			change_pool_add(&pool, (struct change_side){ w->sides[i].paces, w->sides[i].n });
	return pool;
}

static int compare_pair(struct call *c, const struct why *w, struct why_pair *p, double before)
{
	struct change_pool pool = make_pair_pool(w, p);
	struct buf text;

	change_of((struct change_side){ p->a->paces, p->a->n }, (struct change_side){ p->b->paces, p->b->n }, &pool,
		  &p->change);
	p->product = before * p->change.factor;
	compare_goal_metric(w, p);
	buf_init(&text, WHY_SENTENCE_MAX);
	change_text_change(&text, &p->change, pick_side_name(c, p, p->a), pick_side_name(c, p, p->b));
	p->sentence = text.data ? arena_strdup(c->arena, text.data) : NULL;
	buf_done(&text);
	return find_changed_params(c, p) || !p->sentence ? -1 : 0;
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
	if (!request_run_ids(c, "run", ids, n) || why_read(c, ids, n, w))
		return false;
	*r = (struct why_report){ .why = w, .pairs = arena_array(c->arena, n - 1, sizeof(*r->pairs)), .n = n - 1 };
	for (size_t i = 0; r->pairs && i < r->n; i++) {
		struct why_pair *p = &r->pairs[i];

		p->a = &w->sides[i];
		p->b = &w->sides[i + 1];
		if (compare_pair(c, w, p, i ? r->pairs[i - 1].product : 1))
			r->pairs = NULL;
	}
	if (!r->pairs)
		return call_fail(c, CALL_busy, NULL, "out of memory"), false;
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
	js_key(j, "phases");
	js_open(j, '{');
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		js_key_number(j, step_time_phase_name((enum step_time_phase)k), why_mean(s, k));
	js_close(j, '}');
	js_key(j, "repeats");
	js_open(j, '[');
	for (size_t i = 0; i < s->n; i++)
		write_repeat_pace(j, i ? s->repeats[i - 1] : s->run->id, &s->paces[i]);
	js_close(j, ']');
	js_close(j, '}');
}

static void write_change_part(struct js *j, const char *key, const struct change_part *p)
{
	js_key(j, key);
	js_open(j, '{');
	js_key_number(j, "seconds", p->seconds);
	js_key_number(j, "low", p->low);
	js_key_number(j, "high", p->high);
	js_close(j, '}');
}

static void write_changed_params(struct js *j, const struct why_pair *p)
{
	js_key(j, "params");
	js_open(j, '[');
	for (size_t i = 0; i < p->param_count; i++) {
		js_open(j, '{');
		js_key_str(j, "key", p->params[i]);
		js_key_str(j, "a", why_param(p->a->run, p->params[i]));
		js_key_str(j, "b", why_param(p->b->run, p->params[i]));
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_goal_metric(struct js *j, const struct why *w, const struct why_pair *p)
{
	js_key(j, "metric");
	if (!w->metric) {
		js_null(j);
		return;
	}
	js_open(j, '{');
	js_key_str(j, "key", w->metric);
	js_key_number(j, "a", p->metric[0]);
	js_key_number(j, "b", p->metric[1]);
	js_key(j, "worse");
	if (p->worse < 0)
		js_null(j);
	else
		js_bool(j, p->worse);
	js_close(j, '}');
}

/* Writes the comparison of two consecutive runs. */
static void write_why_pair(struct js *j, const struct why *w, const struct why_pair *p)
{
	static const char *const bases[] = { [CHANGE_REPEATS] = "repeats", [CHANGE_POOLED] = "other repeats",
					     [CHANGE_ALONE] = "single runs", [CHANGE_TOO_FEW] = "too few steps" };
	const struct change *c = &p->change;

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
	js_key(j, "phases");
	js_open(j, '{');
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
	js_key(&j, "runs");
	js_open(&j, '[');
	for (size_t i = 0; i < w.n; i++)
		write_why_side(&j, &w.sides[i]);
	js_close(&j, ']');
	js_key(&j, "pairs");
	js_open(&j, '[');
	for (size_t i = 0; i < r.n; i++)
		write_why_pair(&j, &w, &r.pairs[i]);
	js_close(&j, ']');
	js_key_str(&j, "warmup_rule", WARMUP_RULE);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
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
	return reply_why_text(c, "text/csv; charset=utf-8", why_csv);
}

enum call_next on_compare_why_md(struct call *c)
{
	return reply_why_text(c, "text/markdown; charset=utf-8", why_markdown);
}

enum call_next on_compare_why_svg(struct call *c)
{
	return reply_why_text(c, "image/svg+xml", why_svg);
}
