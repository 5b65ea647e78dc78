/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compare.c: `dptrack compare`: a table of runs, best first, with the params that differ and the best and last
 * value of the goal metric; with --why the speedup of each change between consecutive runs. */
#include <stdlib.h>
#include <string.h>

#include "tracker/insight/run_change.h"
#include "tracker/mem/mem.h"
#include "web/cli/cli.h"

/* --- compare --why: the comparison that the server computes ----------------------------------------------------- */

struct why_opts {
	bool json, csv, markdown, svg; /* at most one; none: sentences and a table */
};

static double json_number_or_nan(json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Milliseconds with a sign. */
static const char *format_change_ms(char *text, double seconds)
{
	snprintf(text, 32, "%+.4g", 1e3 * seconds);
	return text;
}

static const char *format_interval_ms(char *text, json_t *part)
{
	double low = json_number_or_nan(part, "low"), high = json_number_or_nan(part, "high");

	if (isnan(low))
		return NULL;
	snprintf(text, 64, "%+.3g to %+.3g", 1e3 * low, 1e3 * high);
	return text;
}

static void add_phase_row(struct table *t, const char *name, json_t *part, json_t *runs, size_t pair)
{
	char text[64];

	table_cell(t, name);
	for (size_t i = pair; i < pair + 2; i++) {
		json_t *run = json_array_get(runs, i), *phases = json_object_get(run, "phases");

		table_cellf(t, "%.4g",
			    1e3 * (strcmp(name, "all") ? json_number_or_nan(phases, name)
						       : json_number_or_nan(run, "seconds")));
	}
	table_cell(t, format_change_ms(text, json_number_or_nan(part, "seconds")));
	table_cell(t, format_interval_ms(text, part));
}

/* Prints the phases in milliseconds per sample, or per step, without those that neither run has. */
static void print_phase_table(json_t *root, size_t pair)
{
	json_t *runs = json_object_get(root, "runs"), *p = json_array_get(json_object_get(root, "pairs"), pair), *part;
	struct table *t = table_new();
	char unit[40];
	const char *name;

	snprintf(unit, sizeof(unit), "ms per %s", cli_text(root, "per"));
	table_column(t, unit, false);
	table_column(t, cli_text(json_array_get(runs, pair), "name"), true);
	table_column(t, cli_text(json_array_get(runs, pair + 1), "name"), true);
	table_columns(t, ">difference,>95 %");
	json_object_foreach(json_object_get(p, "phases"), name, part)
		if (json_number_or_nan(json_object_get(json_array_get(runs, pair), "phases"), name) != 0 ||
		    json_number_or_nan(json_object_get(json_array_get(runs, pair + 1), "phases"), name) != 0)
			add_phase_row(t, name, part, runs, pair);
	add_phase_row(t, "all", json_object_get(p, "difference"), runs, pair);
	table_print(t, stdout, TABLE_TEXT);
	table_free(t);
}

static void print_plain_text(const char *before, const char *text)
{
	fputs(before, stdout);
	table_text(stdout, text, strlen(text));
}

static bool has_difference(json_t *params, const char *key)
{
	json_t *p;
	size_t i;

	json_array_foreach(params, i, p)
		if (!strcmp(cli_text(p, "key"), key))
			return !json_is_false(json_object_get(p, "differs"));
	return false;
}

/* Returns true if the difference of a param does not follow from that of another one. */
static bool is_param_chosen(json_t *params, json_t *param)
{
	const char *key = cli_text(param, "key"), *other;

	for (size_t i = 0; (other = run_change_cause(key, i)); i++)
		if (!*other || has_difference(params, other))
			return false;
	return true;
}

static void print_param_changes(json_t *params)
{
	size_t i, n = json_array_size(params), chosen = 0;
	json_t *p;

	if (n)
		printf("changed: ");
	json_array_foreach(params, i, p) {
		const char *a = json_string_value(json_object_get(p, "a")),
			   *b = json_string_value(json_object_get(p, "b"));

		print_plain_text(i ? ", " : "", cli_text(p, "key"));
		print_plain_text(" ", a ? a : "none");
		print_plain_text(" -> ", b ? b : "none");
		chosen += is_param_chosen(params, p);
	}
	if (chosen > 1)
		printf("\nwarning: %zu params changed at once: their effects cannot be separated", chosen);
	printf("%s", n ? "\n" : "");
}

static void print_metric_change(json_t *metric)
{
	char a[32], b[32];

	if (!json_is_object(metric))
		return;
	print_plain_text("", cli_text(metric, "key"));
	printf(": %s -> %s%s\n", table_number(a, json_number_or_nan(metric, "a")),
	       table_number(b, json_number_or_nan(metric, "b")),
	       json_is_true(json_object_get(metric, "worse")) ? ", worse than repeats explain" : "");
}

/* Prints the number of steps and repeats of every run. */
static void print_side_basis(json_t *root)
{
	json_t *run;
	char text[64];
	size_t i;

	json_array_foreach(json_object_get(root, "runs"), i, run) {
		json_t *repeats = json_object_get(run, "repeats"), *own = json_array_get(repeats, 0);
		size_t more = json_array_size(repeats) - 1;

		print_plain_text("", cli_text(run, "name"));
		printf(": %lld steps, %lld of warm-up excluded",
		       (long long)json_integer_value(json_object_get(own, "steps")),
		       (long long)json_integer_value(json_object_get(own, "warmup")));
		printf("%s%s\n", more ? ", with " : "", more ? cli_count(text, more, "repeat") : "");
	}
	printf("warm-up: %s\n", cli_text(root, "warmup_rule"));
}

static void add_waterfall_row(struct table *t, json_t *run, json_t *pair)
{
	double low = json_number_or_nan(pair, "low");

	table_cell(t, cli_text(run, "name"));
	table_cellf(t, "%.4g", 1e3 * json_number_or_nan(run, "seconds"));
	if (!pair) {
		table_cell(t, NULL);
		table_cell(t, NULL);
		table_cell(t, NULL);
		return;
	}
	table_cellf(t, "%.2f", json_number_or_nan(pair, "factor"));
	if (isnan(low))
		table_cell(t, NULL);
	else
		table_cellf(t, "%.2f-%.2f", low, json_number_or_nan(pair, "high"));
	table_cellf(t, "%.2f", json_number_or_nan(pair, "product"));
}

/* Prints several changes, one per row. */
static void print_waterfall_table(json_t *root)
{
	json_t *pairs = json_object_get(root, "pairs"), *run;
	struct table *t = table_new();
	char columns[80];
	size_t i;

	snprintf(columns, sizeof(columns), "run,>ms per %s,>factor,>95 %%,>since the first", cli_text(root, "per"));
	table_columns(t, columns);
	json_array_foreach(json_object_get(root, "runs"), i, run)
		add_waterfall_row(t, run, i ? json_array_get(pairs, i - 1) : NULL);
	table_print(t, stdout, TABLE_TEXT);
	table_free(t);
	printf("\n");
}

static void print_why_report(json_t *root)
{
	json_t *pairs = json_object_get(root, "pairs"), *p;
	size_t i;

	if (json_array_size(pairs) > 1)
		print_waterfall_table(root);
	json_array_foreach(pairs, i, p) {
		print_plain_text("", cli_text(p, "sentence"));
		printf("\n");
		print_param_changes(json_object_get(p, "params"));
		print_metric_change(json_object_get(p, "metric"));
		printf("\n");
		print_phase_table(root, i);
		printf("\n");
	}
	print_side_basis(root);
}

/* words: at least two runs, each an id, a prefix of one, or a name. */
static int why_print(struct source *s, const struct why_opts *o, const struct flag_list *words, struct err *err)
{
	const char *suffix = o->csv ? ".csv" : o->markdown ? ".md" : o->svg ? ".svg" : "";
	struct buf target;
	json_t *root;
	char id[33];
	int rc = 0;

	buf_init(&target, 65536);
	buf_addf(&target, "/api/v1/compare/why%s", suffix);
	for (size_t i = 0; !rc && i < words->count; i++) {
		rc = cli_find_run(s, words->items[i], id, err);
		if (!rc)
			source_arg(&target, "run", id);
	}
	if (!rc && (o->json || *suffix)) {
		rc = cli_get_print(s, target.data, err);
	} else if (!rc) {
		rc = cli_get_json(s, target.data, &root, err);
		if (!rc) {
			print_why_report(root);
			json_decref(root);
		}
	}
	buf_done(&target);
	return rc;
}

enum { COMPARE_RUNS_MAX = 1000, COMPARE_PARAMS_MAX = 12 };

struct compare_options {
	struct cli_common common;
	const char *experiment, *metric;
	bool why, markdown, svg;
};

static json_t *find_compared_metric(json_t *metrics, const char *key)
{
	json_t *m;
	size_t i;

	json_array_foreach(metrics, i, m)
		if (!strcmp(cli_text(m, "key"), key))
			return m;
	return NULL;
}

static const char *format_number_at(json_t *object, const char *column, size_t i, bool exact, char *text)
{
	json_t *v = json_array_get(json_object_get(object, column), i);

	if (json_is_number(v))
		return exact ? table_exact(text, json_number_value(v)) : table_number(text, json_number_value(v));
	return json_string_value(v);
}

/* Adds a column for each param that was chosen differently and is not the run's name; removes the others. */
static void add_param_columns(struct table *t, json_t *params)
{
	size_t i = 0;

	while (i < json_array_size(params)) {
		json_t *p = json_array_get(params, i);
		bool shown = json_is_true(json_object_get(p, "differs")) && strcmp(cli_text(p, "key"), "run_name") &&
			     is_param_chosen(params, p) && i < COMPARE_PARAMS_MAX;

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
	const char *best; /* "min" or "max"; NULL: unknown, no run is best */
	bool exact; /* print numbers with full precision, for CSV */
};

static void add_compared_row(struct table *t, json_t *root, const struct compare_goal *goal, size_t i)
{
	json_t *run = json_array_get(json_object_get(root, "runs"), i), *param;
	char text[256];
	size_t k;

	table_cellf(t, "%.8s", cli_text(run, "id"));
	table_cell(t, cli_text(run, "name"));
	if (goal->metric) {
		if (goal->best)
			table_cell(t, format_number_at(goal->metric, goal->best, i, goal->exact, text));
		table_cell(t, format_number_at(goal->metric, "last", i, goal->exact, text));
	}
	json_array_foreach(json_object_get(root, "params"), k, param)
		table_cell(t, json_string_value(json_array_get(json_object_get(param, "values"), i)));
	table_cell(t, cli_status_words(run, text));
}

struct run_rank {
	double badness; /* the best value of the goal, negated if the largest is; infinite if missing */
	size_t run;
};

static int compare_badness(const void *a, const void *b)
{
	const struct run_rank *x = a, *y = b;

	if (x->badness != y->badness)
		return x->badness < y->badness ? -1 : 1;
	return x->run < y->run ? -1 : x->run > y->run;
}

/* Ranks the rows: best first, then runs without the goal in their order; all in their order if none is best. The caller
 * frees the result. */
static struct run_rank *rank_runs(const struct compare_goal *goal, size_t n)
{
	struct run_rank *places = mem_array(n + 1, sizeof(*places));
	json_t *best = goal->best ? json_object_get(goal->metric, goal->best) : NULL;

	for (size_t i = 0; i < n; i++) {
		json_t *v = json_array_get(best, i);

		places[i] = (struct run_rank){ INFINITY, i };
		if (json_is_number(v))
			places[i].badness = (strcmp(goal->best, "max") ? 1 : -1) * json_number_value(v);
	}
	if (places)
		qsort(places, n, sizeof(*places), compare_badness);
	return places;
}

/* Prints the table of runs, with the goal's best and last value and the params that differ. */
static int print_compared_table(json_t *root, const struct compare_options *o, struct err *err)
{
	size_t n = json_array_size(json_object_get(root, "runs"));
	struct compare_goal goal = { .exact = o->common.csv };
	struct run_rank *places;
	struct table *t = table_new();
	char title[300];

	goal.metric = find_compared_metric(json_object_get(root, "metrics"),
					   o->metric ? o->metric : cli_text(root, "goal"));
	goal.best = json_string_value(json_object_get(goal.metric, "best"));
	if (o->metric && !goal.metric) {
		table_free(t);
		return err_set(err, ERR_USAGE,
			       "--metric %s: no run has this metric: see dptrack show RUN",
			       o->metric);
	}
	places = rank_runs(&goal, n);
	table_columns(t, "id,name");
	if (goal.metric) {
		snprintf(title, sizeof(title), "%s %s", cli_text(goal.metric, "key"), goal.best ? goal.best : "last");
		table_column(t, title, true);
		if (goal.best)
			table_column(t, "last", true);
	}
	add_param_columns(t, json_object_get(root, "params"));
	table_column(t, "status", false);
	for (size_t i = 0; i < n; i++)
		add_compared_row(t, root, &goal, places[i].run);
	table_print(t, stdout, cli_table_form(&o->common));
	table_free(t);
	free(places);
	return 0;
}

/* Adds the ids of the experiment's runs, oldest first. ERR_NOENT if there are no runs. */
static int add_experiment_ids(struct source *s, json_t *ids, const char *experiment, struct err *err)
{
	struct buf query;
	json_t *root = NULL, *run;
	size_t i;
	int rc;

	buf_init(&query, 65536);
	buf_adds(&query, "/api/v1/runs?limit=1000&order_by=start_time");
	source_arg(&query, "experiment", experiment);
	rc = cli_get_json(s, query.data, &root, err);
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

static int add_word_ids(struct source *s, json_t *ids, const struct flag_list *words, struct err *err)
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

/* Prints the comparison as JSON or as a table. The runs are those of the words, else of the experiment. */
static int print_comparison(struct source *s, const struct compare_options *o, const struct flag_list *words,
			    struct err *err)
{
	json_t *ids = json_array(), *root = NULL;
	struct cli_request request = { "POST", "/api/v1/compare", json_pack("{s:o}", "runs", ids), o->common.json };
	int rc;

	if (words->count)
		rc = add_word_ids(s, ids, words, err);
	else
		rc = add_experiment_ids(s, ids, o->experiment, err);
	if (rc) {
		json_decref(request.body);
		return rc;
	}
	rc = cli_send(s, &request, &root, err);
	if (root)
		rc = print_compared_table(root, o, err);
	json_decref(root);
	return rc;
}

static int print_explanation(struct source *s, const struct compare_options *o, const struct flag_list *words,
			     struct err *err)
{
	const struct why_opts w = { .json = o->common.json, .csv = o->common.csv, .markdown = o->markdown,
				    .svg = o->svg };

	return why_print(s, &w, words, err);
}

/* Refuses combinations of flags of which one would be ignored. */
static int check_compare_flags(const struct compare_options *o, const struct flag_list *words, struct err *err)
{
	if (o->experiment && words->count)
		return err_set(err, ERR_USAGE, "compare: runs and --experiment exclude each other");
	if ((o->markdown || o->svg) && !o->why)
		return err_set(err, ERR_USAGE, "compare: --markdown and --svg need --why");
	if (!o->why)
		return 0;
	if (words->count < 2 || o->metric)
		return err_set(err, ERR_USAGE,
			       "compare --why: expected two or more runs, in the order of the changes%s",
			       o->metric ? ", without --metric" : "");
	if (o->markdown + o->svg + o->common.json + o->common.csv > 1)
		return err_set(err, ERR_USAGE, "compare --why: expected one of --json, --csv, --markdown and --svg");
	return 0;
}

/* Reads the flags and runs the comparison. */
static int run_compare_command(int argc, char **argv, struct err *err)
{
	struct compare_options o = { 0 };
	const struct flag table[] = {
		{ "experiment", FLAG_TEXT, "NAME", "all runs of this experiment", &o.experiment, 0, 0 },
		{ "metric", FLAG_TEXT, "KEY", "the goal metric (default: accuracy or loss)", &o.metric, 0, 0 },
		{ "why", FLAG_SWITCH, "", "print the speedup of each run over the previous one, by phase",
		  &o.why, 0, 0 },
		{ "markdown", FLAG_SWITCH, "", "with --why: a Markdown table", &o.markdown, 0, 0 },
		{ "svg", FLAG_SWITCH, "", "with --why: a waterfall chart as SVG", &o.svg, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = {
		.cmd = &cli_compare, .table = table, .help = &o.common.help, .words_max = COMPARE_RUNS_MAX
	};
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = check_compare_flags(&o, &line.words, err);
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = o.why ? print_explanation(s, &o, &line.words, err) : print_comparison(s, &o, &line.words, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_compare = { .name = "compare",
					 .group = "Inspect",
					 .words = "[RUN...]",
					 .summary = "compare runs: params that differ, and results",
					 .examples = "  dptrack compare red-fox blue-owl\n"
						     "  dptrack compare --experiment digits --metric epoch/top1\n",
					 .run = run_compare_command };
