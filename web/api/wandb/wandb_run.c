/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_run.c: root fields about runs: creates and changes them; who asks and what the server can do. */
#include "web/api/wandb/wandb.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"

/* --- UpsertBucket ----------------------------------------------------------------------------------------------- */

struct upsert {
	const struct graphql_field *f;
	const struct wandb_run *was; /* before the change */
	const char **untag;	     /* tags that the run has and shall lose */
	size_t untag_count;
	bool inserted;
};

static void add_tag(struct wandb_job *job, double now_s, const char *key, const char *value)
{
	const char *has = job->run.found ? wandb_tag(&job->run.run, key) : NULL;

	if (value && *key && (!has || strcmp(has, value)))
		encode_tag(&job->records, now_s, wandb_span(key), wandb_span(value));
}

/* The user's tags replace those that the run has. */
static void add_user_tags(struct call *c, struct wandb_job *job, double now_s)
{
	struct upsert *u = job->state;
	const struct query_run *run = &job->run.run;
	json_t *tags = graphql_arg(u->f, "tags"), *tag;
	size_t i, k;

	u->untag_count = 0;
	if (!json_is_array(tags))
		return;
	json_array_foreach(tags, i, tag)
		if (json_is_string(tag))
			add_tag(job, now_s, json_string_value(tag), "");
	u->untag = arena_array(c->arena, run->tag_count + 1, sizeof(*u->untag));
	for (k = 0; job->run.found && k < run->tag_count; k++) {
		json_array_foreach(tags, i, tag)
			if (json_is_string(tag) && !strcmp(json_string_value(tag), run->tags[k].key))
				break;
		if (!*run->tags[k].value && i == json_array_size(tags))
			u->untag[u->untag_count++] = run->tags[k].key;
	}
}

/* Adds what the arguments say of the run besides config and summary. */
static void add_labels(struct call *c, struct wandb_job *job, double now_s)
{
	static const struct {
		const char *arg, *tag;
	} labels[] = { { "groupName", WANDB_TAG_GROUP }, { "jobType", WANDB_TAG_JOB }, { "sweep", WANDB_TAG_SWEEP } };
	static const struct {
		const char *arg, *key;
	} facts[] = { { "host", "host" }, { "jobProgram", "program" } };
	const struct upsert *u = job->state;
	const char *text;

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		add_tag(job, now_s, labels[i].tag, graphql_text(u->f, labels[i].arg));
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if ((text = graphql_text(u->f, facts[i].arg)) && *text)
			encode_env(&job->records, now_s, wandb_span(facts[i].key), wandb_span(text));
	if ((text = graphql_text(u->f, "commit")) && *text)
		encode_code(&job->records, now_s, wandb_span("commit"), wandb_span(text));
	if ((text = graphql_text(u->f, "jobRepo")) && *text)
		encode_code(&job->records, now_s, wandb_span("remote"), wandb_span(text));
	text = graphql_text(u->f, "notes");
	text = text ? text : graphql_text(u->f, "description");
	if (text && (!job->run.found || strcmp(job->run.run.notes, text)))
		encode_note(&job->records, now_s, wandb_span(text));
	add_user_tags(c, job, now_s);
}

/* Config and summary: what they say, and their texts. */
static void add_values(struct call *c, struct wandb_job *job, double now_s)
{
	const struct upsert *u = job->state;
	const char *config = graphql_text(u->f, "config"), *summary = graphql_text(u->f, "summaryMetrics");
	struct wandb_rows rows = { .c = c, .job = job, .to = &job->records, .wall_s = now_s };
	size_t before = job->records.len;
	json_t *parsed = wandb_parse(config), *given = json_deep_copy(parsed), *had;

	had = wandb_parse(wandb_text(&job->run, "config"));
	if (parsed)
		wandb_rows_config(&job->records, parsed, now_s);
	if (parsed && json_equal(parsed, had))
		job->records.len = before; /* what is stored already */
	else if (parsed && json_equal(parsed, given))
		wandb_keep(c, job, "config", config);
	else if (parsed) /* secrets are hidden */
		wandb_keep_json(c, job, "config", json_incref(parsed));
	json_decref(parsed);
	json_decref(given);
	json_decref(had);
	if (summary && (parsed = wandb_parse(summary))) {
		rows.step = job->run.found && job->run.run.last_step > 0 ? job->run.run.last_step : 0;
		wandb_rows_finals(&rows, job->run.found ? &job->run.run : NULL, parsed);
		wandb_keep(c, job, "summary", summary);
		json_decref(parsed);
	}
}

