/* SPDX-License-Identifier: Apache-2.0 */
/* mlruns_models.c: models of MLflow's file store: logged ones, those that runs made, and the registry. */
#include <stdlib.h>
#include <unistd.h>

#include "tracker/mem/mem.h"
#include "web/cli/import/mlruns_inside.h"

struct model_metrics {
	struct mlruns *of;
	json_t *list;
	const char *model;
	const char *key; /* of the file that is being read */
};

/* The line also names the run, and perhaps a data set and its digest. */
static int add_model_point(void *arg, const char *line, const struct mlruns_point *p, struct err *err)
{
	struct model_metrics *t = arg;
	char run[40], name[600], digest[60];
	int n = sscanf(line, "%*s %*s %*s %32s %500s %40s", run, name, digest);
	json_t *one;

	(void)err;
	if (n < 1)
		return 1;
	one = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "run_id", run, "key", t->key, "model_id", t->model,
			"timestamp", (json_int_t)(p->wall_s * 1e3 + 0.5), "step", (json_int_t)p->step, "value",
			mlflow_number(p->value));
	if (n == 3) {
		json_object_set_new(one, "dataset_name", json_string(name));
		json_object_set_new(one, "dataset_digest", json_string(digest));
	}
	json_array_append_new(t->list, one);
	return 0;
}

static int read_model_metric_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct model_metrics *t = arg;

	t->key = key;
	return mlruns_lines(t->of, path, &(struct mlruns_reader){ "time, value, step, run", add_model_point, t }, err);
}

static int list_model_metrics(struct mlruns *m, const char *folder, json_t **ret, struct err *err)
{
	struct model_metrics t = { m, json_array(), strrchr(folder, '/') + 1, NULL };
	char below[4096];

	*ret = t.list;
	snprintf(below, sizeof(below), "%.4000s/metrics", folder);
	return t.list ? mlruns_each(m, below, read_model_metric_file, &t, err) : err_nomem(err, NULL);
}

/* Queues a logged model of an experiment's folder. */
static int read_logged_model(struct mlruns_experiment *e, const char *folder, const struct yaml_pair *meta,
			     struct err *err)
{
	static const char *const states[] = { "LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY",
					      "LOGGED_MODEL_UPLOAD_FAILED" };
	long status = strtol(yaml_get(meta, "status"), NULL, 10);
	json_t *params, *tags = NULL, *metrics = NULL;
	char own[4096];
	int rc = mlruns_pairs(e->of, folder, "params", &params, err);

	rc = rc ? rc : mlruns_pairs(e->of, folder, "tags", &tags, err);
	rc = rc ? rc : list_model_metrics(e->of, folder, &metrics, err);
	snprintf(own, sizeof(own), "%.4000s/artifacts", folder);
	if (!rc)
		rc = mlflow_logged_model(
			e->of->b,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:O, s:O, s:O}", "model_id",
				  yaml_get(meta, "model_id"), "experiment", e->name, "name", yaml_get(meta, "name"),
				  "model_type", yaml_get(meta, "model_type"), "source_run_id",
				  yaml_get(meta, "source_run_id"), "status",
				  states[status >= 1 && status <= 3 ? status - 1 : 1], "deleted",
				  !strcmp(yaml_get(meta, "lifecycle_stage"), "deleted"), "uri",
				  access(own, F_OK) ? yaml_get(meta, "artifact_location") : own, "store", e->of->root,
				  "params", params, "tags", tags, "metrics", metrics),
			err);
	json_decref(params);
	json_decref(tags);
	json_decref(metrics);
	return rc;
}

int mlruns_logged_model(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns_experiment *e = arg;
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	int rc;

	(void)name;
	if (importer_entry(e->of->b, path) != ENTRY_FOLDER)
		return 0;
	e->of->scratch = arena_new();
	rc = mlruns_meta(e->of->b, e->of->scratch, path, &meta, &why);
	rc = rc ? mlruns_skip(e->of, rc, path, &why, err) : read_logged_model(e, path, meta, err);
	arena_free(e->of->scratch);
	return rc;
}

/* --- outputs: the logged models that a run made ------------------------------------------------------------------ */

struct output_list {
	struct mlruns *of;
	json_t *list;
};

static int read_output_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct output_list *in = arg;
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	int rc = mlruns_meta(in->of->b, in->of->b->kept, path, &meta, &why);

	if (rc)
		return mlruns_skip(in->of, rc, path, &why, err);
	json_array_append_new(in->list, json_pack("{s:s, s:I}", "model_id", name, "step",
						  (json_int_t)strtoll(yaml_get(meta, "step"), NULL, 10)));
	return 0;
}

int mlruns_outputs(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns_experiment *e = arg;
	struct output_list out = { e->of, json_array() };
	char folder[4096];
	int rc;

	snprintf(folder, sizeof(folder), "%.4000s/outputs", path);
	rc = strlen(name) == 32 ? folder_each(folder, read_output_folder, &out, err) : 0;
	if (!rc && json_array_size(out.list))
		return mlflow_outputs(e->of->b, json_pack("{s:s, s:o}", "run_id", name, "models", out.list), err);
	json_decref(out.list);
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
	json_t **items = mem_array(n + 1, sizeof(json_t *)), *to = json_array();

	for (i = 0; i < n; i++)
		items[i] = json_array_get(versions, i);
	qsort(items, n, sizeof(json_t *), compare_version_numbers);
	for (i = 0; i < n; i++)
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
	int rc = ERR_NOENT;

	if (!strncmp(name, "version-", 8))
		rc = mlruns_meta(model->of->b, model->of->b->kept, path, &meta, err);
	if (rc || !strcmp(yaml_get(meta, "current_stage"), "Deleted_Internal"))
		return rc == ERR_NOENT ? 0 : rc;
	rc = mlruns_pairs(model->of, path, "tags", &tags, err);
	place = map_get(model->of->places, yaml_get(meta, "run_id"), strlen(yaml_get(meta, "run_id")));
	if (!rc)
		json_array_append_new(model->versions,
				      json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:O}", "version",
						yaml_get(meta, "version"), "description", yaml_get(meta, "description"),
						"stage", yaml_get(meta, "current_stage"), "run_id",
						yaml_get(meta, "run_id"), "path",
						place && *place ? mlflow_below(yaml_get(meta, "source"), *place) : NULL,
						"source", yaml_get(meta, "source"), "tags", tags));
	json_decref(tags);
	return rc;
}

int mlruns_registered(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns *m = arg;
	struct model_reader model = { m, NULL };
	struct yaml_pair *meta, *p;
	json_t *tags, *aliases;
	int rc = mlruns_meta(m->b, m->b->kept, path, &meta, err);

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
	rc = rc ? rc : mlruns_pairs(m, path, "tags", &tags, err);
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
