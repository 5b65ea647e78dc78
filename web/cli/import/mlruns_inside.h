/* SPDX-License-Identifier: Apache-2.0 */
/* mlruns_inside.h: the parts of the reader of MLflow's file store. Private to mlruns_*.c and import_mlruns.c. */
#ifndef DPT_CLI_MLRUNS_INSIDE_H
#define DPT_CLI_MLRUNS_INSIDE_H

#include "web/cli/import/import_mlflow.h"

/* ---- yaml.c ----
 * Reads the YAML that PyYAML's safe_dump writes for a mapping of scalars and of mappings of scalars, as in MLflow's
 * file store: plain, quoted and folded scalars. Not general YAML: sequences are skipped, and anything but a mapping is
 * refused. Knows no files. */

struct yaml_pair {
	const char *parent;	 /* "" at the top level */
	const char *key, *value; /* value NULL: null */
	struct yaml_pair *next;
};

/* The text ends with NUL. *ret is in the arena, in the order of the file. ERR_CORRUPT: err names the line. */
int yaml_read(const char *text, struct arena *a, struct yaml_pair **ret, struct err *err);

/* The value of a top-level key; "" when missing or null. */
const char *yaml_get(const struct yaml_pair *pairs, const char *key);

/* ---- mlruns_inside.c ---- */

struct mlruns {
	struct importer *b;
	const char *root;
	struct arena *scratch; /* for the current run */
	struct map *places;    /* id of a run → its artifact_uri, in the arena */
};

/* An experiment with a known name, while its runs are read. */
struct mlruns_experiment {
	struct mlruns *of;
	const char *folder, *name;
};

/* ---- mlruns_files.c: the files of a store ---- */

/* Reads a file as text into the arena. A text with a NUL would lose its end: ERR_CORRUPT. b NULL: only
 * to recognise a store. */
int mlruns_text(const struct importer *b, struct arena *a, const char *path, const char **ret, struct err *err);

/* Reads the folder's meta.yaml; ERR_NOENT: it has none. */
int mlruns_meta(const struct importer *b, struct arena *a, const char *folder, struct yaml_pair **ret, struct err *err);

/* Time of a meta.yaml in seconds; 0 when absent. A text that is no number counts as left out. */
double mlruns_meta_time(struct mlruns *m, const struct yaml_pair *meta, const char *key, const char *folder);

/* Counts an item with a damaged or missing meta.yaml as left out. */
int mlruns_skip(struct mlruns *m, int rc, const char *path, const struct err *why, struct err *err);

/* Calls fn for each file below a folder, with the path from there as its name; a file that fn cannot read is left
 * out. */
int mlruns_each(struct mlruns *of, const char *below, folder_fn *fn, void *arg, struct err *err);

/* Reads the files of a folder's subfolder ("tags", "params") as [{"key","value"}], owned by the caller. */
int mlruns_pairs(struct mlruns *m, const char *folder, const char *what, json_t **ret, struct err *err);

/* A point in a metric's file, a line "time value [step]"; points of a model have more fields after these. */
struct mlruns_point {
	double wall_s, value;
	int64_t step;
};

struct mlruns_reader {
	const char *expected; /* fields of a line, for messages */
	/* Returns 0; 1: the line is damaged; negative: failed. */
	int (*fn)(void *arg, const char *line, const struct mlruns_point *p, struct err *err);
	void *arg;
};

/* Calls fn for the lines of a metric's file, in order. Counts each damaged line as left out, and names the first; also
 * a last line without line feed, which may end within a number. The text is in m->scratch. */
int mlruns_lines(struct mlruns *m, const char *path, const struct mlruns_reader *r, struct err *err);

/* ---- mlruns_run.c, mlruns_models.c: what a folder of the store contains ---- */

/* Imports the run of a folder, then queues its files, inputs and deletion. */
int mlruns_run(struct mlruns_experiment *e, const char *folder, const struct yaml_pair *meta, struct err *err);

/* Calls of folder_each; arg: struct mlruns_experiment. They queue a logged model of its folder, and the logged models
 * that the run of a folder made, which the former must precede. */
int mlruns_logged_model(void *arg, const char *path, const char *name, struct err *err);
int mlruns_outputs(void *arg, const char *path, const char *name, struct err *err);

/* The same; arg: struct mlruns. Queues a registered model with its versions and aliases. */
int mlruns_registered(void *arg, const char *path, const char *name, struct err *err);

#endif
