/* cmd_export.c: `dptrack export`: the table of runs, or every point of runs, for other programs. */
#include "web/cli/cli.h"
#include "web/cli/cmd_export_events.h"

#include <stdio.h>
#include <string.h>

struct export {
	struct cli_common common;
	const char *experiment, *filter, *key, *rank, *segments, *events;
	bool series, jsonl;
};

static const char *suffix(const struct export *o)
{
	if (o->jsonl)
		return "jsonl";
	return o->common.json ? "json" : "csv";
}

static int export_table(struct source *s, const struct export *o, struct err *err)
{
	struct buf target;
	int rc;

	buf_init(&target, 65536);
	buf_addf(&target, "/api/v1/export/runs.%s", suffix(o));
	if (o->experiment)
		source_arg(&target, "experiment", o->experiment);
	if (o->filter)
		source_arg(&target, "filter", o->filter);
	rc = cli_get_print(s, target.data, err);
	buf_done(&target);
	return rc;
}

static int export_series(struct source *s, const struct export *o, const struct flag_list *words, struct err *err)
{
	struct buf target;
	char id[33];
	size_t i;
	int rc = 0;

	buf_init(&target, (size_t)4 << 20);
	buf_addf(&target, "/api/v1/export/series.%s", suffix(o));
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

/* Every run that is named, or all that match. */
static int export_files(struct source *s, const struct export *o, const struct flag_list *words, struct err *err)
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

/* What was asked for in one breath and would be passed over. */
static int check_flags(const struct export *o, const struct flag_list *words, struct err *err)
{
	if (words->count && !o->series && !o->events)
		return err_set(err, ERR_USAGE,
			       "export: runs are named with --series; the table takes --experiment and --filter");
	if (!o->series && (o->key || o->rank || o->segments))
		return err_set(err, ERR_USAGE,
			       "export: --key, --rank and --segments choose points; say --series with them");
	if (o->events && (o->series || o->jsonl || o->common.json || o->common.csv))
		return err_set(
			err, ERR_USAGE,
			"export: --events writes every point to files; --series, --csv, --json and --jsonl print");
	if (o->jsonl + o->common.json + o->common.csv > 1)
		return err_set(err, ERR_USAGE, "export: one of --csv, --json and --jsonl");
	return 0;
}

static int export_run(int argc, char **argv, struct err *err)
{
	struct export o = { 0 };
	const struct flag table[] = {
		{ "series", FLAG_SWITCH, "", "one row a point instead of one row a run", &o.series, 0, 0 },
		{ "experiment", FLAG_TEXT, "NAME", "only runs of this experiment", &o.experiment, 0, 0 },
		{ "filter", FLAG_TEXT, "TEXT", "only runs that match", &o.filter, 0, 0 },
		{ "key", FLAG_TEXT, "KEY", "with --series: only this metric", &o.key, 0, 0 },
		{ "rank", FLAG_TEXT, "RANK", "with --series: only this rank (-1: the run as a whole)", &o.rank, 0, 0 },
		{ "segments", FLAG_TEXT, "all", "with --series: also what restarts took back", &o.segments, 0, 0 },
		{ "events", FLAG_PATH, "DIR", "TensorBoard event files below DIR: every point, bit for bit", &o.events,
		  0, 0 },
		{ "jsonl", FLAG_SWITCH, "", "JSON lines", &o.jsonl, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_export, .table = table, .help = &o.common.help, .words_max = 10000 };
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = check_flags(&o, &line.words, err);
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc && o.events)
		rc = export_files(s, &o, &line.words, err);
	else if (!rc)
		rc = o.series ? export_series(s, &o, &line.words, err) : export_table(s, &o, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_export = {
	.name = "export", .group = "Export", .words = "[RUN...]",
	.summary = "the table of runs, or their series, as CSV, JSON or JSON lines", .run = export_run
};
