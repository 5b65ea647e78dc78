/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_filter.c: the runs of a project for wandb.Api().runs: filters in MongoDB's language, orders and pages. A
 * project is read as a whole. */
#include "web/api/wandb/wandb.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 50000, COMPARED_MAX = 10000000 };

/* A filter while it is evaluated. */
struct run_filter {
	struct call *c;
	const struct query_run *run;
	const char *why; /* what is not here; NULL: nothing */
	size_t compared; /* with values of lists */
};

/* A name without "config." or "summary_metrics." before it; NULL: it has none of them. */
static const char *without_prefix(const char *key, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(key, prefix, n) ? NULL : key + n;
}

/* The value of a run that a filter or an order names; NULL: it has none. A new reference. */
static json_t *run_value(struct call *c, const struct query_run *run, const char *key)
{
	const char *name, *text;
	const struct query_metric *m;
	json_t *o, *value;
	size_t n;

	if ((name = without_prefix(key, "config."))) {
		n = strlen(name);
		if (n > 6 && !strcmp(name + n - 6, ".value"))
			name = arena_printf(c->arena, "%.*s", (int)n - 6, name);
		text = api_param(run, name);
		return text ? wandb_value_of_text(text) : NULL;
	}
	if ((name = without_prefix(key, "summary_metrics.")) || (name = without_prefix(key, "summary."))) {
		m = api_metric(run, name);
		text = m ? NULL : wandb_tag(run, name);
		return m ? json_real(m->last) : text ? json_string(text) : NULL;
	}
	if (!strcmp(key, "created_at") || !strcmp(key, "createdAt"))
		return json_integer(run->start_ms);
	if (!strcmp(key, "heartbeat_at") || !strcmp(key, "heartbeatAt"))
		return json_integer(run->end_ms == INT64_MIN ? INT64_MAX : run->end_ms);
	name = !strcmp(key, "display_name") ? "displayName" : !strcmp(key, "job_type") ? "jobType" : key;
	o = wandb_run_json(c, run);
	value = json_incref(json_object_get(o, name));
	json_decref(o);
	return value;
}

/* Orders two values: numbers before texts, nothing last. */
static int compare_run_values(json_t *a, json_t *b)
{
	double x, y;
	bool number_a = json_to_double(a, &x), number_b = json_to_double(b, &y);

	if (number_a && number_b)
		return (x > y) - (x < y);
	if (json_is_string(a) && json_is_string(b))
		return strcmp(json_string_value(a), json_string_value(b));
	if (json_is_boolean(a) && json_is_boolean(b))
		return json_is_true(a) - json_is_true(b);
	return (number_b || json_is_string(b)) - (number_a || json_is_string(a));
}

/* A list equals what it contains, as in MongoDB. */
static bool is_equal(json_t *value, json_t *want)
{
	json_t *item;
	size_t i;

	if (json_is_array(value) && !json_is_array(want)) {
		json_array_foreach(value, i, item)
			if (is_equal(item, want))
				return true;
		return false;
	}
	if (!value || json_is_null(value))
		return json_is_null(want);
	if (json_is_number(value) && json_is_number(want))
		return compare_run_values(value, want) == 0;
	return json_equal(value, want);
}

static bool is_in_list(struct run_filter *w, json_t *value, json_t *list)
{
	json_t *item;
	size_t i;

	w->compared += json_array_size(list);
	if (w->compared > COMPARED_MAX) {
		w->why = "a list of this length for all runs";
		return false;
	}
	json_array_foreach(list, i, item)
		if (is_equal(value, item))
			return true;
	return false;
}

/* Patterns with counts and references are refused: they may take all memory or time. */
static bool is_like_regex(struct run_filter *w, json_t *value, json_t *pattern)
{
	const char *text = json_string_value(pattern), *at = text;
	regex_t r;
	bool found;

	while (at && (at = strchr(at, '\\')) && at[1] && !isdigit((unsigned char)at[1]))
		at += 2;
	if (!text || (at && at[1]) || strchr(text, '{') || strlen(text) > 500 ||
	    regcomp(&r, text, REG_EXTENDED | REG_NOSUB)) {
		w->why = "a $regex that is invalid, too long, or with {n} or \\1";
		return false;
	}
	found = json_is_string(value) && !regexec(&r, json_string_value(value), 0, NULL, 0);
	regfree(&r);
	return found;
}

static bool holds_operator(struct run_filter *w, json_t *value, const char *op, json_t *want)
{
	static const char *const orders[] = { "$lt", "$lte", "$gt", "$gte" };
	bool comparable =
		(json_is_number(value) && json_is_number(want)) || (json_is_string(value) && json_is_string(want));
	int order = comparable ? compare_run_values(value, want) : 0;

	for (int i = 0; i < 4; i++)
		if (!strcmp(op, orders[i]))
			return comparable && (i < 2 ? order < 0 : order > 0) | (comparable && (i & 1) && !order);
	if (!strcmp(op, "$eq") || !strcmp(op, "$ne"))
		return is_equal(value, want) == (op[1] == 'e');
	if (!strcmp(op, "$in") || !strcmp(op, "$nin"))
		return is_in_list(w, value, want) == (op[1] == 'i');
	if (!strcmp(op, "$exists"))
		return (value && !json_is_null(value)) == json_is_true(want);
	if (!strcmp(op, "$regex"))
		return is_like_regex(w, value, want);
	w->why = op;
	return false;
}

