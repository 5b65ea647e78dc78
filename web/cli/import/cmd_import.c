/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c: `dptrack import`: converts data of other trackers to runs. The content of a path decides who reads it:
 * this program, or an importer in Python, which passes on lines of JSON to `dptrack import -`. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/run_folders.h"
#include "tracker/mem/mem.h"
#include "web/cli/import/importer.h"

/* --- the importers in Python -----------------------------------------------------------------------------------------
 */

/* Whether the first bytes of the file contain the text. */
static bool file_contains(const char *path, const char *text, size_t n, bool at_start)
{
	char bytes[4096];
	FILE *f = fopen(path, "rbe");
	size_t got = f ? fread(bytes, 1, sizeof(bytes), f) : 0;

	if (f)
		fclose(f);
	return at_start ? got >= n && !memcmp(bytes, text, n) : memmem(bytes, got, text, n) != NULL;
}

/* Whether a path below the folder matches the pattern; a meta.yaml must be one of MLflow. */
static bool has_match(const char *folder, const char *pattern)
{
	static const char key[] = "experiment_id:";
	const bool is_meta = strstr(pattern, "meta.yaml") != NULL;
	struct buf whole;
	glob_t found = { 0 };
	bool has = false;

	buf_init(&whole, 1 << 16);
	for (; *folder; folder++)
		buf_addf(&whole, "%s%c", strchr("*?[\\", *folder) ? "\\" : "", *folder);
	buf_addf(&whole, "/%s", pattern);
	if (!buf_failed(&whole) && !glob(whole.data, GLOB_NOSORT, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && !has; i++)
			has = !is_meta || file_contains(found.gl_pathv[i], key, sizeof(key) - 1, false);
	globfree(&found);
	buf_done(&whole);
	return has;
}

/* The importer in Python that reads the source; NULL: none. */
static const char *find_importer(const char *source)
{
	static const struct {
		const char *importer, *pattern;
	} known[] = { { "aim", ".aim" },
		      { "aim", "run_metadata.sqlite" },
		      { "wandb", "*.wandb" },
		      { "wandb", "*run-*/*.wandb" },
		      { "mlflow", "*/meta.yaml" },
		      { "mlflow", "mlflow.db" },
		      { "mlflow", "mlruns/*/meta.yaml" },
		      { "wandb", "wandb/*run-*/*.wandb" } };
	size_t n = strlen(source);
	struct stat st;

	if (!strncmp(source, "http://", 7) || !strncmp(source, "https://", 8))
		return "mlflow";
	if (stat(source, &st))
		return NULL;
	if (!S_ISDIR(st.st_mode) && file_contains(source, "SQLite format 3", 16, true))
		return "sqlite";
	if (!S_ISDIR(st.st_mode))
		return n > 6 && !strcmp(source + n - 6, ".wandb") ? "wandb" : NULL;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_match(source, known[i].pattern))
			return known[i].importer;
	return NULL;
}

/* Becomes the importer in Python, which starts `dptrack import -` for the same target. */
static int run_importer(const char *importer, const char *source, const struct importer_target *target,
			const struct flag_list *elsewhere, struct err *err)
{
	const char **words = mem_array(2 * elsewhere->count + 6, sizeof(*words));
	char self[PATH_MAX] = "";
	int n = 0, rc;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		setenv("DPTRACK_PROGRAM", self, 1);
	words[n++] = importer;
	words[n++] = source;
	words[n++] = target->url ? "--url" : "--logdir";
	words[n++] = target->url ? target->url : target->into;
	if (target->experiment) {
		words[n++] = "--experiment";
		words[n++] = target->experiment;
	}
	for (size_t i = 0; i < elsewhere->count; i++) {
		words[n++] = "--files-from";
		words[n++] = elsewhere->items[i];
	}
	rc = python_run("dptrack.importers", "", n, words, err);
	free(words);
	return rc;
}

/* --- what this program reads itself ----------------------------------------------------------------------------------
 */

static int import_lines(struct importer *b, const char *path, struct err *err)
{
	char x[64], y[64], z[64];
	int rc;

	snprintf(b->called, sizeof(b->called), "%s", strcmp(path, "-") ? path : "standard input");
	rc = json_lines_read(b, path, err);
	rc = rc ? rc : importer_finish(b, err);
	if (rc)
		return rc;
	printf("%s, %s, %s from %s\n", cli_count(x, b->runs, "run"), cli_count(y, b->points, "point"),
	       cli_count(z, b->files, "file"), b->called);
	importer_say_left_out(b, "skipped:");
	return 0;
}

/* Finds who reads the source, and the folder that its names may not leave. */
static int import_path(struct importer *b, const char *from, struct err *err)
{
	char folder[4096];
	struct stat st;

	if (strcmp(from, "-") && stat(from, &st))
		return err_set_errno(err, errno, "cannot read %s", from);
	snprintf(folder, sizeof(folder), "%s", from);
	if (strcmp(from, "-") && !S_ISDIR(st.st_mode))
		file_name_folder(from, folder, sizeof(folder));
	b->folder = strcmp(from, "-") ? folder : NULL;
	if (!strcmp(from, "-") || json_lines_is(from))
		return import_lines(b, from, err);
	if (S_ISDIR(st.st_mode)) {
		int rc = events_import(b, from, err);

		if (rc == ERR_USAGE && !b->runs && has_match(from, "../mlflow.db"))
			err_set(err, rc, "%s has no runs; those of MLflow are in %s/../mlflow.db: import that file",
				from, from);
		return rc;
	}
	return err_set(
		err, ERR_USAGE,
		"%s: unknown format: expected a folder, a SQLite file of MLflow or trackio, W&B's .wandb file, or "
		"runs as lines of JSON (docs/reference/json-lines.md)",
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
		  "also import files that the source names below DIR; may be repeated (default: only below SOURCE)",
		  &elsewhere, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_import, .table = table, .help = &help, .words_max = 1 };
	const char *importer = NULL;
	int rc = elsewhere.items ? cli_line_read(&line, argc, argv, err) : err_nomem(err, NULL);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "import: the source is missing: dptrack import SOURCE");
	importer = rc ? NULL : find_importer(line.words.items[0]);
	if (importer)
		rc = run_importer(importer, line.words.items[0], &target, &elsewhere, err);
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
	.name = "import",
	.group = "Import",
	.words = "SOURCE",
	.summary = "import runs of TensorBoard, MLflow, W&B, Aim or trackio, or as lines of JSON (-)",
	.examples = "  dptrack import mlruns\n"
		    "  dptrack import wandb --logdir runs\n"
		    "  dptrack import https://mlflow.example.org\n"
		    "  my-exporter | dptrack import - --experiment digits\n",
	.run = run_import_command
};
