/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c: `dptrack export`: the table of runs, every point of runs, or event files for TensorBoard; and `dptrack
 * trace`: the trace of a run's ranks as Chrome's JSON (chrome://tracing, ui.perfetto.dev). */
#include <errno.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "web/cli/cli.h"
#include "web/cli/layer_series.h"

/* --- trace ------------------------------------------------------------------------------------------------------ */

#define EMPTY_BYTES 64 /* a trace without slices is shorter */

struct trace_options {
	struct cli_common common;
	size_t printed; /* bytes */
};

static int count_and_print_trace(void *arg, const char *bytes, size_t n, struct err *err)
{
	((struct trace_options *)arg)->printed += n;
	return cli_to_stdout(NULL, bytes, n, err);
}

static int print_run_trace(struct trace_options *o, struct source *s, const char *id, struct err *err)
{
	char target[128];
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/trace", id);
	rc = source_send(s, &(struct local_opts){ .method = "GET", .target = target },
			 &(struct local_sink){ count_and_print_trace, o }, err);
	if (rc >= 0 && o->printed < EMPTY_BYTES)
		log_warn("the run has no trace: dptrain --trace-steps 10:13 records what each rank does in "
			 "these steps");
	return rc;
}

/* Reads the flags and prints the trace. */
static int run_trace_command(int argc, char **argv, struct err *err)
{
	struct trace_options o = { 0 };
	const struct flag table[] = { CLI_COMMON_FLAGS(&o.common), { 0 } };
	struct cli_line line = { .cmd = &cli_trace, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	char id[33];
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "trace: expected a run: an id, the first digits of one, or a name");
	if (!rc && o.common.csv)
		rc = err_set(err, ERR_USAGE, "trace: --csv is not supported: the output is always JSON");
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = cli_find_run(s, line.words.items[0], id, err);
	if (!rc)
		rc = print_run_trace(&o, s, id, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_trace = { .name = "trace",
				       .group = "Inspect",
				       .words = "RUN",
				       .summary = "print the trace of a run (dptrain --trace-steps) for Perfetto",
				       .examples = "  dptrack trace red-fox >trace.json\n",
				       .run = run_trace_command };

/* --- event files of a run, one by one into its folder ----------------------------------------------------------- */

struct event_exporter {
	struct source *source;
	const char *id;
	char dir[3000]; /* folder of the run */
	long long start_s;
};

struct event_file {
	const char *path;
	FILE *to;
};

static int fail_event_write(struct err *err, const char *path)
{
	return err_set_errno(err, errno, "cannot write %s", path);
}

static int write_event_bytes(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct event_file *f = arg;

	return fwrite(bytes, 1, n, f->to) == n ? 0 : fail_event_write(err, f->path);
}

static int fetch_event_file(struct event_exporter *w, const char *target, const char *path, struct err *err)
{
	struct event_file f = { path, fopen(path, "wbe") };
	int rc;

	if (!f.to)
		return fail_event_write(err, path);
	rc = source_send(w->source, &(struct local_opts){ .method = "GET", .target = target },
			 &(struct local_sink){ write_event_bytes, &f }, err);
	if (!rc && (fflush(f.to) || fsync(fileno(f.to))))
		rc = fail_event_write(err, path);
	if (fclose(f.to) && !rc)
		rc = fail_event_write(err, path);
	return rc;
}

/* Writes the file of one rank's series (-1: of the run itself) in one segment. */
static int write_event_part(struct event_exporter *w, int rank, int segment, struct err *err)
{
	char path[4096], whole[4096], target[256], folder[32] = "";
	int rc;

	if (rank >= 0)
		snprintf(folder, sizeof(folder), "rank-%d/", rank);
	snprintf(whole, sizeof(whole), "%s/%sevents.out.tfevents.%010lld.dptrack.%06d", w->dir, folder, w->start_s,
		 segment);
	snprintf(path, sizeof(path), "%s/%s.part-%06d", w->dir, folder, segment);
	snprintf(target, sizeof(target), "/api/v1/export/series.tfevents?run=%s&rank=%d&segment=%d", w->id, rank,
		 segment);
	rc = file_make_parents(path, 0777, err);
	if (!rc)
		rc = fetch_event_file(w, target, path, err);
	if (!rc && rename(path, whole))
		rc = fail_event_write(err, whole);
	if (rc)
		unlink(path);
	return rc;
}

/* Writes all files. The file of the run itself is written even when only ranks have points: it contains params and
 * notes. */
static int write_event_parts(struct event_exporter *w, json_t *parts, struct err *err)
{
	bool own = false;
	json_t *part;
	size_t i;
	int rc = 0;

	json_array_foreach(parts, i, part) {
		int rank = (int)json_integer_value(json_object_get(part, "rank"));
		int segment = (int)json_integer_value(json_object_get(part, "segment"));

		own = own || (rank < 0 && !segment);
		if (!rc)
			rc = write_event_part(w, rank, segment, err);
	}
	return rc || own ? rc : write_event_part(w, -1, 0, err);
}

/* Sets the folder of a run's files. */
static int set_export_folder(struct event_exporter *w, json_t *run, const char *dir, struct err *err)
{
	char experiment[FILE_NAME_BYTES], name[FILE_NAME_BYTES];

	file_name_of(experiment, cli_text(run, "experiment"));
	file_name_of(name, cli_text(run, "name"));
	if ((size_t)snprintf(w->dir, sizeof(w->dir), "%s/%s/%s-%.8s", dir, experiment, name, w->id) >= sizeof(w->dir))
		return err_set(err, ERR_USAGE, "--events %.100s…: the path is too long", dir);
	return 0;
}

/* Writes the event files of the run `id` (32 digits): DIR/<experiment>/<name>-<8 digits of the
 * id>/events.out.tfevents.…, one file for each segment. The subfolder rank-R/ has the same for each rank's own series.
 * Points of an imported file keep its order, others are ordered by time. Params become hparams, notes a text. A file
 * gets its final name when it is complete. */
static int export_events(struct source *s, const char *dir, const char *id, struct err *err)
{
	struct event_exporter w = { .source = s, .id = id };
	json_t *run = NULL, *root = NULL;
	char target[128];
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%s", id);
	rc = cli_get_json(s, target, &run, err);
	if (!rc) {
		w.start_s = (long long)(json_number_value(json_object_get(run, "start_time")) / 1e3);
		snprintf(target, sizeof(target), "/api/v1/export/parts.json?run=%s", id);
		rc = cli_get_json(s, target, &root, err);
	}
	if (!rc)
		rc = set_export_folder(&w, run, dir, err);
	if (!rc)
		rc = write_event_parts(&w, json_object_get(root, "parts"), err);
	json_decref(run);
	json_decref(root);
	return rc;
}

struct export_options {
	struct cli_common common;
	const char *experiment, *filter, *key, *rank, *segments, *events;
	bool series, jsonl, all;
};

static const char *export_suffix(const struct export_options *o)
{
	if (o->jsonl)
		return "jsonl";
	return o->common.json ? "json" : "csv";
}

/* Copies the reply to stdout; CSV without per-layer series unless --all is given. */
static int print_export(struct source *s, const struct export_options *o, const char *target, struct err *err)
{
	const struct local_sink out = { cli_to_stdout, NULL };
	struct layer_filter *f;
	struct local_sink filtered;
	int rc;

	if (o->all || o->jsonl || o->common.json)
		return cli_get_print(s, target, err);
	f = layer_filter_new(&out);
	filtered = layer_filter_sink(f);
	rc = source_send(s, &(struct local_opts){ .method = "GET", .target = target }, &filtered, err);
	if (!rc && layer_filter_left_out(f))
		log_info("%zu %s of per-layer series left out: --all exports them", layer_filter_left_out(f),
			 o->series ? "points" : "columns");
	layer_filter_free(f);
	return rc;
}

static int print_runs_export(struct source *s, const struct export_options *o, struct err *err)
{
	struct buf target;
	int rc;

	buf_init(&target, 65536);
	buf_addf(&target, "/api/v1/export/runs.%s", export_suffix(o));
	source_arg(&target, "experiment", o->experiment);
	source_arg(&target, "filter", o->filter);
	source_arg(&target, "raw", o->common.raw && !o->jsonl && !o->common.json ? "1" : NULL);
	source_arg(&target, "all", o->jsonl || o->common.json ? NULL : "1"); /* print_export counts what it drops */
	rc = print_export(s, o, target.data, err);
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
	source_arg(&target, "raw", o->common.raw && !o->jsonl && !o->common.json ? "1" : NULL);
	for (i = 0; !rc && i < words->count; i++) {
		rc = cli_find_run(s, words->items[i], id, err);
		if (!rc)
			source_arg(&target, "run", id);
	}
	source_arg(&target, "experiment", o->experiment);
	source_arg(&target, "filter", o->filter);
	source_arg(&target, "key", o->key);
	source_arg(&target, "rank", o->rank);
	source_arg(&target, "segments", o->segments);
	if (!rc)
		rc = print_export(s, o, target.data, err);
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
	source_arg(&target, "experiment", o->experiment);
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
		return err_set(err, ERR_USAGE, "export: --key, --rank and --segments need --series");
	if (o->events && (o->series || o->jsonl || o->common.json || o->common.csv))
		return err_set(err, ERR_USAGE, "export: --events excludes --series, --csv, --json and --jsonl");
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
		{ "all", FLAG_SWITCH, "",
		  "CSV: also the series of each layer (grad_norm/…, update_ratio/…, dead_units/…)", &o.all, 0, 0 },
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
	o.all = o.all || o.key; /* who names a series wants it */
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
	.summary = "export the table of runs, or their series, as CSV, JSON or JSON lines",
	.examples =
		    "  dptrack export --experiment digits >runs.csv\n"
		    "  dptrack export red-fox --series --key train/loss >loss.csv\n"
		    "  dptrack export red-fox --events out\n", .run = run_export_command
};