static bool holds_condition(struct run_filter *w, const char *key, json_t *want)
{
	json_t *value = run_value(w->c, w->run, key), *operand;
	bool holds = true;
	const char *op;

	if (!json_is_object(want)) {
		holds = is_equal(value, want);
	} else {
		json_object_foreach(want, op, operand)
			holds = holds && holds_operator(w, value, op, operand);
	}
	json_decref(value);
	return holds;
}

/* Returns true if all conditions of the filter hold for the run. */
static bool holds_filter(struct run_filter *w, json_t *filter, int depth)
{
	const char *key;
	json_t *want, *part;
	bool all = true, any;
	size_t i;

	json_object_foreach(filter, key, want) {
		if (strcmp(key, "$and") && strcmp(key, "$or")) {
			if (*key == '$')
				w->why = key;
			all = all && holds_condition(w, key, want);
			continue;
		}
		any = json_array_size(want) == 0;
		json_array_foreach(want, i, part) {
			bool one = depth < GRAPHQL_DEPTH_MAX && holds_filter(w, part, depth + 1);

			any = any || one;
			all = all && (one || key[1] == 'o');
		}
		all = all && any;
	}
	return all;
}

/* --- the list --------------------------------------------------------------------------------------------------- */

struct sorted_run {
	const struct query_run *run;
	json_t *value;
	int sign;
};

static int compare_runs(const void *a, const void *b)
{
	const struct sorted_run *x = a, *y = b;
	int order = x->sign * compare_run_values(x->value, y->value);

	return order ? order : strcmp(x->run->id, y->run->id);
}

/* Keeps the runs that the filter takes, in the order asked for. Returns false after failing the call. */
static bool choose_listed_runs(struct call *c, const struct query_runs *runs, const struct graphql_field *f,
			       struct sorted_run *ret, size_t *ret_count)
{
	const char *order = graphql_text(f, "order"), *text = graphql_text(f, "filters");
	json_t *filter = wandb_parse(text && *text ? text : "{}");
	struct run_filter w = { .c = c };
	size_t n = 0, i;

	order = order && *order ? order : "-created_at";
	for (i = 0; i < runs->count && !w.why; i++) {
		w.run = &runs->items[i];
		if (holds_filter(&w, filter, 0))
			ret[n++] = (struct sorted_run){ w.run, run_value(c, w.run, order + strspn(order, "+-")),
							*order == '-' ? -1 : 1 };
	}
	qsort(ret, n, sizeof(*ret), compare_runs);
	for (i = 0; i < n; i++)
		json_decref(ret[i].value);
	*ret_count = n;
	if (w.why)
		call_fail(c, CALL_bad_filter, "filters",
			  "filters: %.60s is not here: $and, $or, $eq, $ne, $gt, $gte, $lt, $lte, "
			  "$in, $nin, $exists and $regex are",
			  w.why);
	json_decref(filter);
	return !w.why;
}

static bool read_runs(struct call *c, json_t *project, struct query_runs *ret)
{
	int64_t id = strtoll(json_string_value(json_object_get(project, "id")), NULL, 10);
	struct query_runs_opts o = { .experiment_ids = &id, .experiment_count = 1, .limit = RUNS_MAX };
	struct err err = ERR_INIT;

	if (!query_runs(c->api->store, &o, c->arena, ret, &err))
		return true;
	call_fail_err(c, NULL, &err);
	return false;
}

json_t *wandb_runs(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *after = graphql_text(f, "after");
	int64_t first = graphql_int(f, "first", 50, 1, 1000), from = after ? strtoll(after, NULL, 10) : 0, i;
	struct sorted_run *sorted;
	struct query_runs runs;
	json_t *nodes, *all, *edge;
	size_t n, k;

	if (!read_runs(c, object, &runs))
		return NULL;
	sorted = arena_array(c->arena, runs.count + 1, sizeof(*sorted));
	if (!choose_listed_runs(c, &runs, f, sorted, &n))
		return NULL;
	if (!strcmp(f->name, "runCount"))
		return json_integer((json_int_t)n);
	nodes = json_array();
	for (i = from < 0 ? 0 : from; i < (int64_t)n && i < from + first; i++)
		json_array_append_new(nodes, wandb_run_json(c, sorted[i].run));
	all = graphql_connection(nodes, arena_printf(c->arena, "%" PRId64, i), i < (int64_t)n, (int64_t)n);
	json_array_foreach(json_object_get(all, "edges"), k, edge)
		json_object_set_new(edge, "cursor", json_sprintf("%" PRId64, from + (int64_t)k + 1));
	return all;
}
