/* SPDX-License-Identifier: Apache-2.0 */
/* import_mlruns.c: reads MLflow's file store: a folder for each experiment, in it one for each run, with a file for
 * each param, tag and metric. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/array.h"
#include "tracker/base/file.h"
#include "web/cli/import/import_mlflow.h"
#include "web/cli/import/importer.h"
#include "web/cli/import/yaml.h"

#define META_MAX ((size_t)64 << 20)
#define DEPTH_MAX 32

struct mlruns {
	struct importer *b;
	const char *root;
	struct arena *scratch; /* for the current run */
	struct map *places; /* id of a run → its artifact_uri, in the arena */
};

/* A line of a metric's file. */
struct metric_line {
	double wall_s, value;
	int64_t step;
	const char *key;
	size_t number; /* order of reading, which lines of equal time keep */
};

/* Values of the current run. */
struct run_files {
	struct mlruns *of;
	struct importer_run *run;
	struct metric_line *lines;
	size_t count, cap;
};

/* Reads a file as text into the arena. A text with a NUL would lose its end: ERR_CORRUPT. */
static int read_file_text(struct arena *a, const char *path, const char **ret, struct err *err)
{
	struct file_map map = { 0 };
	int rc = file_map_open(&map, path, err);
	char *copy;

	if (rc)
		return rc;
	if (map.n > META_MAX)
		rc = err_set(err, ERR_LIMIT, "%s: too large", path);
	else if (map.n && memchr(map.bytes, 0, map.n))
		rc = err_set(err, ERR_CORRUPT, "%s: contains a NUL byte", path);
	copy = rc ? NULL : arena_alloc(a, map.n + 1);
	if (copy && map.n)
		memcpy(copy, map.bytes, map.n);
	file_map_close(&map);
	*ret = copy;
	return rc || copy ? rc : err_nomem(err, path);
}

/* Reads the folder's meta.yaml; ERR_NOENT: it has none. */
static int read_meta_yaml(struct arena *a, const char *folder, struct yaml_pair **ret, struct err *err)
{
	const char *text;
	char path[4096];
	struct stat st;
	int rc;

	snprintf(path, sizeof(path), "%.4080s/meta.yaml", folder);
	if (stat(path, &st))
		return ERR_NOENT;
	rc = read_file_text(a, path, &text, err);
	if (rc)
		return rc;
	*ret = NULL;
	rc = yaml_read(text, a, ret, err);
	if (!rc && !*ret)
		rc = err_set(err, ERR_CORRUPT, "empty");
	return rc ? err_prefix(err, "%s", path) : 0;
}

/* Time of a meta.yaml in seconds; 0 when absent. A text that is no number counts as left out. */
static double read_meta_time(struct mlruns *m, const struct yaml_pair *meta, const char *key, const char *folder)
{
	const char *text = yaml_get(meta, key);
	char *end;
	double ms = strtod(text, &end);

	if (!*text || (!*end && end > text && isfinite(ms)))
		return *text ? ms / 1e3 : 0;
	importer_leave_out(m->b, "%s/meta.yaml: %s: expected a number, found '%.40s'", folder, key, text);
	return 0;
}

/* Counts an item with a damaged or missing meta.yaml as left out. */
static int skip_unread(struct mlruns *m, int rc, const char *path, const struct err *why, struct err *err)
{
	if (rc != ERR_NOENT)
		return importer_skip(m->b, rc, why, err);
	importer_leave_out(m->b, "%s: its meta.yaml is missing", path);
	return 0;
}

/* --- folders ---------------------------------------------------------------------------------------------------- */

/* A walk over the files below a folder; subfolders come from keys with slashes. */
struct key_walk {
	const char *below; /* path of the folder; its length tells where the key begins */
	struct mlruns *of;
	folder_fn *fn;
	void *arg;
	int depth;
};

static int visit_key_entry(void *arg, const char *path, const char *name, struct err *err)
{
	struct key_walk *k = arg;
	enum importer_entry kind = importer_entry(k->of->b, k->of->root, path);
	struct err why = ERR_INIT;
	int rc = 0;

	(void)name;
	if (kind == ENTRY_FILE) {
		rc = k->fn(k->arg, path, path + strlen(k->below) + 1, &why);
		rc = importer_skip(k->of->b, rc, &why, err);
	} else if (kind == ENTRY_FOLDER && k->depth < DEPTH_MAX) {
		k->depth++;
		rc = folder_each(path, visit_key_entry, k, err);
		k->depth--;
	} else if (kind == ENTRY_FOLDER) {
		importer_leave_out(k->of->b, "%s: folders are nested too deep", path);
	}
	return rc;
}

