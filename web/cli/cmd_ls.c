/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ls.c: `dptrack ls`: lists experiments and runs in a table. */
#include "web/cli/cli.h"

enum { PAGE_RUNS = 500 };

struct ls_options {
	struct cli_common common;
	const char *experiment, *filter, *order_by;
	int limit;
	bool experiments, deleted;
};

static void add_run_row(struct table *t, json_t *run)
{
	json_t *start = json_object_get(run, "start_time"), *end = json_object_get(run, "end_time");
	double took = json_is_integer(start) && json_is_integer(end) ?
			      (double)(json_integer_value(end) - json_integer_value(start)) / 1000 : -1;
	json_t *step = json_object_get(run, "last_step");
	char text[256];

	table_cellf(t, "%.8s", cli_text(run, "id"));
	table_cell(t, cli_text(run, "name"));
	table_cell(t, cli_text(run, "experiment"));
	table_cell(t, table_time(text, json_integer_value(start)));
	table_cell(t, table_duration(text, took));
	if (json_integer_value(step) >= 0)
		table_cellf(t, "%lld", (long long)json_integer_value(step));
	else
		table_cell(t, NULL);
	table_cell(t, cli_status_words(run, text));
}

/* Prints page by page: a row of the table is small, a run with thousands of metrics is not. */
static int print_run_list(struct source *s, struct buf *target, int limit, struct err *err)
{
	size_t base = target->len, i;
	struct table *t = table_new();
	char count[16], token[256] = "";
	json_t *root, *run;
	int left = limit, rc = 0;

	table_columns(t, "id,name,experiment,started,>took,>step,status");
	while (!rc && left > 0) {
		snprintf(count, sizeof(count), "%d", left < PAGE_RUNS ? left : PAGE_RUNS);
		target->len = base;
		target->data[base] = '\0';
		source_arg(target, "limit", count);
		source_arg(target, "page_token", *token ? token : NULL);
		rc = cli_get_json(s, target->data, &root, err);
		if (rc)
			break;
		json_array_foreach(json_object_get(root, "runs"), i, run)
			add_run_row(t, run);
		snprintf(token, sizeof(token), "%s", cli_text(root, "next_page_token"));
		json_decref(root);
		left -= PAGE_RUNS;
		if (!*token)
			break;
	}
	if (!rc) {
		table_print(t, stdout, TABLE_TEXT);
		if (*token)
			printf("(the first %d; use --limit to see more)\n", limit);
	}
	table_free(t);
	return rc;
}

/* Prints experiments as a table or CSV. */
static void print_experiment_list(json_t *list, enum table_form form)
{
	struct table *t = table_new();
	char text[32];
	json_t *e;
	size_t i;

	table_columns(t, ">id,experiment,>runs,>running,changed");
	json_array_foreach(list, i, e) {
		table_cell(t, cli_text(e, "id"));
		table_cell(t, cli_text(e, "name"));
		table_cellf(t, "%lld", (long long)json_integer_value(json_object_get(e, "run_count")));
		table_cellf(t, "%lld", (long long)json_integer_value(json_object_get(e, "running_count")));
		table_cell(t, table_time(text, json_integer_value(json_object_get(e, "changed_time"))));
	}
	table_print(t, stdout, form);
	table_free(t);
}

static int list_all_experiments(struct source *s, const struct ls_options *o, struct err *err)
{
	json_t *root;
	int rc;

	if (o->common.json)
		return cli_get_print(s, "/api/v1/experiments", err);
	rc = cli_get_json(s, "/api/v1/experiments", &root, err);
	if (rc)
		return rc;
	print_experiment_list(json_object_get(root, "experiments"), cli_table_form(&o->common));
	json_decref(root);
	return 0;
}

/* Prints the runs that match as JSON, CSV or a table. */
static int list_matching_runs(struct source *s, const struct ls_options *o, struct err *err)
{
	struct buf target;
	char limit[16];
	int rc;

	buf_init(&target, 65536);
	buf_adds(&target, o->common.csv ? "/api/v1/export/runs.csv" : "/api/v1/runs");
	source_arg(&target, "raw", o->common.csv && o->common.raw ? "1" : NULL);
	source_arg(&target, "experiment", o->experiment);
	source_arg(&target, "filter", o->filter);
	source_arg(&target, "order_by", o->order_by);
	source_arg(&target, "deleted", o->deleted ? "only" : NULL);
	snprintf(limit, sizeof(limit), "%d", o->limit);
	source_arg(&target, "limit", o->common.json ? limit : NULL);
	rc = o->common.csv || o->common.json ? cli_get_print(s, target.data, err)
					     : print_run_list(s, &target, o->limit, err);
	buf_done(&target);
	return rc;
}

/* Reads the flags and prints the list. */
static int run_ls_command(int argc, char **argv, struct err *err)
{
	struct ls_options o = { .limit = 100 };
	const struct flag table[] = {
		{ "experiments", FLAG_SWITCH, "", "list experiments instead of runs", &o.experiments, 0, 0 },
		{ "deleted", FLAG_SWITCH, "", "list deleted runs, which restore can undelete", &o.deleted, 0, 0 },
		{ "experiment", FLAG_TEXT, "NAME", "same as the argument EXPERIMENT", &o.experiment, 0, 0 },
		{ "filter", FLAG_TEXT, "TEXT",
		  "filter, for example: metrics.\"epoch/top1\".max > 90 AND params.lr = '0.1'", &o.filter, 0, 0 },
		{ "order-by", FLAG_TEXT, "KEYS", "sort order, for example: metrics.\"epoch/top1\".max DESC",
		  &o.order_by, 0, 0 },
		{ "limit", FLAG_NUMBER, "N", "at most N runs (default: 100); --csv writes all", &o.limit, 1, 50000 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_ls, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && o.deleted && o.common.csv)
		rc = err_set(err, ERR_USAGE, "ls: --deleted does not support --csv: use --json");
	if (!rc && line.words.count)
		o.experiment = line.words.items[0];
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc && o.experiments)
		rc = list_all_experiments(s, &o, err);
	else if (!rc)
		rc = list_matching_runs(s, &o, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_ls = { .name = "ls",
				    .group = "Inspect",
				    .words = "[EXPERIMENT]",
				    .summary = "list runs, or experiments",
				    .examples = "  dptrack ls digits --order-by 'metrics.\"epoch/top1\".max DESC'\n"
						"  dptrack ls --filter \"params.lr = '0.1'\" --csv\n"
						"  dptrack ls --experiments\n",
				    .run = run_ls_command };
