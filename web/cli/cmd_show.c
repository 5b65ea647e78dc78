/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_show.c: `dptrack show RUN`: prints everything about one run, and what limits its speed. */
#include <string.h>

#include "tracker/insight/goal.h"
#include "web/cli/cli.h"
#include "web/cli/layer_series.h"

static void print_diagnosis_leaf(json_t *leaf)
{
	printf("\nspeed: %s\n  found: %s\n  usual: %s\n  next: %s\n", cli_text(leaf, "sentence"),
	       cli_text(leaf, "evidence"), cli_text(leaf, "usual"), cli_text(leaf, "action"));
}

/* Prints nothing for a run that cannot be diagnosed. */
static void diagnosis_print(struct source *s, const char *id)
{
	struct err ignored = ERR_INIT;
	char target[128];
	json_t *root, *leaves, *leaf;
	size_t i;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/diagnosis", id);
	if (cli_get_json(s, target, &root, &ignored))
		return;
	if (json_is_string(json_object_get(root, "verdict"))) {
		leaves = json_object_get(root, "leaves");
		if (!json_array_size(leaves))
			printf("\nspeed: %s\n", cli_text(root, "sentence"));
		json_array_foreach(leaves, i, leaf)
			print_diagnosis_leaf(leaf);
		printf("bound by %s\n", cli_text(root, "bound"));
	}
	if (json_is_object(json_object_get(root, "overfitting")))
		printf("\n%s\n", cli_text(json_object_get(root, "overfitting"), "sentence"));
	json_decref(root);
}

struct show_options {
	struct cli_common common;
	bool all;
};