/* Calls fn for each file below a folder; a file that fn cannot read is left out. */
static int visit_key_files(struct mlruns *of, const char *below, folder_fn *fn, void *arg, struct err *err)
{
	struct key_walk k = { below, of, fn, arg, 0 };
	struct stat st;

	if (!lstat(below, &st) && importer_entry(of->b, of->root, below) != ENTRY_FOLDER)
		return 0;
	return folder_each(below, visit_key_entry, &k, err);
}

/* --- a run ------------------------------------------------------------------------------------------------------ */

static int read_param_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct run_files *f = arg;
	const char *text;
	int rc = read_file_text(f->of->scratch, path, &text, err);

	if (!rc)
		importer_param(f->run, key, text);
	return rc;
}

static int read_tag_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct run_files *f = arg;
	const char *text;
	int rc = read_file_text(f->of->scratch, path, &text, err);

	if (!rc)
		mlflow_tag(f->run, key, text);
	return rc;
}

static int add_metric_line(struct run_files *f, const struct metric_line *l, struct err *err)
{
	if (!array_reserve(&f->lines, &f->cap, f->count + 1))
		return err_nomem(err, NULL);
	f->lines[f->count] = *l;
	f->lines[f->count].number = f->count;
	f->count++;
	return 0;
}

/* Parses the number at *at, which ends at a blank or the end of the text, as Python's float does. Moves *at to the next
 * field. */
static bool parse_metric_number(const char **at, double *ret)
{
	size_t n = strcspn(*at, " ");
	const char *digits = *at + strspn(*at, "+-");
	char *end;

	*ret = strtod(*at, &end);
	if (!n || end != *at + n || (isfinite(*ret) && strspn(digits, "0123456789.eE+-") != n - (size_t)(digits - *at)))
		return false;
	*at = end + (*end == ' ');
	return true;
}

/* Parses "time value [step]"; points of a data set or a model have more fields after these. */
static bool parse_metric_line(const char *text, struct metric_line *l)
{
	double ms;
	char *end;

	if (!parse_metric_number(&text, &ms) || !isfinite(ms) || !parse_metric_number(&text, &l->value))
		return false;
	l->wall_s = ms / 1e3;
	l->step = 0;
	if (!*text)
		return true; /* MLflow's oldest form has no step */
	errno = 0;
	l->step = strtoll(text, &end, 10);
	return !errno && end > text && (!*end || *end == ' ');
}

/* Names the first damaged line of the file and counts all of them. An incomplete last line may end within a number. */
static int read_metric_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct run_files *f = arg;
	struct metric_line l = { .key = arena_strdup(f->of->scratch, key) };
	const char *text;
	char first[200] = "", *line, *next;
	int rc = read_file_text(f->of->scratch, path, &text, err), number = 0;

	for (line = (char *)(uintptr_t)text; !rc && (next = strchr(line, '\n')); line = next + 1) {
		*(next > line && next[-1] == '\r' ? next - 1 : next) = '\0';
		number++;
		if (parse_metric_line(line, &l)) {
			rc = add_metric_line(f, &l, err);
			continue;
		}
		if (!*first)
			snprintf(first, sizeof(first), "line %d: expected time, value, step; found '%.80s'", number,
				 line);
		importer_leave_out(f->of->b, "a point of %s: %s", path, first);
	}
	if (!rc && *line)
		importer_leave_out(f->of->b, "a point of %s: line %d does not end in a line feed: '%.80s'", path,
				   number + 1, line);
	return rc;
}

