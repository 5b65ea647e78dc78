/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_records.c: stores the records and texts of a request, or builds them again when another request came first. */
#include "web/api/wandb/wandb.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/utf8.h"
#include "web/store/base/map.h"

void **wandb_own(struct call *c)
{
	return strcmp(c->route->name, "wandb_graphql") ? &c->own : graphql_own(c);
}

struct wandb_job *wandb_job_of(struct call *c)
{
	return *wandb_own(c);
}

struct event_text wandb_span(const char *text)
{
	return (struct event_text){ text, strlen(text) };
}

static void drop_job(void *arg)
{
	struct wandb_job *job = arg;

	buf_done(&job->records);
}

/* Reads the run and builds the change. */
static enum call_next build_change(struct call *c, struct wandb_job *job)
{
	struct wandb_run *r = &job->run;

	buf_reset(&job->records);
	job->text_count = job->line_count = job->problem_count = 0;
	if (!wandb_find(c, r->entity, r->project, r->name, r))
		return CALL_DONE;
	return job->build(c, job);
}

enum call_next wandb_change(struct call *c, struct wandb_job *job)
{
	*wandb_own(c) = job;
	if (!job->records.max) { /* its first change */
		buf_init(&job->records, CALL_BUFFERED_MAX);
		call_defer(c, drop_job, job);
	}
	return build_change(c, job);
}

/* The offset is read before the texts that depend on it (build_change reads those of the run again if it changed in
 * between, as the offset is then no longer the end). */
bool wandb_begin(struct call *c, struct wandb_job *job, const struct wandb_writer *w)
{
	const char *experiment = wandb_experiment(c, job->run.entity, job->run.project);
	struct err err = ERR_INIT;
	int rc = 0;

	wandb_id(job->writer, "wandb %s %s %d", job->run.id, w->name, w->segment);
	job->durable = 0;
	if (job->run.found)
		rc = ingest_durable(c->api->store, job->run.id, job->writer, &job->durable, &err);
	if (rc)
		return call_fail_err(c, NULL, &err), false;
	/* read after the offset: what is older than the offset is not stored */
	if (!wandb_find(c, job->run.entity, job->run.project, job->run.name, &job->run))
		return false;
	if (job->durable)
		return true;
	encode_header(
		&job->records, w->start_s,
		&(struct event_header){ .format = 1,
					.run_id = wandb_span(job->run.id),
					.writer_id = wandb_span(job->writer),
					.rank = w->rank,
					.world_size = 1,
					.experiment = wandb_span(job->run.found ? job->run.run.experiment : experiment),
					.run_name = wandb_span(w->run_name ? w->run_name : job->run.name),
					.segment = w->segment,
					.first_step = w->first_step,
					.first_epoch = w->first_step });
	return true;
}

void wandb_keep(struct call *c, struct wandb_job *job, const char *name, const char *text)
{
	list_push(c->arena, &job->texts, &job->text_count, (struct ingest_kv){ name, text });
}

void wandb_keep_json(struct call *c, struct wandb_job *job, const char *name, json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	wandb_keep(c, job, name, arena_strdup(c->arena, text ? text : "null"));
	free(text);
	json_decref(value);
}

void wandb_leave_out(struct call *c, struct wandb_job *job, const char *fmt, ...)
{
	char text[1000], clean[sizeof(text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	utf8_escape(clean, sizeof(clean), text);
	list_push(c->arena, &job->problems, &job->problem_count, arena_strdup(c->arena, clean));
}

/* Several equal lines of a request are one in the log. */
static void log_problems(const struct wandb_job *job)
{
	for (size_t i = 0; i < job->problem_count; i++)
		if (!i || strcmp(job->problems[i], job->problems[i - 1]))
			log_warn("run %s (%s/%s): %s", job->run.id, job->run.project, job->run.name, job->problems[i]);
}

static enum call_next finish_change(struct call *c, const struct ingest_result *res)
{
	struct wandb_job *job = wandb_job_of(c);

	if (res->overtaken)
		return build_change(c, job);
	if (res->code)
		return call_fail_err(c, "run", &res->err);
	log_problems(job);
	return job->then(c);
}

enum call_next wandb_submit(struct call *c, struct wandb_job *job)
{
	const struct ingest_texts texts = { job->texts,	     job->text_count, job->lines,
					    job->line_count, job->problems,   job->problem_count };
	const struct ingest_op op = { .kind = &change_records,
				      .run = job->run.id,
				      .state = INGEST_NO_STATE,
				      .journal = { .writer = job->writer,
						   .offset = job->durable,
						   .bytes = job->records.data,
						   .len = job->records.len },
				      .more = &texts };

	if (buf_failed(&job->records))
		return call_fail(c, CALL_too_large, NULL, "the request is too large to store");
	if (!job->records.len && !job->text_count)
		return job->then(c);
	if (!job->records.len) /* texts need a record to be stored with */
		encode_heartbeat(&job->records, clock_wall_s(), 0);
	return api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = finish_change });
}
