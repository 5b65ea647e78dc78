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
	{ "Project", "run", wandb_make_run },
	{ "Project", "bucket", wandb_make_run },
	{ "Project", "runs", wandb_runs },
	{ "Project", "runCount", wandb_runs },
	{ "Project", "artifact", wandb_project_artifact },
	{ "Project", "artifactCollectionMembership", wandb_project_artifact },
	{ "Project", "artifactCollection", wandb_project_collection },
	{ "Project", "artifactCollections", wandb_artifact_types },
	{ "Project", "artifactType", wandb_artifact_types },
	{ "Project", "artifactTypes", wandb_artifact_types },
	{ "ArtifactType", "artifactCollection", wandb_project_collection },
	{ "ArtifactType", "artifactCollections", wandb_artifact_types },
	{ "ArtifactSequence", "artifacts", wandb_collection_member },
	{ "ArtifactSequence", "artifactMembership", wandb_collection_member },
	{ "ArtifactSequence", "aliases", wandb_collection_member },
	{ "ArtifactCollectionMembership", "files", wandb_artifact_files },
	{ "Artifact", "aliases", wandb_artifact_aliases },
	{ "Artifact", "artifactSequence", wandb_artifact_sequence },
	{ "Artifact", "currentManifest", wandb_artifact_manifest },
	{ "Artifact", "files", wandb_artifact_files },
	{ "Artifact", "size", wandb_artifact_size },
	{ "Artifact", "fileCount", wandb_artifact_size },
	{ "Artifact", "createdBy", wandb_artifact_runs },
	{ "Artifact", "usedBy", wandb_artifact_runs },
	{ "Run", "config", wandb_make_config },
	{ "Run", "wandbConfig", wandb_make_wandb_config },
	{ "Run", "summaryMetrics", wandb_make_summary },
	{ "Run", "historyLineCount", wandb_make_history_count },
	{ "Run", "eventsLineCount", wandb_make_events_count },
	{ "Run", "logLineCount", wandb_make_log_count },
	{ "Run", "historyTail", wandb_make_tail },
	{ "Run", "eventsTail", wandb_make_tail },
	{ "Run", "historyKeys", wandb_make_history_keys },
	{ "Run", "stopped", wandb_make_stopped },
	{ "Run", "history", wandb_history },
	{ "Run", "events", wandb_history },
	{ "Run", "sampledHistory", wandb_sampled_history },
	{ "Run", "outputArtifacts", wandb_run_artifacts },
	{ "Run", "inputArtifacts", wandb_run_artifacts },
	{ "Run", "files", wandb_files },
	{ "Run", "fileCount", wandb_file_count },
	{ 0 },
};

/* Older clients ask which members a type has, and leave out the others. */
enum call_next wandb_root___type(struct call *c, const struct graphql_field *f)
{
	static const char *const plain[] = { "tags", "ttlDurationSeconds", "ttlIsInherited", "historyStep" };
	const char *type = graphql_text(f, "name");
	json_t *fields = json_array();

	for (size_t i = 0; type && !strcmp(type, "Artifact") && i < sizeof(plain) / sizeof(plain[0]); i++)
		json_array_append_new(fields, json_pack("{s:s, s:[]}", "name", plain[i], "args"));
	for (const struct graphql_member *m = members; type && m->type; m++)
		if (!strcmp(m->type, type))
			json_array_append_new(fields, json_pack("{s:s, s:[]}", "name", m->name, "args"));
	return graphql_give(c, json_pack("{s:o, s:[], s:[]}", "fields", fields, "inputFields", "enumValues"));
}

enum call_next on_wandb_graphql(struct call *c)
{
	static const struct graphql_schema schema = { roots, members };

	return graphql_run(c, &schema);
}