/* Sorts by time, the order in which a run adds points. */
static int compare_line_times(const void *a, const void *b)
{
	const struct metric_line *x = a, *y = b;

	if (x->wall_s != y->wall_s)
		return x->wall_s < y->wall_s ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int read_run_values(struct run_files *f, const char *folder, struct err *err)
{
	char below[4096];
	int rc;

	snprintf(below, sizeof(below), "%.4000s/metrics", folder);
	rc = visit_key_files(f->of, below, read_metric_file, f, err);

	if (f->count)
		qsort(f->lines, f->count, sizeof(*f->lines), compare_line_times);
	for (size_t i = 0; i < f->count; i++)
		importer_point(f->run, f->lines[i].key, f->lines[i].step, f->lines[i].wall_s, f->lines[i].value);
	free(f->lines);
	snprintf(below, sizeof(below), "%.4000s/params", folder);
	rc = rc ? rc : visit_key_files(f->of, below, read_param_file, f, err);
	snprintf(below, sizeof(below), "%.4000s/tags", folder);
	return rc ? rc : visit_key_files(f->of, below, read_tag_file, f, err);
}

struct input_list {
	struct mlruns *of;
	const char *experiment; /* folder of the experiment */
	json_t *list;
};

static json_t *yaml_or_null(const struct yaml_pair *meta, const char *key)
{
	for (; meta; meta = meta->next)
		if (!*meta->parent && !strcmp(meta->key, key) && meta->value)
			return json_string(meta->value);
	return json_null();
}

/* Reads the link of an input and the data set that it names. */
static int read_input_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct input_list *in = arg;
	struct yaml_pair *link, *meta;
	struct err why = ERR_INIT;
	json_t *tags, *data;
	char folder[4096];
	int rc = read_meta_yaml(in->of->scratch, path, &link, &why);

	(void)name;
	if (!rc) {
		snprintf(folder, sizeof(folder), "%.3900s/datasets/%.100s", in->experiment,
			 yaml_get(link, "source_id"));
		rc = read_meta_yaml(in->of->scratch, folder, &meta, &why);
	}
	if (rc)
		return skip_unread(in->of, rc, path, &why, err);
	tags = json_array();
	for (; link; link = link->next)
		if (!strcmp(link->parent, "tags"))
			mlflow_pair(tags, link->key, link->value ? link->value : "");
	data = json_pack("{s:s, s:s, s:s, s:s}", "name", yaml_get(meta, "name"), "digest", yaml_get(meta, "digest"),
			 "source_type", yaml_get(meta, "source_type"), "source", yaml_get(meta, "source"));
	json_object_set_new(data, "schema", yaml_or_null(meta, "schema"));
	json_object_set_new(data, "profile", yaml_or_null(meta, "profile"));
	json_array_append_new(in->list, json_pack("{s:o, s:o}", "dataset", data, "tags", tags));
	return 0;
}

static int read_run_inputs(struct mlruns *m, const char *run, const char *experiment, const char *folder,
			   struct err *err)
{
	struct input_list in = { m, experiment, json_array() };
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%.4000s/inputs", folder);
	rc = folder_each(path, read_input_folder, &in, err);
	if (!rc && json_array_size(in.list))
		return mlflow_inputs(m->b, json_pack("{s:s, s:o}", "run_id", run, "datasets", in.list), err);
	json_decref(in.list);
	return rc;
}

/* The files are in the run's own folder, unless its experiment has another location for them. */
static int queue_run_files(struct mlruns *m, const char *run, const char *folder, const char *uri, struct err *err)
{
	char **place = map_put(m->places, run, strlen(run));
	char own[4096];
	struct stat st;

	if (place)
		*place = arena_strdup(m->b->kept, uri);
	snprintf(own, sizeof(own), "%.4000s/artifacts", folder);
	return !stat(own, &st) && S_ISDIR(st.st_mode) ? importer_files(m->b, run, "", own, err) :
							mlflow_files(m->b, run, uri, m->root, err);
}

/* An experiment with a known name, while its runs are read. */
struct in_experiment {
	struct mlruns *of;
	const char *folder, *name;
};

/* Imports the run of a folder, then queues its files, inputs and deletion. */
static int read_run_folder(struct in_experiment *e, const char *folder, const struct yaml_pair *meta, struct err *err)
{
	struct importer_run run;
	struct run_files files = { .of = e->of, .run = &run };
	const struct importer_run_head head = { yaml_get(meta, "run_id"), e->name, yaml_get(meta, "run_name"),
					     read_meta_time(e->of, meta, "start_time", folder) };
	double end_s = read_meta_time(e->of, meta, "end_time", folder);
	struct err why = ERR_INIT;
	int rc = importer_run_begin(&run, e->of->b, &head, &why);

	if (rc) {
		importer_run_drop(&run);
		err_prefix(&why, "%s/meta.yaml", folder);
		return importer_skip(e->of->b, rc, &why, err);
	}
	rc = read_run_values(&files, folder, err);
	if (rc) {
		importer_run_drop(&run);
		return rc;
	}
	importer_status(&run, mlflow_status(e->of->b, yaml_get(meta, "status"), run.id), end_s, "");
	rc = importer_run_end(&run, err);
	rc = rc ? rc : queue_run_files(e->of, run.id, folder, yaml_get(meta, "artifact_uri"), err);
	rc = rc ? rc : read_run_inputs(e->of, run.id, e->folder, folder, err);
	if (!rc && !strcmp(yaml_get(meta, "lifecycle_stage"), "deleted"))
		rc = importer_delete_run(e->of->b, run.id, err);
	return rc;
}

