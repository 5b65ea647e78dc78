/* import_mlflow.h: what MLflow's two kinds of stores have in common: words, where files lie, and what is asked of our store by
 * MLflow's own routes once the runs are there. Knows neither SQLite nor folders of YAML. */
#ifndef DPT_CLI_BRING_IMPORT_MLFLOW_H
#define DPT_CLI_BRING_IMPORT_MLFLOW_H

#include "web/cli/import/importer.h"

/* The words that MLflow's clients say for a status, or the numbers of its file store. */
enum event_status mlflow_status(const char *word);

/* A tag of a run; the one in which MLflow keeps the run's note is its note. */
void mlflow_tag(struct importer_run *run, const char *key, const char *value);

/* An experiment beside its runs: {"name", "deleted", "tags": [{"key","value"}]}, taken over. */
int mlflow_experiment(struct importer *b, json_t *experiment, struct err *err);

/* A run's files, where its artifact_uri leads to a folder of this machine. A store that was moved keeps its files
 * beside itself, in the folder `beside`. */
int mlflow_files(struct importer *b, const char *run, const char *uri, const char *beside, struct err *err);

/* The data sets that a run read: the body of MLflow's runs/log-inputs, taken over. */
int mlflow_inputs(struct importer *b, json_t *body, struct err *err);

/* A registered model: {"name", "description", "tags": [{"key","value"}], "aliases": {ALIAS: VERSION},
 * "versions": [{"version", "description", "stage", "run_id", "path" (of the run's files; null: elsewhere), "source",
 * "tags"}]}, versions in order; taken over. */
int mlflow_registered(struct importer *b, json_t *model, struct err *err);

/* The part of a version's source that lies below the run's files; NULL: it lies elsewhere. */
const char *mlflow_below(const char *source, const char *artifact_uri);

void mlflow_pair(json_t *list, const char *key, const char *value); /* appends {"key","value"} */

/* The readers. */
int mlflow_db_read(struct importer *b, const char *path, struct err *err);
int mlruns_read(struct importer *b, const char *folder, struct err *err);
bool mlruns_is(const char *folder);

#endif
