/* SPDX-License-Identifier: Apache-2.0 */
/* import_mlflow.h: shared by the readers of MLflow's two kinds of stores: status names, locations of files, and
 * requests by MLflow's own routes after the runs are imported. Knows neither SQLite nor YAML folders. */
#ifndef DPT_CLI_IMPORT_MLFLOW_H
#define DPT_CLI_IMPORT_MLFLOW_H

#include "web/cli/import/importer.h"

/* Parses a status name of MLflow's clients, or a number of its file store. Another word counts as left out; the run
 * then is one that ended. */
enum event_status mlflow_status(struct importer *b, const char *word, const char *run);

/* Imports a tag of a run; MLflow stores the run's note in a tag. */
void mlflow_tag(struct importer_run *run, const char *key, const char *value);

/* Queues an experiment: {"name", "deleted", "tags": [{"key","value"}]}, taken over. */
int mlflow_experiment(struct importer *b, json_t *experiment, struct err *err);

/* Queues the files of a run if its artifact_uri is a folder of this machine. A store that was moved has its files next
 * to itself, in the folder `store_folder`. */
int mlflow_files(struct importer *b, const char *run, const char *uri, const char *store_folder, struct err *err);

/* Queues the data sets that a run read: the body of MLflow's runs/log-inputs, taken over. */
int mlflow_inputs(struct importer *b, json_t *body, struct err *err);

/* Queues a logged model, before the registry and the deletion of runs: {"model_id", "experiment" (its name), "name",
 * "model_type", "source_run_id", "status", "deleted", "params", "tags": [{"key","value"}], "metrics": [bodies of
 * runs/log-metric], "uri" of its files, "store" (folder next to which they may be)}, taken over. */
int mlflow_logged_model(struct importer *b, json_t *model, struct err *err);

/* Queues what a run made of logged models: the body of runs/outputs, taken over. */
int mlflow_outputs(struct importer *b, json_t *body, struct err *err);

/* Queues a registered model: {"name", "description", "tags": [{"key","value"}], "aliases": {ALIAS: VERSION},
 * "versions": [{"version", "description", "stage", "run_id", "path" (below the run's files; null: elsewhere), "source",
 * "tags"}]}. Versions are in order; taken over. */
int mlflow_registered(struct importer *b, json_t *model, struct err *err);

/* The part of a version's source below the run's files; NULL: it is elsewhere. */
const char *mlflow_below(const char *source, const char *artifact_uri);

/* The text; bytes that are not UTF-8 become U+FFFD. NULL: out of memory. */
json_t *mlflow_text(const char *text);

json_t *mlflow_number(double v); /* a word if it is not finite */

void mlflow_pair(json_t *list, const char *key, const char *value); /* appends {"key","value"} */

/* The readers. */
int mlflow_db_read(struct importer *b, const char *path, struct err *err);
int mlruns_read(struct importer *b, const char *folder, struct err *err);
bool mlruns_is(const char *folder);

#endif