/* Adds what differs from the stored run, or all of a new one. */
static enum call_next build_upsert(struct call *c, struct wandb_job *job)
{
	struct upsert *u = job->state;
	const char *shown = graphql_text(u->f, "displayName");
	double now_s = clock_wall_s();
	const struct wandb_writer w = { .name = "about",
					.run_name = wandb_default(shown, job->run.name),
					.start_s = now_s };

	if (job->run.found && job->run.run.deleted)
		return call_fail(c, CALL_gone, "run", "run %s is deleted: restore it on the page, or use another id",
				 job->run.name);
	if (!wandb_begin(c, job, &w))
		return CALL_DONE;
	u->inserted = !job->run.found;
	add_tag(job, now_s, WANDB_TAG_ID, job->run.name);
	if (strcmp(job->run.entity, WANDB_ENTITY))
		add_tag(job, now_s, WANDB_TAG_ENTITY, job->run.entity);
	if (job->run.found && shown && *shown && strcmp(shown, job->run.run.name))
		encode_tag(&job->records, now_s, wandb_span(INGEST_RENAME_TAG), wandb_span(shown));
	add_labels(c, job, now_s);
	add_values(c, job, now_s);
	return wandb_submit(c, job);
}

static enum call_next drop_tags(struct call *c);

static enum call_next drop_next_tag(struct call *c, const struct ingest_result *res)
{
	return res->code && res->code != ERR_NOENT ? call_fail_err(c, "tags", &res->err) : drop_tags(c);
}

/* Removes one tag after the other, then replies with the run. */
static enum call_next drop_tags(struct call *c)
{
	struct wandb_job *job = wandb_job_of(c);
	struct upsert *u = job->state;
	struct ingest_op op = { .kind = &change_run_untag, .run = job->run.id, .state = INGEST_NO_STATE };
	json_t *bucket;

	if (u->untag_count) {
		op.name = u->untag[--u->untag_count];
		return api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = drop_next_tag });
	}
	if (!wandb_find(c, job->run.entity, job->run.project, job->run.name, &job->run))
		return CALL_DONE;
	bucket = wandb_run_json(c, &job->run.run);
	/* the client would begin its next lines there; a folder that is sent again must begin at 0 */
	json_object_set_new(bucket, "historyLineCount", json_null());
	return graphql_give(c, json_pack("{s:o, s:b}", "bucket", bucket, "inserted", (int)u->inserted));
}

/* Eight letters and digits, as W&B draws them. */
static const char *draw_run_name(struct call *c)
{
	char text[17];

	return text_random_hex(text, 4) ? "run" : arena_strdup(c->arena, text);
}

enum call_next wandb_root_upsertBucket(struct call *c, const struct graphql_field *f)
{
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));
	struct upsert *u = arena_alloc(c->arena, sizeof(*u));
	const char *id = graphql_text(f, "id"), *name = graphql_text(f, "name"),
		   *project = graphql_text(f, "modelName");

	u->f = f;
	*job = (struct wandb_job){ .build = build_upsert, .then = drop_tags, .state = u };
	job->run = (struct wandb_run){ .entity = wandb_default(graphql_text(f, "entityName"), WANDB_ENTITY),
				       .project = wandb_default(project, WANDB_PROJECT),
				       .name = id && call_is_run_id(id) ? id : wandb_default(name, draw_run_name(c)) };
	if (strlen(job->run.name) > 128 || strpbrk(job->run.name, "/\\#?%:") || strlen(job->run.project) > 128)
		return graphql_refuse(c,
				      "an id of a run and a project have at most 128 characters, and none of /\\#?%%:");
	return wandb_change(c, job);
}

/* --- other mutations of runs ------------------------------------------------------------------------------------ */

static enum call_next give_success(struct call *c)
{
	return graphql_give(c, json_pack("{s:b}", "success", 1));
}