static int skip_trace(void *arg, const char *path, const char *name, struct err *err)
{
	(void)path;
	(void)name;
	(void)err;
	importer_leave_out(((struct mlruns *)arg)->b, "a trace");
	return 0;
}

/* --- logged models ---------------------------------------------------------------------------------------------- */

struct model_files {
	struct mlruns *of;
	json_t *list;
	const char *model;
};

static int read_pair_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct model_files *t = arg;
	const char *text;
	int rc = read_file_text(t->of->scratch, path, &text, err);

	if (!rc)
		mlflow_pair(t->list, key, text);
	return rc;
}

/* Lines of a model's metric also name the run, and perhaps a data set and its digest. */
static int read_model_metric_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct model_files *t = arg;
	const char *text;
	char *line, *next, run[40], name[600], digest[60];
	int rc = read_file_text(t->of->scratch, path, &text, err);

	for (line = (char *)(uintptr_t)text; !rc && (next = strchr(line, '\n')); line = next + 1) {
		struct metric_line l = { .key = key };
		json_t *one;
		int n;

		*next = '\0';
		n = sscanf(line, "%*s %*s %*s %32s %500s %40s", run, name, digest);
		if (!parse_metric_line(line, &l) || n < 1) {
			importer_leave_out(t->of->b, "a point of %s: '%.80s'", path, line);
			continue;
		}
		one = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "run_id", run, "key", key, "model_id", t->model,
				"timestamp", (json_int_t)(l.wall_s * 1e3 + 0.5), "step", (json_int_t)l.step, "value",
				mlflow_number(l.value));
		if (n == 3) {
			json_object_set_new(one, "dataset_name", json_string(name));
			json_object_set_new(one, "dataset_digest", json_string(digest));
		}
		json_array_append_new(t->list, one);
	}
	return rc;
}

static json_t *read_model_list(struct mlruns *m, const char *folder, const char *what, folder_fn *fn, struct err *err)
{
	struct model_files t = { m, json_array(), strrchr(folder, '/') + 1 };
	char below[4096];

	snprintf(below, sizeof(below), "%.4000s/%s", folder, what);
	visit_key_files(m, below, fn, &t, err);
	return t.list;
}

/* Queues a logged model of an experiment's folder. */
static int read_logged_model(struct in_experiment *e, const char *folder, const struct yaml_pair *meta, struct err *err)
{
	static const char *const states[] = { "LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY",
					      "LOGGED_MODEL_UPLOAD_FAILED" };
	long status = strtol(yaml_get(meta, "status"), NULL, 10);
	char own[4096];

	snprintf(own, sizeof(own), "%.4000s/artifacts", folder);
	return mlflow_logged_model(e->of->b, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:o, s:o, s:o}",
		"model_id", yaml_get(meta, "model_id"), "experiment", e->name, "name", yaml_get(meta, "name"),
		"model_type", yaml_get(meta, "model_type"), "source_run_id", yaml_get(meta, "source_run_id"), "status",
		states[status >= 1 && status <= 3 ? status - 1 : 1], "deleted",
		!strcmp(yaml_get(meta, "lifecycle_stage"), "deleted"), "uri",
		access(own, F_OK) ? yaml_get(meta, "artifact_location") : own, "store", e->of->root,
		"params", read_model_list(e->of, folder, "params", read_pair_file, err), "tags",
		read_model_list(e->of, folder, "tags", read_pair_file, err), "metrics",
		read_model_list(e->of, folder, "metrics", read_model_metric_file, err)), err);
}

static int visit_model_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct in_experiment *e = arg;
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	int rc;

	(void)name;
	if (importer_entry(e->of->b, e->of->root, path) != ENTRY_FOLDER)
		return 0;
	e->of->scratch = arena_new();
	rc = e->of->scratch ? read_meta_yaml(e->of->scratch, path, &meta, &why) : err_nomem(&why, NULL);
	rc = rc ? skip_unread(e->of, rc, path, &why, err) : read_logged_model(e, path, meta, err);
	arena_free(e->of->scratch);
	return rc;
}

