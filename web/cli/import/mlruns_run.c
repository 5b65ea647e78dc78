/* SPDX-License-Identifier: Apache-2.0 */
/* mlruns_run.c: a run of MLflow's file store: params, tags, metrics, inputs, files. */
#include <stdlib.h>
#include <sys/stat.h>

#include "tracker/mem/mem.h"
#include "web/cli/import/mlruns_inside.h"

struct run_point {
	struct mlruns_point p;
	const char *key;
	size_t number; /* order of reading, which points of equal time keep */
};

/* Values of the current run. */
struct run_files {
	struct mlruns *of;
	struct importer_run *run;
	const char *key; /* of the file that is being read */
	void (*put)(struct importer_run *run, const char *key, const char *value); /* for read_text_file */
	struct run_point *points;
	size_t count, cap;
};

/* Reads the file of a param or tag. */
static int read_text_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct run_files *f = arg;
	const char *text;
	int rc = mlruns_text(f->of->b, f->of->scratch, path, &text, err);

	if (!rc)
		f->put(f->run, key, text);
	return rc;
}

/* MLflow writes time, value and step, and perhaps a data set and its digest. */
static int add_run_point(void *arg, const char *line, const struct mlruns_point *p, struct err *err)
{
	struct run_files *f = arg;
	const size_t number = f->count;
	char sixth[2];

	if (sscanf(line, "%*s %*s %*s %*s %*s %1s", sixth) > 0)
		return 1;
	(void)err;
	mem_push(&f->points, &f->count, &f->cap, (struct run_point){ *p, f->key, number });
	return 0;
}

static int read_metric_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct run_files *f = arg;

	f->key = arena_strdup(f->of->scratch, key);
	return mlruns_lines(f->of, path, &(struct mlruns_reader){ "time, value, step", add_run_point, f }, err);
}

/* Sorts by time, the order in which a run adds points. */
static int compare_point_times(const void *a, const void *b)
{
	const struct run_point *x = a, *y = b;

	if (x->p.wall_s != y->p.wall_s)
		return x->p.wall_s < y->p.wall_s ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int read_run_values(struct run_files *f, const char *folder, struct err *err)
{
	char below[4096];
	int rc;

	snprintf(below, sizeof(below), "%.4000s/metrics", folder);
	rc = mlruns_each(f->of, below, read_metric_file, f, err);
	if (f->count)
		qsort(f->points, f->count, sizeof(*f->points), compare_point_times);
	for (const struct run_point *r = f->points; r < f->points + f->count; r++)
		importer_point(f->run, r->key, r->p.step, r->p.wall_s, r->p.value);
	free(f->points);
	snprintf(below, sizeof(below), "%.4000s/params", folder);
	f->put = importer_param;
	rc = rc ? rc : mlruns_each(f->of, below, read_text_file, f, err);
	snprintf(below, sizeof(below), "%.4000s/tags", folder);
	f->put = mlflow_tag;
	return rc ? rc : mlruns_each(f->of, below, read_text_file, f, err);
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
	int rc = mlruns_meta(in->of->b, in->of->scratch, path, &link, &why);

	(void)name;
	if (!rc) {
		snprintf(folder, sizeof(folder), "%.3900s/datasets/%.100s", in->experiment,
			 yaml_get(link, "source_id"));
		rc = mlruns_meta(in->of->b, in->of->scratch, folder, &meta, &why);
	}
	if (rc)
		return mlruns_skip(in->of, rc, path, &why, err);
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

	*place = arena_strdup(m->b->kept, uri);
	snprintf(own, sizeof(own), "%.4000s/artifacts", folder);
	return !stat(own, &st) && S_ISDIR(st.st_mode) ? importer_files(m->b, run, "", own, err)
						      : mlflow_files(m->b, run, uri, m->root, err);
}

int mlruns_run(struct mlruns_experiment *e, const char *folder, const struct yaml_pair *meta, struct err *err)
{
	struct importer_run run;
	struct run_files files = { .of = e->of, .run = &run };
	const struct importer_run_head head = { yaml_get(meta, "run_id"), e->name, yaml_get(meta, "run_name"),
						mlruns_meta_time(e->of, meta, "start_time", folder) };
	double end_s = mlruns_meta_time(e->of, meta, "end_time", folder);
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
