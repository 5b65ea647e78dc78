/* mlflow_search.c: MLflow's /runs/search. */
#include "web/api/mlflow/mlflow_errors.h"

#include "web/api/handlers.h"
#include "web/store/filter/filter.h"

enum { SEARCH_PAGE = 1000, SEARCH_MAX = 50000 };

static bool check_search_limit(struct call *c, int64_t limit)
{
	json_t *value;

	if (limit >= 1 && limit <= SEARCH_MAX)
		return true;
	if (limit < 1) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid value %lld for parameter 'max_results' supplied. It must be a positive "
			"integer",
			(long long)limit);
		return false;
	}
	value = json_integer(limit);
	ml_fail_value(c, "max_results", value,
		      " Hint: Value was of type 'int'. See the API docs for more information about "
		      "request parameters.");
	json_decref(value);
	return false;
}

static bool read_search_experiments(struct call *c, const struct ml_strings *ids, struct query_runs_opts *o)
{
	int64_t *numbers = arena_array(c->arena, ids->count + 1, sizeof(*numbers));
	size_t i;

	if (!numbers)
		return ml_fail(c, ML_TEMPORARILY_UNAVAILABLE, "out of memory"), false;
	for (i = 0; i < ids->count; i++)
		if (!ml_experiment_id(c, ids->items[i], &numbers[i]))
			return false;
	o->experiment_ids = numbers;
	o->experiment_count = ids->count;
	return true;
}

/* Inputs and outputs of each run; NULL after failing the call. */
static const struct run_links *read_search_links(struct call *c, const struct query_runs *runs)
{
	const char **ids = arena_array(c->arena, runs->count + 1, sizeof(*ids));
	struct run_links *links = arena_array(c->arena, runs->count + 1, sizeof(*links));
	struct err err = ERR_INIT;
	size_t i;

	if (!ids || !links)
		return ml_fail(c, ML_TEMPORARILY_UNAVAILABLE, "out of memory"), NULL;
	for (i = 0; i < runs->count; i++)
		ids[i] = runs->items[i].id;
	if (runs->count && runs_links(c->api->store, &(struct runs_linked){ ids, runs->count, links }, c->arena, &err))
		return ml_fail_err(c, &err), NULL;
	return links;
}

/* Writes the page of runs, each with its inputs and outputs. */
static enum call_next reply_search(struct call *c, const struct query_runs *runs)
{
	const struct run_links *links = read_search_links(c, runs);
	struct js j = { .out = &c->out };
	size_t i;

	if (!links)
		return CALL_DONE;
	js_open(&j, '{');
	if (runs->count) {
		js_key(&j, "runs");
		js_open(&j, '[');
		for (i = 0; i < runs->count; i++) {
			js_open(&j, '{');
			ml_write_run(c, &j, &runs->items[i]);
			ml_write_links(&j, &links[i]);
			js_close(&j, '}');
		}
		js_close(&j, ']');
	}
	if (runs->next_page_token)
		js_key_str(&j, "next_page_token", runs->next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_run_search(struct call *c)
{
	struct ml_strings ids = { 0 }, order = { 0 };
	struct filter_mlflow text = { FILTER_RUNS, NULL, NULL, 0 };
	struct query_runs_opts o = { .mlflow = &text };
	int64_t limit = SEARCH_PAGE;
	struct query_runs runs = { 0 };
	struct err err = ERR_INIT;
	json_t *request = ml_request(c);
	const struct ml_field fields[] = {
		{ "experiment_ids", ML_STRINGS, false, &ids, NULL }, { "filter", ML_STRING, false, &text.filter, NULL },
		{ "max_results", ML_INT, false, &limit, NULL }, { "order_by", ML_STRINGS, false, &order, NULL },
		{ "page_token", ML_STRING, false, &o.page_token, NULL }, { 0 },
	};
	int view;

	if (!request || !ml_read(c, request, fields) || !check_search_limit(c, limit) ||
	    !read_search_experiments(c, &ids, &o))
		return CALL_DONE;
	view = ml_view_type(c, json_object_get(request, "run_view_type"), "run_view_type");
	if (view < 0)
		return CALL_DONE;
	text.order = order.items;
	text.order_count = order.count;
	o.limit = (size_t)limit;
	o.with_deleted = view != ML_VIEW_ACTIVE;
	o.only_deleted = view == ML_VIEW_DELETED;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return ml_fail_err(c, &err);
	return reply_search(c, &runs);
}