/* --- outputs: the logged models that runs made, queued after the models ------------------------------------------ */

static int read_output_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct input_list *in = arg;
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	int rc = read_meta_yaml(in->of->b->kept, path, &meta, &why);

	if (rc)
		return skip_unread(in->of, rc, path, &why, err);
	json_array_append_new(in->list, json_pack("{s:s, s:I}", "model_id", name, "step",
						  (json_int_t)strtoll(yaml_get(meta, "step"), NULL, 10)));
	return 0;
}

static int visit_run_outputs(void *arg, const char *path, const char *name, struct err *err)
{
	struct in_experiment *e = arg;
	struct input_list out = { e->of, e->folder, json_array() };
	char folder[4096];
	int rc;

	snprintf(folder, sizeof(folder), "%.4000s/outputs", path);
	rc = strlen(name) == 32 ? folder_each(folder, read_output_folder, &out, err) : 0;
	if (!rc && json_array_size(out.list))
		return mlflow_outputs(e->of->b, json_pack("{s:s, s:o}", "run_id", name, "models", out.list), err);
	json_decref(out.list);
	return rc;
}

static int visit_run_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct in_experiment *e = arg;
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	int rc;

	if (!strcmp(name, "models"))
		return 0; /* after the runs */
	if (!strcmp(name, "traces"))
		return folder_each(path, skip_trace, e->of, err);
	if (!strcmp(name, "tags") || !strcmp(name, "datasets") || !strcmp(name, "meta.yaml") || name[0] == '.')
		return 0;
	if (importer_entry(e->of->b, e->of->root, path) != ENTRY_FOLDER)
		return 0;
	e->of->scratch = arena_new();
	rc = e->of->scratch ? read_meta_yaml(e->of->scratch, path, &meta, &why)
			    : err_nomem(&why, NULL);
	rc = rc ? skip_unread(e->of, rc, path, &why, err) : read_run_folder(e, path, meta, err);
	arena_free(e->of->scratch);
	return rc;
}

/* --- experiments ------------------------------------------------------------------------------------------------ */

struct tag_list {
	struct arena *arena;
	json_t *list;
};

static int add_list_tag(void *arg, const char *path, const char *key, struct err *err)
{
	struct tag_list *t = arg;
	const char *text;
	int rc = read_file_text(t->arena, path, &text, err);

	if (!rc)
		mlflow_pair(t->list, key, text);
	return rc;
}

/* Reads the tags below a folder as [{"key","value"}], owned by the caller. */
static int read_tag_folder(struct mlruns *m, const char *folder, json_t **ret, struct err *err)
{
	struct tag_list t = { m->b->kept, json_array() };
	char below[4096];

	*ret = t.list;
	snprintf(below, sizeof(below), "%.4000s/tags", folder);
	return visit_key_files(m, below, add_list_tag, &t, err);
}

/* Reads the runs of an experiment, then queues the experiment with its tags. */
static int read_experiment_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns *m = arg;
	struct in_experiment e = { m, path, NULL };
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	char models[4096];
	json_t *tags;
	int rc;

	if (!strcmp(name, "models") || name[0] == '.' || importer_entry(m->b, m->root, path) != ENTRY_FOLDER)
		return 0;
	rc = read_meta_yaml(m->b->kept, path, &meta, &why);
	if (!rc && (!*yaml_get(meta, "name") || !*yaml_get(meta, "experiment_id")))
		rc = err_set(&why, ERR_CORRUPT, "%s/meta.yaml: expected name and experiment_id", path);
	if (rc)
		return skip_unread(m, rc, path, &why, err);
	e.name = yaml_get(meta, "name");
	rc = folder_each(path, visit_run_folder, &e, err);
	snprintf(models, sizeof(models), "%.4000s/models", path);
	rc = rc ? rc : folder_each(models, visit_model_folder, &e, err);
	rc = rc ? rc : folder_each(path, visit_run_outputs, &e, err);
	if (rc)
		return rc;
	rc = read_tag_folder(m, path, &tags, err);
	rc = rc ? rc : mlflow_experiment(m->b, json_pack("{s:s, s:b, s:O}", "name", e.name, "deleted",
							 !strcmp(yaml_get(meta, "lifecycle_stage"), "deleted"), "tags",
							 tags), err);
	json_decref(tags);
	return rc;
}

/* --- the registry ----------------------------------------------------------------------------------------------- */

