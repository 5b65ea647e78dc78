/* cmd_compare.c: `dptrack compare`: runs as rows, best first, with the params that differ and the goal metric's best and
 * last. */
#include "web/cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "web/cli/table.h"
#include "web/cli/cmd_why.h"

enum { COMPARE_RUNS_MAX = 1000, COMPARE_PARAMS_MAX = 12 };

struct compare {
	struct cli_common common;
	const char *experiment, *metric;
	bool why, markdown, svg;
};

/* Best is the largest where up. */
static const struct {
	const char *key;
	bool up;
} goals[] = {
#define GOAL(key, more) { key, more },
#include "schema/insight/goals.def"
#undef GOAL
};

static json_t *metric_of(json_t *metrics, const char *key)
{
	json_t *m;
	size_t i;

	json_array_foreach(metrics, i, m)
		if (!strcmp(cli_text(m, "key"), key))
			return m;
	return NULL;
}

/* The metric of the table's last two columns; NULL when there is none. */
static json_t *pick_goal(json_t *metrics, const char *wanted, bool *up)
{
	json_t *found;
	size_t i;

	*up = wanted && !strstr(wanted, "loss") && !strstr(wanted, "perplexity");
	if (wanted)
		return metric_of(metrics, wanted);
	for (i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		found = metric_of(metrics, goals[i].key);
		if (found) {
			*up = goals[i].up;
			return found;
		}
	}
	return json_array_get(metrics, 0);
}

static const char *number_at(json_t *object, const char *column, size_t i, bool exact, char *text)
{
	json_t *v = json_array_get(json_object_get(object, column), i);

	if (json_is_number(v))
		return exact ? table_exact(text, json_number_value(v)) : table_number(text, json_number_value(v));
	return json_string_value(v);
}

/* Keeps those params that get a column: they differ, and the name's column does not say the same. */
static void keep_columns(struct table *t, json_t *params)
{
	size_t i = 0;

	while (i < json_array_size(params)) {
		json_t *p = json_array_get(params, i);
		bool shown = json_is_true(json_object_get(p, "differs")) && strcmp(cli_text(p, "key"), "run_name") &&
			     i < COMPARE_PARAMS_MAX;

		if (shown) {
			table_column(t, cli_text(p, "key"), false);
			i++;
		} else {
			json_array_remove(params, i);
		}
	}
}

struct compare_goal {
	json_t *metric; /* NULL: none */
	bool up;
	bool exact; /* numbers for programs */
};

static void add_row(struct table *t, json_t *root, const struct compare_goal *goal, size_t i)
{
	json_t *run = json_array_get(json_object_get(root, "runs"), i), *param;
	char text[256];
	size_t k;

	table_cellf(t, "%.8s", cli_text(run, "id"));
	table_cell(t, cli_text(run, "name"));
	if (goal->metric) {
		table_cell(t, number_at(goal->metric, goal->up ? "max" : "min", i, goal->exact, text));
		table_cell(t, number_at(goal->metric, "last", i, goal->exact, text));
	}
	json_array_foreach(json_object_get(root, "params"), k, param)
		table_cell(t, json_string_value(json_array_get(json_object_get(param, "values"), i)));
	table_cell(t, cli_status_words(run, text));
}

struct place {
	double badness; /* the best value of the goal, negated where more is better; infinite where there is none */
	size_t run;
};

static int by_badness(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->badness != y->badness)
		return x->badness < y->badness ? -1 : 1;
	return x->run < y->run ? -1 : x->run > y->run;
}

/* The order of the rows: best first; runs without the goal keep their order, last. The caller frees. */
static struct place *ranking(const struct compare_goal *goal, size_t n)
{
	struct place *places = calloc(n + 1, sizeof(*places));
	json_t *best = goal->metric ? json_object_get(goal->metric, goal->up ? "max" : "min") : NULL;

	for (size_t i = 0; places && i < n; i++) {
		json_t *v = json_array_get(best, i);

		places[i] = (struct place){ INFINITY, i };
		if (json_is_number(v))
			places[i].badness = goal->up ? -json_number_value(v) : json_number_value(v);
	}
	if (places)
		qsort(places, n, sizeof(*places), by_badness);
	return places;
}

