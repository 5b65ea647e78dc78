/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_graphql.c: /graphql: the root fields and the members of objects that W&B's client may ask for. */
#include "web/api/wandb/wandb.h"

#include <string.h>

static const struct graphql_root roots[] = {
#define ROOT(name, scope) { #name, SCOPE_##scope, wandb_root_##name },
#include "web/api/wandb/roots.def"
#undef ROOT
	{ 0 },
};

static const struct graphql_member members[] = {
	{ "Project", "run", wandb_make_run, false },
	{ "Project", "bucket", wandb_make_run, false },
	{ "Project", "runs", wandb_runs, true },
	{ "Project", "runCount", wandb_runs, true },
	{ "Project", "artifact", wandb_project_artifact, false },
	{ "Project", "artifactCollectionMembership", wandb_project_artifact, false },
	{ "Project", "artifactCollection", wandb_project_collection, true },
	{ "Project", "artifactCollections", wandb_artifact_types, true },
	{ "Project", "artifactType", wandb_artifact_types, true },
	{ "Project", "artifactTypes", wandb_artifact_types, true },
	{ "ArtifactType", "artifact", wandb_project_artifact, false },
	{ "ArtifactType", "artifactCollection", wandb_project_collection, true },
	{ "ArtifactType", "artifactCollections", wandb_artifact_types, true },
	{ "ArtifactSequence", "artifacts", wandb_collection_member, true },
	{ "ArtifactSequence", "artifactMembership", wandb_collection_member, true },
	{ "ArtifactSequence", "aliases", wandb_collection_member, true },
	{ "ArtifactCollectionMembership", "files", wandb_artifact_files, true },
	{ "Artifact", "aliases", wandb_artifact_aliases, false },
	{ "Artifact", "artifactSequence", wandb_artifact_sequence, false },
	{ "Artifact", "currentManifest", wandb_artifact_manifest, false },
	{ "Artifact", "files", wandb_artifact_files, true },
	{ "Artifact", "size", wandb_artifact_size, false },
	{ "Artifact", "fileCount", wandb_artifact_size, false },
	{ "Artifact", "createdBy", wandb_artifact_runs, true },
	{ "Artifact", "usedBy", wandb_artifact_runs, true },
	{ "Run", "config", wandb_make_config, false },
	{ "Run", "wandbConfig", wandb_make_wandb_config, false },
	{ "Run", "summaryMetrics", wandb_make_summary, false },
	{ "Run", "historyLineCount", wandb_make_history_count, false },
	{ "Run", "eventsLineCount", wandb_make_events_count, false },
	{ "Run", "logLineCount", wandb_make_log_count, false },
	{ "Run", "historyTail", wandb_make_tail, false },
	{ "Run", "eventsTail", wandb_make_tail, false },
	{ "Run", "historyKeys", wandb_make_history_keys, false },
	{ "Run", "stopped", wandb_make_stopped, false },
	{ "Run", "history", wandb_history, true },
	{ "Run", "events", wandb_history, true },
	{ "Run", "sampledHistory", wandb_sampled_history, true },
	{ "Run", "outputArtifacts", wandb_run_artifacts, true },
	{ "Run", "inputArtifacts", wandb_run_artifacts, true },
	{ "Run", "files", wandb_files, true },
	{ "Run", "fileCount", wandb_file_count, true },
	{ 0 },
};

static void add_names(json_t *to, const char *const *names)
{
	for (; *names; names++)
		json_array_append_new(to, json_pack("{s:s, s:[]}", "name", *names, "args"));
}

/* Older clients ask which members and inputs a type has, and leave out the others. */
enum call_next wandb_root___type(struct call *c, const struct graphql_field *f)
{
	static const char *const plain[] = { "tags", "ttlDurationSeconds", "ttlIsInherited", "historyStep", NULL };
	static const char *const inputs[] = { "tags", "historyStep", NULL };
	const char *type = wandb_default(graphql_text(f, "name"), "");
	json_t *fields = json_array(), *taken = json_array();

	if (!strcmp(type, "Artifact"))
		add_names(fields, plain);
	if (!strcmp(type, "CreateArtifactInput"))
		add_names(taken, inputs);
	for (const struct graphql_member *m = members; m->type; m++)
		if (!strcmp(m->type, type))
			json_array_append_new(fields, json_pack("{s:s, s:[]}", "name", m->name, "args"));
	return graphql_give(c, json_pack("{s:o, s:o, s:[]}", "fields", fields, "inputFields", taken, "enumValues"));
}

enum call_next on_wandb_graphql(struct call *c)
{
	static const struct graphql_schema schema = { roots, members };

	return graphql_run(c, &schema);
}
