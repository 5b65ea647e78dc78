/* SPDX-License-Identifier: Apache-2.0 */
/* import_mlruns.c: reads MLflow's file store: a folder for each experiment, in it one for each run, with a file for
 * each param, tag and metric. */

#include "web/cli/import/mlruns_inside.h"

static int skip_trace(void *arg, const char *path, const char *name, struct err *err)
{
	(void)path;
	(void)name;
	(void)err;
	importer_leave_out(((struct mlruns *)arg)->b, "a trace");
	return 0;
}

static int visit_run_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns_experiment *e = arg;
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	int rc;

	if (!strcmp(name, "models"))
		return 0; /* after the runs */
	if (!strcmp(name, "traces"))
		return folder_each(path, skip_trace, e->of, err);
	if (!strcmp(name, "tags") || !strcmp(name, "datasets") || !strcmp(name, "meta.yaml") || name[0] == '.')
		return 0;
	if (importer_entry(e->of->b, path) != ENTRY_FOLDER)
		return 0;
	e->of->scratch = arena_new();
	rc = mlruns_meta(e->of->b, e->of->scratch, path, &meta, &why);
	rc = rc ? mlruns_skip(e->of, rc, path, &why, err) : mlruns_run(e, path, meta, err);
	arena_free(e->of->scratch);
	return rc;
}

/* Reads the runs of an experiment, then queues the experiment with its tags. */
static int read_experiment_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct mlruns *m = arg;
	struct mlruns_experiment e = { m, path, NULL };
	struct err why = ERR_INIT;
	struct yaml_pair *meta;
	char models[4096];
	json_t *tags;
	int rc;

	if (!strcmp(name, "models") || name[0] == '.' || importer_entry(m->b, path) != ENTRY_FOLDER)
		return 0;
	rc = mlruns_meta(m->b, m->b->kept, path, &meta, &why);
	if (!rc && (!*yaml_get(meta, "name") || !*yaml_get(meta, "experiment_id")))
		rc = err_set(&why, ERR_CORRUPT, "%s/meta.yaml: expected name and experiment_id", path);
	if (rc)
		return mlruns_skip(m, rc, path, &why, err);
	e.name = yaml_get(meta, "name");
	rc = folder_each(path, visit_run_folder, &e, err);
	snprintf(models, sizeof(models), "%.4000s/models", path);
	rc = rc ? rc : folder_each(models, mlruns_logged_model, &e, err);
	rc = rc ? rc : folder_each(path, mlruns_outputs, &e, err);
	if (rc)
		return rc;
	rc = mlruns_pairs(m, path, "tags", &tags, err);
	rc = rc ? rc : mlflow_experiment(m->b, json_pack("{s:s, s:b, s:O}", "name", e.name, "deleted",
							 !strcmp(yaml_get(meta, "lifecycle_stage"), "deleted"), "tags",
							 tags), err);
	json_decref(tags);
	return rc;
}

/* --- the store -------------------------------------------------------------------------------------------------- */

int mlruns_read(struct importer *b, const char *folder, struct err *err)
{
	struct mlruns m = { .b = b, .root = folder, .places = map_new(sizeof(char *)) };
	char path[4096];
	int rc = m.places ? folder_each(folder, read_experiment_folder, &m, err) : err_nomem(err, NULL);

	snprintf(path, sizeof(path), "%.4000s/.trash", folder);
	rc = rc ? rc : folder_each(path, read_experiment_folder, &m, err);
	snprintf(path, sizeof(path), "%.4000s/models", folder);
	rc = rc ? rc : folder_each(path, mlruns_registered, &m, err);
	map_free(m.places);
	return rc;
}

static int detect_experiment_folder(void *arg, const char *path, const char *name, struct err *err)
{
	struct yaml_pair *meta = NULL;
	struct arena *a = arena_new();
	bool *is = arg;

	(void)err;
	if (!*is && name[0] != '.' && !mlruns_meta(NULL, a, path, &meta, NULL))
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