/* Begins a change of the run that the arguments name. */
static enum call_next change_named(struct call *c, const struct graphql_field *f, struct wandb_job *job)
{
	const char *name = graphql_text(f, "runName"), *id = graphql_text(f, "id");
	struct wandb_run *r = &job->run;

	r->entity = wandb_default(graphql_text(f, "entityName"), WANDB_ENTITY);
	r->project = wandb_default(graphql_text(f, "projectName"), WANDB_PROJECT);
	r->name = id && call_is_run_id(id) ? id : wandb_default(name, "");
	return wandb_change(c, job);
}

static enum call_next refuse_missing(struct call *c, const struct wandb_run *r)
{
	return graphql_refuse(c, "there is no run %.100s/%.100s/%.100s", r->entity, r->project, r->name);
}

static enum call_next build_alert(struct call *c, struct wandb_job *job)
{
	const struct graphql_field *f = job->state;
	const char *title = graphql_text(f, "title"), *text = graphql_text(f, "text"),
		   *level = graphql_text(f, "severity");
	double now_s = clock_wall_s();
	struct encode_alert a = { .level = level && !strcmp(level, "ERROR")  ? 3
					   : level && !strcmp(level, "WARN") ? 2
									     : 1 };

	if (!job->run.found)
		return refuse_missing(c, &job->run);
	if (!wandb_begin(c, job, &(struct wandb_writer){ .name = "about", .start_s = now_s }))
		return CALL_DONE;
	a.step = job->run.run.last_step > 0 ? job->run.run.last_step : 0;
	a.title = wandb_span(title ? title : "");
	a.text = wandb_span(text ? text : "");
	encode_alert(&job->records, now_s, &a);
	return wandb_submit(c, job);
}

enum call_next wandb_root_notifyScriptableRunAlert(struct call *c, const struct graphql_field *f)
{
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));

	*job = (struct wandb_job){ .build = build_alert, .then = give_success, .state = (void *)(uintptr_t)f };
	return change_named(c, f, job);
}

/* Hides the points from a step on: they belong to the next segment, which the client's next lines open. */
static enum call_next build_rewind(struct call *c, struct wandb_job *job)
{
	const struct graphql_field *f = job->state;
	json_t *at = graphql_arg(f, "metricValue");
	int64_t first = json_is_number(at) ? (int64_t)json_number_value(at) + 1 : -1;
	struct wandb_writer w = { .name = "rewind", .start_s = clock_wall_s(), .first_step = first };

	if (!job->run.found)
		return refuse_missing(c, &job->run);
	if (first < 0)
		return graphql_refuse(c, "metricValue: expected a step");
	w.segment = job->run.run.segment_count ? job->run.run.segments[job->run.run.segment_count - 1].number + 1 : 1;
	if (!wandb_begin(c, job, &w))
		return CALL_DONE;
	encode_heartbeat(&job->records, w.start_s, 0);
	wandb_keep(c, job, "segment", arena_printf(c->arena, "%d", w.segment));
	return wandb_submit(c, job);
}

static enum call_next give_rewound(struct call *c)
{
	struct wandb_job *job = wandb_job_of(c);

	if (!wandb_find(c, job->run.entity, job->run.project, job->run.name, &job->run))
		return CALL_DONE;
	return graphql_give(c, json_pack("{s:o}", "rewoundRun", wandb_run_json(c, &job->run.run)));
}

enum call_next wandb_root_rewindRun(struct call *c, const struct graphql_field *f)
{
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));

	*job = (struct wandb_job){ .build = build_rewind, .then = give_rewound, .state = (void *)(uintptr_t)f };
	return change_named(c, f, job);
}

/* The client hears of it with the reply to its next lines. */
static enum call_next build_stop(struct call *c, struct wandb_job *job)
{
	if (!job->run.found)
		return job->state ? refuse_missing(c, &job->run) : call_fail(c, CALL_not_found, "run", "no such run");
	if (!wandb_begin(c, job, &(struct wandb_writer){ .name = "about", .start_s = clock_wall_s() }))
		return CALL_DONE;
	wandb_keep(c, job, "stop", "1");
	return wandb_submit(c, job);
}