/* Folders come in the order of their names, but versions must be in the order of their numbers. */
static int compare_version_numbers(const void *a, const void *b)
{
	long x = strtol(json_string_value(json_object_get(*(json_t *const *)a, "version")), NULL, 10);
	long y = strtol(json_string_value(json_object_get(*(json_t *const *)b, "version")), NULL, 10);

	return x < y ? -1 : x > y;
}

static json_t *sort_versions(json_t *versions)
{
	size_t n = json_array_size(versions), i;
	json_t **items = calloc(n + 1, sizeof(json_t *)), *to = json_array();

	for (i = 0; items && i < n; i++)
		items[i] = json_array_get(versions, i);
	if (items)
		qsort(items, n, sizeof(json_t *), compare_version_numbers);
	for (i = 0; items && i < n; i++)
		json_array_append(to, items[i]);
	free(items);
	return to;
}

struct model_reader {
	struct mlruns *of;
	json_t *versions;
};

/* Adds the version in a folder to the model's list. */
static int read_version_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct model_reader *model = arg;
	struct yaml_pair *meta;
	char **place;
	json_t *tags;
	int rc = strncmp(name, "version-", 8) ? ERR_NOENT : read_meta_yaml(model->of->b->kept, path, &meta, err);

	if (rc || !strcmp(yaml_get(meta, "current_stage"), "Deleted_Internal"))
		return rc == ERR_NOENT ? 0 : rc;
	rc = read_tag_folder(model->of, path, &tags, err);
	place = map_get(model->of->places, yaml_get(meta, "run_id"), strlen(yaml_get(meta, "run_id")));
	if (!rc)
		json_array_append_new(
			model->versions,
			json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:O}", "version", yaml_get(meta, "version"),
				  "description", yaml_get(meta, "description"), "stage",
				  yaml_get(meta, "current_stage"), "run_id", yaml_get(meta, "run_id"), "path",
				  place && *place ? mlflow_below(yaml_get(meta, "source"), *place) : NULL, "source",
				  yaml_get(meta, "source"), "tags", tags));
	json_decref(tags);
	return rc;
}

/* Queues a registered model with its versions and aliases. */
static int read_model_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns *m = arg;
	struct model_reader model = { m, NULL };
	struct yaml_pair *meta, *p;
	json_t *tags, *aliases;
	int rc = read_meta_yaml(m->b->kept, path, &meta, err);

	(void)name;
	if (rc)
		return rc == ERR_NOENT ? 0 : rc;
	model.versions = json_array();
	aliases = json_object();
	rc = folder_each(path, read_version_folder, &model, err);
	for (p = meta; p; p = p->next)
		if (!strcmp(p->parent, "aliases") && p->value)
			json_object_set_new(aliases, p->key, json_string(p->value));
	tags = NULL;
	rc = rc ? rc : read_tag_folder(m, path, &tags, err);
	if (!rc)
		rc = mlflow_registered(m->b,
				       json_pack("{s:s, s:s, s:O, s:o, s:O}", "name", yaml_get(meta, "name"),
						 "description", yaml_get(meta, "description"), "tags", tags, "versions",
						 sort_versions(model.versions), "aliases", aliases),
				       err);
	json_decref(tags);
	json_decref(aliases);
	json_decref(model.versions);
	return rc;
}

/* --- the store -------------------------------------------------------------------------------------------------- */

int mlruns_read(struct importer *b, const char *folder, struct err *err)
{
	struct mlruns m = { .b = b, .root = folder, .places = map_new(sizeof(char *)) };
	char path[4096];
	int rc = m.places ? folder_each(folder, read_experiment_folder, &m, err)
			  : err_nomem(err, NULL);

	snprintf(path, sizeof(path), "%.4000s/.trash", folder);
	rc = rc ? rc : folder_each(path, read_experiment_folder, &m, err);
	snprintf(path, sizeof(path), "%.4000s/models", folder);
	rc = rc ? rc : folder_each(path, read_model_folder, &m, err);
	map_free(m.places);
	return rc;
}

static int detect_experiment_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct yaml_pair *meta = NULL;
	struct arena *a = arena_new();
	bool *is = arg;

	(void)err;
	if (!*is && a && name[0] != '.' && !read_meta_yaml(a, path, &meta, NULL))
		*is = *yaml_get(meta, "experiment_id") && *yaml_get(meta, "artifact_location");
	arena_free(a);
	return 0;
}

bool mlruns_is(const char *folder)
{
	bool is = false;

	folder_each(folder, detect_experiment_folder, &is, NULL);
	return is;
}