/* A number, or the word for a non-finite one. */
static const char *format_json_value(json_t *value, char *text)
{
	if (json_is_integer(value)) { /* a step or a count, every digit of it */
		snprintf(text, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return text;
	}
	if (json_is_number(value))
		return table_number(text, json_number_value(value));
	return json_is_string(value) ? json_string_value(value) : "-";
}

static void print_framed_text(const char *before, const char *text, const char *after)
{
	fputs(before, stdout);
	table_text(stdout, text, strlen(text));
	printf("%s\n", after);
}

static void print_run_head(json_t *run)
{
	json_t *start = json_object_get(run, "start_time"), *end = json_object_get(run, "end_time");
	char text[256];

	print_framed_text("", cli_text(run, "name"), "");
	printf("  id          %s\n", cli_text(run, "id"));
	print_framed_text("  experiment  ", cli_text(run, "experiment"), "");
	print_framed_text("  status      ", cli_status_words(run, text), "");
	if (*cli_text(run, "status_reason"))
		print_framed_text("  reason      ", cli_text(run, "status_reason"), "");
	printf("  started     %s\n", table_time(text, json_integer_value(start)));
	if (json_is_integer(start) && json_is_integer(end))
		printf("  took        %s\n",
		       table_duration(text, (double)(json_integer_value(end) - json_integer_value(start)) / 1000));
	if (json_array_size(json_object_get(run, "segments")) > 1)
		printf("  restarted   %s\n",
		       cli_count(text, json_array_size(json_object_get(run, "segments")) - 1, "time"));
	if (json_integer_value(json_object_get(run, "world_size")) > 1)
		printf("  ranks       %lld\n", (long long)json_integer_value(json_object_get(run, "world_size")));
}

/* Prints the notes indented, line by line. */
static void print_run_notes(const char *at)
{
	size_t n;

	if (*at)
		printf("\nnotes");
	for (; *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		fputs(n ? "\n  " : "\n", stdout);
		table_text(stdout, at, n);
		if (!at[n] || !at[n + 1])
			putchar('\n');
	}
}

/* Prints the records of the run's journals that could not be applied, and the files at the top of its artifacts. */
static void print_problems_and_files(json_t *run)
{
	char times[40];
	json_t *one;
	size_t i;

	if (json_array_size(json_object_get(run, "problems")))
		printf("\nnot accepted from the journal\n");
	json_array_foreach(json_object_get(run, "problems"), i, one) {
		snprintf(times, sizeof(times), " (%lld times)",
			 (long long)json_integer_value(json_object_get(one, "count")));
		print_framed_text("  ", cli_text(one, "text"), times);
	}
	if (json_array_size(json_object_get(run, "artifacts")))
		printf("\nartifacts\n");
	json_array_foreach(json_object_get(run, "artifacts"), i, one)
		print_framed_text("  ", cli_text(one, "path"), json_is_true(json_object_get(one, "folder")) ? "/" : "");
}

/* Prints the alerts that the run's program sent, such as the cause of a loss that is not finite. A server without the
 * route has none. */
static void print_run_alerts(struct source *s, const char *id)
{
	struct err ignored = ERR_INIT;
	char target[128], before[64];
	json_t *reply, *alerts, *one;
	size_t i;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/alerts", id);
	if (cli_get_json(s, target, &reply, &ignored))
		return;
	alerts = json_object_get(reply, "alerts");
	if (json_array_size(alerts))
		printf("\nalerts\n");
	json_array_foreach(alerts, i, one) {
		snprintf(before, sizeof(before),
			 "  step %lld: ", (long long)json_integer_value(json_object_get(one, "step")));
		print_framed_text(before, cli_text(one, "title"), "");
		if (*cli_text(one, "text"))
			print_framed_text("    ", cli_text(one, "text"), "");
	}
	json_decref(reply);
}

static void print_pair_table(const char *title, json_t *pairs)
{
	struct table *t;
	const char *key;
	json_t *value;

	if (!json_object_size(pairs))
		return;
	t = table_new();
	table_column(t, title, false);
	table_column(t, "value", false);
	json_object_foreach(pairs, key, value) {
		table_cell(t, key);
		table_cell(t, json_string_value(value));
	}
	printf("\n");
	table_print(t, stdout, TABLE_TEXT);
	table_free(t);
}

/* Prints the metric that the run is judged by, with its best value if it is known which one that is. */
static void print_goal(json_t *metrics, json_t *tags)
{
	struct goal_choice goal = { 0 };
	char last[32], best[32];
	const char *key;
	json_t *m;

	json_object_foreach(metrics, key, m)
		goal_choice_add(&goal, key, cli_said_best(tags, key), 1, 1);
	if (!goal.key)
		return;
	m = json_object_get(metrics, goal.key);
	printf("  goal        %s %s", goal.key, format_json_value(json_object_get(m, "last"), last));
	if (goal.best)
		printf(", best %s at %s %lld",
		       format_json_value(json_object_get(m, goal_best_word(goal.best)), best),
		       strncmp(goal.key, "epoch/", 6) ? "step" : "epoch",
		       (long long)json_integer_value(
			       json_object_get(m, goal.best == GOAL_MAX ? "max_step" : "min_step")));
	putchar('\n');
}

/* Adds a line to a table of metrics for the group of per-layer series that ends with this key. */
static void add_folded_group(struct table *t, const char *key, size_t n)
{
	table_cellf(t, "%.*s/… (%zu series: --all)", (int)query_layer_group(key), key, n);
	for (int i = 0; i < 6; i++)
		table_cell(t, NULL);
}

/* Prints a table of the metrics with last, min, max and count. Per-layer series are one line a group unless `all`. */
static void print_metric_table(json_t *metrics, bool all)
{
	static const char *const columns[] = { "last", "min", "min_step", "max", "max_step", "count" };
	struct table *t;
	const char *key, *last = NULL; /* the newest key of a group that is folded */
	json_t *m;
	char text[32];
	size_t i, folded = 0;

	if (!json_object_size(metrics))
		return;
	t = table_new();
	table_column(t, "metric", false);
	for (i = 0; i < 6; i++)
		table_column(t, columns[i], true);
	json_object_foreach(metrics, key, m) {
		const size_t group = all ? 0 : query_layer_group(key);

		if (folded && (!group || strncmp(key, last, group + 1) != 0)) {
			add_folded_group(t, last, folded);
			folded = 0;
		}
		last = key;
		folded += group > 0;
		if (group)
			continue;
		table_cell(t, key);
		for (i = 0; i < 6; i++)
			table_cell(t, format_json_value(json_object_get(m, columns[i]), text));
	}
	if (folded)
		add_folded_group(t, last, folded);
	printf("\n");
	table_print(t, stdout, TABLE_TEXT);
	table_free(t);
}

/* Prints what one wants to know first: status, goal, what limits the speed, alerts; then all the rest. */
static void print_run_report(struct source *s, json_t *run, const char *id, bool all)
{
	json_t *metrics = json_object_get(run, "metrics");

	print_run_head(run);
	print_goal(metrics, json_object_get(run, "tags"));
	diagnosis_print(s, id);
	print_run_alerts(s, id);
	print_run_notes(cli_text(run, "notes"));
	print_metric_table(metrics, all);
	print_pair_table("param", json_object_get(run, "params"));
	print_pair_table("tag", json_object_get(run, "tags"));
	print_pair_table("environment", json_object_get(run, "environment"));
	print_problems_and_files(run);
}

/* Reads the flags and prints the run as JSON, CSV or text. */
static int run_show_command(int argc, char **argv, struct err *err)
{
	struct show_options o = { 0 };
	const struct flag table[] = {
		{ "all", FLAG_SWITCH, "", "also the series of each layer", &o.all, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_show, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	char id[33], target[128];
	json_t *run;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "show: expected a run: an id, the first digits of one, or a name");
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = cli_find_run(s, line.words.items[0], id, err);
	if (!rc) {
		snprintf(target, sizeof(target), o.common.csv ? "/api/v1/export/series.csv?run=%s" : "/api/v1/runs/%s",
			 id);
		if (o.common.json || o.common.csv)
			rc = cli_get_print(s, target, err);
		else
			rc = cli_get_json(s, target, &run, err);
		if (!rc && !o.common.json && !o.common.csv) {
			print_run_report(s, run, id, o.all);
			json_decref(run);
		}
	}
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_show = { .name = "show",
				      .group = "Inspect",
				      .words = "RUN",
				      .summary = "show one run: params, environment, metrics",
				      .examples = "  dptrack show red-fox\n"
						  "  dptrack show 1a2b --all\n"
						  "  dptrack show runs/digits/red-fox-1a2b3c4d --json\n",
				      .run = run_show_command };