static int print_table(json_t *root, const struct compare *o, struct err *err)
{
	size_t n = json_array_size(json_object_get(root, "runs"));
	struct compare_goal goal = { .exact = o->common.csv };
	struct place *places;
	struct table *t = table_new();
	char title[300];

	goal.metric = pick_goal(json_object_get(root, "metrics"), o->metric, &goal.up);
	if (o->metric && !goal.metric) {
		table_free(t);
		return err_set(err, ERR_USAGE,
			       "--metric %s: none of the runs has it; dptrack show RUN lists what a run has",
			       o->metric);
	}
	places = ranking(&goal, n);
	if (!t || !places) {
		table_free(t);
		free(places);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	table_column(t, "id", false);
	table_column(t, "name", false);
	if (goal.metric) {
		snprintf(title, sizeof(title), "%s %s", cli_text(goal.metric, "key"), goal.up ? "max" : "min");
		table_column(t, title, true);
		table_column(t, "last", true);
	}
	keep_columns(t, json_object_get(root, "params"));
	table_column(t, "status", false);
	for (size_t i = 0; i < n; i++)
		add_row(t, root, &goal, places[i].run);
	table_print(t, stdout, o->common.csv);
	table_free(t);
	free(places);
	return 0;
}

/* Adds the ids of the experiment's runs, newest last; ERR_NOENT when there is none. */
static int ids_of_experiment(struct source *s, json_t *ids, const char *experiment, struct err *err)
{
	struct buf query;
	json_t *root = NULL, *run;
	size_t i;
	int rc;

	buf_init(&query, 65536);
	buf_adds(&query, "/api/v1/runs?limit=1000&order_by=start_time");
	if (experiment)
		source_arg(&query, "experiment", experiment);
	rc = source_json(s, &(struct local_opts){ .method = "GET", .target = query.data }, &root, err);
	buf_done(&query);
	if (rc)
		return rc;
	json_array_foreach(json_object_get(root, "runs"), i, run)
		json_array_append(ids, json_object_get(run, "id"));
	if (!json_array_size(ids))
		rc = err_set(err, ERR_NOENT, "no runs%s%s to compare", experiment ? " in experiment " : "",
			     experiment ? experiment : "");
	json_decref(root);
	return rc;
}

static int ids_of_words(struct source *s, json_t *ids, const struct flag_list *words, struct err *err)
{
	char id[33];
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < words->count; i++) {
		rc = cli_find_run(s, words->items[i], id, err);
		if (!rc)
			json_array_append_new(ids, json_string(id));
	}
	return rc;
}

static int compare_with(struct source *s, const struct compare *o, const struct flag_list *words, struct err *err)
{
	json_t *ids = json_array(), *body = json_pack("{s:o}", "runs", ids), *root;
	struct local_opts request = { .method = "POST", .target = "/api/v1/compare" };
	char *text = NULL;
	int rc;

	if (words->count)
		rc = ids_of_words(s, ids, words, err);
	else
		rc = ids_of_experiment(s, ids, o->experiment, err);
	if (!rc) {
		request.body = text = json_dumps(body, JSON_COMPACT);
		if (!text)
			rc = err_set(err, ERR_NOMEM, "out of memory");
	}
	if (!rc && o->common.json) {
		rc = cli_print(s, &request, err);
	} else if (!rc) {
		rc = source_json(s, &request, &root, err);
		if (!rc) {
			rc = print_table(root, o, err);
			json_decref(root);
		}
	}
	free(text);
	json_decref(body);
	return rc;
}

static int explain(struct source *s, const struct compare *o, const struct flag_list *words, struct err *err)
{
	const struct why_opts w = { .json = o->common.json, .csv = o->common.csv, .markdown = o->markdown,
				    .svg = o->svg };

	return why_print(s, &w, words, err);
}

/* What was asked for in one breath and would be passed over. */
static int check_flags(const struct compare *o, const struct flag_list *words, struct err *err)
{
	if (o->experiment && words->count)
		return err_set(err, ERR_USAGE, "compare: name runs or --experiment, not both");
	if ((o->markdown || o->svg) && !o->why)
		return err_set(err, ERR_USAGE,
			       "compare: --markdown and --svg print what --why finds; say --why with them");
	if (!o->why)
		return 0;
	if (words->count < 2 || o->metric)
		return err_set(err, ERR_USAGE, "compare --why: name two or more runs, in the order of the changes%s",
			       o->metric ? ", without --metric" : "");
	if (o->markdown + o->svg + o->common.json + o->common.csv > 1)
		return err_set(err, ERR_USAGE, "compare --why: one of --json, --csv, --markdown and --svg");
	return 0;
}

static int compare_run(int argc, char **argv, struct err *err)
{
	struct compare o = { 0 };
	const struct flag table[] = {
		{ "experiment", FLAG_TEXT, "NAME", "all runs of this experiment", &o.experiment, 0, 0 },
		{ "metric", FLAG_TEXT, "KEY", "the goal (default: accuracy or loss, whichever is there)", &o.metric, 0,
		  0 },
		{ "why", FLAG_SWITCH, "", "how much faster each run is than the one before it, and in which phases",
		  &o.why, 0, 0 },
		{ "markdown", FLAG_SWITCH, "", "with --why: a Markdown table", &o.markdown, 0, 0 },
		{ "svg", FLAG_SWITCH, "", "with --why: a waterfall as a picture", &o.svg, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = {
		.cmd = &cli_compare, .table = table, .help = &o.common.help, .words_max = COMPARE_RUNS_MAX
	};
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = check_flags(&o, &line.words, err);
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = o.why ? explain(s, &o, &line.words, err) : compare_with(s, &o, &line.words, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_compare = {
	.name = "compare", .group = "Inspect", .words = "[RUN...]",
	.summary = "runs side by side: what differs, and how they did", .run = compare_run
};
