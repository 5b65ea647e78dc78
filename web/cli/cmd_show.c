/* cmd_show.c: `dptrack show RUN`: everything about one run. */
#include "web/cli/cli.h"

#include <string.h>

#include "web/cli/cmd_diagnosis.h"
#include "web/cli/table.h"

struct show {
	struct cli_common common;
};

/* A number, or one of the words for what is none. */
static const char *value_text(json_t *value, char *text)
{
	if (json_is_number(value))
		return table_number(text, json_number_value(value));
	return json_is_string(value) ? json_string_value(value) : "-";
}

static void print_line(const char *before, const char *text, const char *behind)
{
	fputs(before, stdout);
	table_text(stdout, text, strlen(text));
	printf("%s\n", behind);
}

static void print_head(json_t *run)
{
	json_t *start = json_object_get(run, "start_time"), *end = json_object_get(run, "end_time");
	char text[256];

	print_line("", cli_text(run, "name"), "");
	printf("  id          %s\n", cli_text(run, "id"));
	print_line("  experiment  ", cli_text(run, "experiment"), "");
	print_line("  status      ", cli_status_words(run, text), "");
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

/* Indented, line by line. */
static void print_notes(const char *at)
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

/* What could not be applied of the run's journals, and the files of its topmost folder. */
static void print_lists(json_t *run)
{
	char times[40];
	json_t *one;
	size_t i;

	if (json_array_size(json_object_get(run, "problems")))
		printf("\nnot taken from the journal\n");
	json_array_foreach(json_object_get(run, "problems"), i, one) {
		snprintf(times, sizeof(times), " (%lld times)",
			 (long long)json_integer_value(json_object_get(one, "count")));
		print_line("  ", cli_text(one, "text"), times);
	}
	if (json_array_size(json_object_get(run, "artifacts")))
		printf("\nartifacts\n");
	json_array_foreach(json_object_get(run, "artifacts"), i, one)
		print_line("  ", cli_text(one, "path"), json_is_true(json_object_get(one, "folder")) ? "/" : "");
}

static void print_pairs(const char *title, json_t *pairs)
{
	struct table *t;
	const char *key;
	json_t *value;

	if (!json_object_size(pairs))
		return;
	t = table_new();
	if (!t)
		return;
	table_column(t, title, false);
	table_column(t, "value", false);
	json_object_foreach(pairs, key, value) {
		table_cell(t, key);
		table_cell(t, json_string_value(value));
	}
	printf("\n");
	table_print(t, stdout, false);
	table_free(t);
}

static void print_metrics(json_t *metrics)
{
	static const char *const columns[] = { "last", "min", "min_step", "max", "max_step", "count" };
	struct table *t;
	const char *key;
	json_t *m;
	char text[32];
	size_t i;

	if (!json_object_size(metrics))
		return;
	t = table_new();
	if (!t)
		return;
	table_column(t, "metric", false);
	for (i = 0; i < 6; i++)
		table_column(t, columns[i], true);
	json_object_foreach(metrics, key, m) {
		table_cell(t, key);
		for (i = 0; i < 6; i++)
			table_cell(t, value_text(json_object_get(m, columns[i]), text));
	}
	printf("\n");
	table_print(t, stdout, false);
	table_free(t);
}

static int show_run(int argc, char **argv, struct err *err)
{
	struct show o = { 0 };
	const struct flag table[] = { CLI_COMMON_FLAGS(&o.common), { 0 } };
	struct cli_line line = { .cmd = &cli_show, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	char id[33], target[128];
	json_t *run;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "show: name a run by its id, the first digits of it, or its name");
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
			print_head(run);
			print_notes(cli_text(run, "notes"));
			print_pairs("param", json_object_get(run, "params"));
			print_pairs("tag", json_object_get(run, "tags"));
			print_pairs("environment", json_object_get(run, "environment"));
			print_metrics(json_object_get(run, "metrics"));
			diagnosis_print(s, id);
			print_lists(run);
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
				      .summary = "one run: params, environment, metrics",
				      .run = show_run };
