/* cmd_export.c: `dptrack export`: exports the table of runs, or every point of runs. */
#include "web/cli/cli.h"
#include "web/cli/cmd_export_events.h"

#include <stdio.h>
#include <string.h>

struct export_options {
	struct cli_common common;
	const char *experiment, *filter, *key, *rank, *segments, *events;
	bool series, jsonl;
};

static const char *export_suffix(const struct export_options *o)
{
	if (o->jsonl)
		return "jsonl";
	return o->common.json ? "json" : "csv";
}

static int print_runs_export(struct source *s, const struct export_options *o, struct err *err)
{
	struct buf target;
	int rc;

	buf_init(&target, 65536);
	buf_addf(&target, "/api/v1/export/runs.%s", export_suffix(o));
	if (o->experiment)
		source_arg(&target, "experiment", o->experiment);
	if (o->filter)
		source_arg(&target, "filter", o->filter);
	rc = cli_get_print(s, target.data, err);
	buf_done(&target);
	return rc;
}

/* Prints every point of the named runs, or of the runs that match. */
static int print_series_export(struct source *s, const struct export_options *o, const struct flag_list *words,
			       struct err *err)
{
	struct buf target;
	char id[33];
	size_t i;
	int rc = 0;

	buf_init(&target, (size_t)4 << 20);
	buf_addf(&target, "/api/v1/export/series.%s", export_suffix(o));
	for (i = 0; !rc && i < words->count; i++) {
		rc = cli_find_run(s, words->items[i], id, err);
		if (!rc)
			source_arg(&target, "run", id);
	}
	if (o->experiment)
		source_arg(&target, "experiment", o->experiment);
	if (o->filter)
		source_arg(&target, "filter", o->filter);
	if (o->key)
		source_arg(&target, "key", o->key);
	if (o->rank)
		source_arg(&target, "rank", o->rank);
	if (o->segments)
		source_arg(&target, "segments", o->segments);
	if (!rc)
		rc = cli_get_print(s, target.data, err);
	buf_done(&target);
	return rc;
}

/* Writes event files of every named run, or of all that match. */
static int write_event_files(struct source *s, const struct export_options *o, const struct flag_list *words,
			     struct err *err)
{
	struct buf target;
	json_t *table = NULL, *run;
	char id[33];
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < words->count; i++) {
		rc = cli_find_run(s, words->items[i], id, err);
		if (!rc)
			rc = export_events(s, o->events, id, err);
	}
	if (rc || words->count)
		return rc;
	buf_init(&target, 65536);
	buf_adds(&target, "/api/v1/export/runs.json");
	if (o->experiment)
		source_arg(&target, "experiment", o->experiment);
	if (o->filter)
		source_arg(&target, "filter", o->filter);
	rc = cli_get_json(s, target.data, &table, err);
	buf_done(&target);
	json_array_foreach(table, i, run) {
		if (!rc)
			rc = export_events(s, o->events, cli_text(run, "run_id"), err);
	}
	json_decref(table);
	return rc;
}

/* Refuses combinations of flags of which one would be ignored. */
static int check_export_flags(const struct export_options *o, const struct flag_list *words, struct err *err)
{
	if (words->count && !o->series && !o->events)
		return err_set(err, ERR_USAGE,
			       "export: runs need --series or --events; select rows of the table with --experiment and "
			       "--filter");
	if (!o->series && (o->key || o->rank || o->segments))
		return err_set(err, ERR_USAGE,
			       "export: --key, --rank and --segments need --series");
	if (o->events && (o->series || o->jsonl || o->common.json || o->common.csv))
		return err_set(
			err, ERR_USAGE,
			"export: --events excludes --series, --csv, --json and --jsonl");
	if (o->jsonl + o->common.json + o->common.csv > 1)
		return err_set(err, ERR_USAGE, "export: expected one of --csv, --json and --jsonl");
	return 0;
}

/* Reads the flags and runs the export. */
static int run_export_command(int argc, char **argv, struct err *err)
{
	struct export_options o = { 0 };
	const struct flag table[] = {
		{ "series", FLAG_SWITCH, "", "one row per point instead of one row per run", &o.series, 0, 0 },
		{ "experiment", FLAG_TEXT, "NAME", "only runs of this experiment", &o.experiment, 0, 0 },
		{ "filter", FLAG_TEXT, "TEXT", "only runs that match", &o.filter, 0, 0 },
		{ "key", FLAG_TEXT, "KEY", "with --series: only this metric", &o.key, 0, 0 },
		{ "rank", FLAG_TEXT, "RANK", "with --series: only this rank (-1: the run as a whole)", &o.rank, 0, 0 },
		{ "segments", FLAG_TEXT, "all", "with --series: also points that restarts rolled back", &o.segments, 0,
		  0 },
		{ "events", FLAG_PATH, "DIR", "write TensorBoard event files below DIR: every point, bit for bit",
		  &o.events, 0, 0 },
		{ "jsonl", FLAG_SWITCH, "", "JSON lines", &o.jsonl, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_export, .table = table, .help = &o.common.help, .words_max = 10000 };
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = check_export_flags(&o, &line.words, err);
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc && o.events)
		rc = write_event_files(s, &o, &line.words, err);
	else if (!rc)
		rc = o.series ? print_series_export(s, &o, &line.words, err) : print_runs_export(s, &o, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_export = {
	.name = "export", .group = "Export", .words = "[RUN...]",
	.summary = "export the table of runs, or their series, as CSV, JSON or JSON lines", .run = run_export_command
};