enum call_next wandb_root_stopRun(struct call *c, const struct graphql_field *f)
{
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));

	*job = (struct wandb_job){ .build = build_stop, .then = give_success, .state = (void *)(uintptr_t)f };
	return change_named(c, f, job);
}

static enum call_next reply_stopping(struct call *c)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_bool(&j, "stopping", wandb_tag(&wandb_job_of(c)->run.run, WANDB_TAG_ID) != NULL);
	return js_reply(c, &j);
}

/* POST /api/v1/runs/{run}/stop; only W&B's clients can be asked to stop. */
enum call_next on_run_stop(struct call *c)
{
	struct wandb_job *job = arena_alloc(c->arena, sizeof(*job));
	const char *id = call_run_id(c, 0);

	if (!id || !call_args_done(c) || !wandb_find(c, NULL, NULL, id, &job->run))
		return CALL_DONE;
	if (!job->run.found)
		return call_fail(c, CALL_not_found, "run", "there is no run %s", id);
	job->build = build_stop;
	job->then = reply_stopping;
	return wandb_change(c, job);
}

static enum call_next give_deleted(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return give_success(c);
}

enum call_next wandb_root_deleteRun(struct call *c, const struct graphql_field *f)
{
	struct ingest_op op = { .kind = &change_run_delete, .run = graphql_text(f, "id"), .state = INGEST_NO_STATE };

	if (!op.run || !call_is_run_id(op.run))
		return graphql_refuse(c, "there is no such run");
	return api_submit(c, &(struct api_change){ .op = &op, .then = give_deleted });
}

/* --- queries ---------------------------------------------------------------------------------------------------- */

enum call_next wandb_root_viewer(struct call *c, const struct graphql_field *f)
{
	(void)f;
	return graphql_give(c, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:{s:[]}}", "__typename", "User",
					 "id", WANDB_ENTITY, "entity", WANDB_ENTITY, "username", WANDB_ENTITY, "name",
					 WANDB_ENTITY, "email", "", "flags", "{}", "admin", 0, "teams", "edges"));
}

/* What the client may use of newer servers; each with a test. */
enum call_next wandb_root_serverInfo(struct call *c, const struct graphql_field *f)
{
	static const char *const features[] = { "FILESTREAM_GZIP" };
	json_t *list = json_array();

	(void)f;
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		json_array_append_new(list, json_pack("{s:s, s:b}", "name", features[i], "isEnabled", 1));
	return graphql_give(c, json_pack("{s:s, s:o, s:{s:s, s:s}, s:{s:b, s:s, s:s}}", "__typename", "ServerInfo",
					 "features", list, "cliVersionInfo", "max_cli_version", "1000.0.0",
					 "min_cli_version", "0.0.1", "latestLocalVersionInfo", "outOfDate", 0,
					 "latestVersionString", "1000.0.0", "versionOnThisInstanceString", "1000.0.0"));
}

enum call_next wandb_root_project(struct call *c, const struct graphql_field *f)
{
	const char *entity = wandb_default(graphql_text(f, "entityName"), WANDB_ENTITY);
	json_t *o = wandb_project_json(c, entity, wandb_default(graphql_text(f, "name"), WANDB_PROJECT));

	return c->status == 200 ? graphql_give(c, o) : CALL_DONE;
}

enum call_next wandb_root_entity(struct call *c, const struct graphql_field *f)
{
	const char *name = wandb_default(graphql_text(f, "name"), WANDB_ENTITY);

	return graphql_give(c, json_pack("{s:s, s:s, s:s, s:b, s:n}", "__typename", "Entity", "id", name, "name", name,
					 "isTeam", 1, "organization"));
}

enum call_next wandb_root_model(struct call *c, const struct graphql_field *f)
{
	return wandb_root_project(c, f);
}

enum call_next wandb_root_upsertSweep(struct call *c, const struct graphql_field *f)
{
	(void)f;
	return graphql_refuse(c, "sweeps are not here: use dptrain sweep or Optuna");
}

enum call_next wandb_root_createAgent(struct call *c, const struct graphql_field *f)
{
	return wandb_root_upsertSweep(c, f);
}
