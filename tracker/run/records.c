/* SPDX-License-Identifier: Apache-2.0 */
/* records.c: encodes records into one bounded buffer, protected by one lock. */
#include "tracker/run/run_inside.h"

#include <stdlib.h>

#include "tracker/base/array.h"
#include "tracker/base/clock.h"

struct records {
	pthread_mutex_t lock;
	struct buf pending;
	struct arena *arena;
	struct encode_param *params;
	size_t params_n, params_cap;
	bool hparams; /* a session start has to be written */
	bool session; /* the session start has been written */
};

struct records *records_new(bool hparams)
{
	struct records *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->arena = arena_new();
	if (!r->arena) {
		free(r);
		return NULL;
	}
	r->hparams = hparams;
	buf_init(&r->pending, LIMIT_records_queued_bytes);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void records_free(struct records *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	buf_done(&r->pending);
	arena_free(r->arena);
	free(r->params);
	free(r);
}

static bool is_same_text(struct event_text a, struct event_text b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static bool is_same_param(const struct encode_param *a, const struct encode_param *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == EVENT_TYPE_TEXT)
		return is_same_text(a->text, b->text);
	if (a->type == EVENT_TYPE_F64)
		return !memcmp(&a->value, &b->value, sizeof(a->value));
	return a->integer == b->integer;
}

static int copy_into_arena(struct records *r, struct event_text *t)
{
	char *copy = arena_alloc(r->arena, t->len + 1);

	if (!copy)
		return ERR_NOMEM;
	memcpy(copy, t->at, t->len);
	t->at = copy;
	return 0;
}

static int store_param(struct records *r, const struct encode_param *p)
{
	struct encode_param copy = *p;

	if (r->params_n >= LIMIT_params_per_run)
		return ERR_LIMIT;
	if (copy_into_arena(r, &copy.key) || (p->type == EVENT_TYPE_TEXT && copy_into_arena(r, &copy.text)))
		return ERR_NOMEM;
	return array_push(&r->params, &r->params_n, &r->params_cap, copy) ? 0 : ERR_NOMEM;
}

/* Removes a record that did not fit. */
static int drop_if_full(struct records *r, size_t before)
{
	if (!buf_failed(&r->pending))
		return 0;
	r->pending.len = before;
	r->pending.failed = false;
	return ERR_LIMIT;
}

/* Adding a record: begin_adding returns its offset, end_adding whether it fitted. The lock is held in between. */
static size_t begin_adding(struct records *r)
{
	pthread_mutex_lock(&r->lock);
	return r->pending.len;
}

static int end_adding(struct records *r, size_t before)
{
	int rc = drop_if_full(r, before);

	pthread_mutex_unlock(&r->lock);
	return rc;
}

int records_param(struct records *r, const struct encode_param *p)
{
	const size_t before = begin_adding(r);
	int rc = 0, full;
	size_t i;

	for (i = 0; i < r->params_n; i++)
		if (is_same_text(r->params[i].key, p->key))
			break;
	if (i == r->params_n)
		rc = store_param(r, p);
	else if (!p->changed)
		rc = is_same_param(&r->params[i], p) ? 1 : ERR_EXISTS;
	if (!rc)
		encode_param(&r->pending, clock_wall_s(), p);
	full = end_adding(r, before);
	return rc < 0 ? rc : full;
}

int records_pair(struct records *r, enum record_pair kind, struct event_text key, struct event_text value)
{
	const size_t before = begin_adding(r);

	(kind == RECORD_TAG ? encode_tag : encode_env)(&r->pending, clock_wall_s(), key, value);
	return end_adding(r, before);
}

int records_note(struct records *r, struct event_text markdown)
{
	const size_t before = begin_adding(r);

	encode_note(&r->pending, clock_wall_s(), markdown);
	return end_adding(r, before);
}

int records_code(struct records *r, struct event_text name, struct event_text text)
{
	const size_t before = begin_adding(r);

	encode_code(&r->pending, clock_wall_s(), name, text);
	return end_adding(r, before);
}

int records_alert(struct records *r, const struct encode_alert *a)
{
	const size_t before = begin_adding(r);

	encode_alert(&r->pending, clock_wall_s(), a);
	return end_adding(r, before);
}

int records_input(struct records *r, const struct event_input *in)
{
	const size_t before = begin_adding(r);

	encode_input(&r->pending, clock_wall_s(), in);
	return end_adding(r, before);
}

int records_file(struct records *r, const struct encode_file *f)
{
	const size_t before = begin_adding(r);

	encode_file(&r->pending, clock_wall_s(), f);
	return end_adding(r, before);
}

int records_media(struct records *r, const struct media_place *place, struct event_span content)
{
	const size_t before = begin_adding(r);

	media_encode(&r->pending, place, content);
	return end_adding(r, before);
}

int records_status(struct records *r, enum event_status status, struct event_text reason)
{
	const size_t before = begin_adding(r);

	encode_status(&r->pending, clock_wall_s(), status, reason);
	return end_adding(r, before);
}

void records_take(struct records *r, struct buf *to, bool points_follow)
{
	pthread_mutex_lock(&r->lock);
	buf_add(to, r->pending.data, r->pending.len);
	buf_reset(&r->pending);
	if (points_follow && r->hparams && r->params_n) {
		encode_hparams_start(to, clock_wall_s(), r->params, r->params_n);
		r->hparams = false;
		r->session = true;
	}
	pthread_mutex_unlock(&r->lock);
}

void records_end(struct records *r, struct buf *to, enum event_status status)
{
	pthread_mutex_lock(&r->lock);
	if (r->session)
		encode_hparams_end(to, clock_wall_s(), status);
	pthread_mutex_unlock(&r->lock);
}
