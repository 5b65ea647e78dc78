/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c: `dptrack import`: converts data of other trackers to runs. The content of a path decides who reads it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tracker/base/run_folders.h"
#include "web/cli/import/import_mlflow.h"
#include "web/store/db/foreign.h"

typedef int reader(struct importer *b, const char *path, struct err *err);

/* Finds the reader of a tracker's data at the path, or of its usual subfolder; ret is the path to read. */
static reader *find_tracker_reader(const char *path, char *ret, size_t room)
{
	struct stat st;

	snprintf(ret, room, "%s", path);
	if (foreign_is_sqlite(ret))
		return mlflow_db_read;
	if (wandb_is(path))
		return wandb_read;
	if (!strcmp(path, "-") || json_lines_is(path))
		return json_lines_read;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return NULL;
	if (mlruns_is(path))
		return mlruns_read;
	snprintf(ret, room, "%.4000s/mlflow.db", path);
	if (foreign_is_sqlite(ret))
		return mlflow_db_read;
	snprintf(ret, room, "%.4000s/mlruns", path);
	if (mlruns_is(ret))
		return mlruns_read;
	snprintf(ret, room, "%.4000s/wandb", path);
	return wandb_is(ret) ? wandb_read : NULL;
}

static int import_tracker_store(struct importer *b, reader *read, const char *path, struct err *err)
{
	char x[64], y[64], z[64];
	int rc = read(b, path, err);

	rc = rc ? rc : importer_finish(b, err);
	if (rc)
		return rc;
	printf("%s, %s, %s from %s\n", cli_count(x, b->runs, "run"), cli_count(y, b->points, "point"),
	       cli_count(z, b->files, "file"), strcmp(path, "-") ? path : "standard input");
	importer_say_left_out(b, "skipped:");
	return 0;
}

/* Finds who reads the source, and the folder that its names may not leave. */
static int import_path(struct importer *b, const char *from, struct err *err)
{
	char path[4096];
	char folder[4096];
	struct stat st;
	reader *read;

	if (strcmp(from, "-") && stat(from, &st))
		return err_set_errno(err, errno, "cannot read %s", from);
	snprintf(folder, sizeof(folder), "%s", from);
	if (strcmp(from, "-") && !S_ISDIR(st.st_mode))
		file_name_folder(from, folder, sizeof(folder));
	b->folder = strcmp(from, "-") ? folder : NULL;
	read = find_tracker_reader(from, path, sizeof(path));
	if (read)
		return import_tracker_store(b, read, path, err);
	if (S_ISDIR(st.st_mode))
		return events_import(b, from, err);
	return err_set(err, ERR_USAGE,
		       "%s: unknown format: expected a folder, MLflow's SQLite file, W&B's .wandb file, or runs as "
		       "lines of JSON (docs/reference/json-lines.md)",
		       from);
}

/* Reads the flags and runs the import. */
static int run_import_command(int argc, char **argv, struct err *err)
{
	struct importer_target target = { .into = run_folders_dir(NULL) };
	struct importer b = { .spool_fd = -1 };
	struct flag_list elsewhere = { .items = calloc((size_t)argc, sizeof(char *)) };
	bool help = false;
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR", "folder of runs to import into (default: DPTRACK_RUNS_DIR, or runs)",
		  &target.into, 0, 0 },
		{ "url", FLAG_TEXT, "URL", "import into the server at URL instead", &target.url, 0, 0 },
		{ "experiment", FLAG_TEXT, "NAME",
		  "experiment of all runs (default: their own; of event files the first part of a run's path)",
		  &target.experiment, 0, 0 },
		{ "files-from", FLAG_LIST, "DIR",
		  "also import files that the source names below DIR; may be repeated (default: only below PATH)",
		  &elsewhere, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_import, .table = table, .help = &help, .words_max = 1 };
	int rc = elsewhere.items ? cli_line_read(&line, argc, argv, err) : err_nomem(err, NULL);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "import: the path is missing: dptrack import PATH");
	if (!rc)
		rc = importer_init(&b, &target, err);
	b.elsewhere = &elsewhere;
	if (!rc)
		rc = import_path(&b, line.words.items[0], err);
	importer_done(&b);
	free(elsewhere.items);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_import = {
	.name = "import", .group = "Import", .words = "PATH",
	.summary = "import runs of MLflow (mlflow.db, mlruns), W&B (wandb) or TensorBoard, or as lines of JSON (-)",
	.examples = "  dptrack import mlruns\n"
		    "  dptrack import wandb --logdir runs\n"
		    "  my-exporter | dptrack import - --experiment digits\n",
	.run = run_import_command
};
