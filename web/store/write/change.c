/* SPDX-License-Identifier: Apache-2.0 */
/* change.c: what kinds of changes share: checks, copies, refusals; and the change that only waits. */
#include "web/store/write/change.h"

#include <stdio.h>

#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "web/store/audit/audit.h"

bool change_is_id(const char *id)
{
	return text_is_hex(id, 32, 32);
}

int change_check_run(const struct ingest_op *op, struct err *err)
{
	if (!change_is_id(op->run))
		return err_set(err, ERR_USAGE, "'%.40s' is not a run id (32 lower-case hex digits)",
			       op->run ? op->run : "");
	return 0;
}

int change_check_name(const char *name, const char *what, const char *field, struct err *err)
{
	size_t len = strlen(name);

	if (len && utf8_valid(name, len) && utf8_chars(name) <= LIMIT_name_chars)
		return 0;
	err_set(err, ERR_USAGE, "%s must be 1 to %d characters of UTF-8", what, (int)LIMIT_name_chars);
	return err_field(err, "%s", field);
}

static bool is_status(const char *status)
{
	enum event_status s;

	for (s = EVENT_RUNNING; s <= EVENT_SCHEDULED; s++)
		if (!strcmp(event_status_name(s), status))
			return true;
	return false;
}

static int check_pairs(const struct ingest_kv *kv, size_t n, const char *what, struct err *err)
{
	const char *wrong;
	size_t i;

	for (i = 0; i < n; i++) {
		wrong = key_check(kv[i].key, strlen(kv[i].key));
		if (wrong) {
			err_set(err, ERR_USAGE, "%s: the key '%.60s' %s", what, kv[i].key, wrong);
			return err_field(err, "%s", what);
		}
		if (strlen(kv[i].value) > LIMIT_value_bytes || !utf8_valid(kv[i].value, strlen(kv[i].value))) {
			err_set(err, ERR_USAGE, "%s.%.60s: the value must be at most %d bytes of UTF-8", what,
				kv[i].key, (int)LIMIT_value_bytes);
			return err_field(err, "%s.%.60s", what, kv[i].key);
		}
	}
	return 0;
}

static int check_status_words(const struct ingest_state *s, struct err *err)
{
	if (s->status && !is_status(s->status)) {
		err_set(err, ERR_USAGE,
			"status '%.40s': expected running, finished, failed, killed, preempted or scheduled",
			s->status);
		return err_field(err, "status");
	}
	if (s->notes && (strlen(s->notes) > LIMIT_note_bytes || !utf8_valid(s->notes, strlen(s->notes)))) {
		err_set(err, ERR_USAGE, "notes must be at most %d bytes of UTF-8", (int)LIMIT_note_bytes);
		return err_field(err, "notes");
	}
	return 0;
}

int change_check_given(const struct ingest_op *op, struct err *err)
{
	int rc = 0;

	if (op->experiment && *op->experiment)
		rc = change_check_name(op->experiment, "experiment", "experiment", err);
	if (!rc && op->move_to)
		rc = change_check_name(op->move_to, "experiment", "experiment", err);
	if (!rc)
		rc = check_status_words(&op->state, err);
	if (!rc)
		rc = check_pairs(op->logged.params, op->logged.param_count, "params", err);
	if (!rc)
		rc = check_pairs(op->logged.tags, op->logged.tag_count, "tags", err);
	if (!rc && op->idempotency && (!*op->idempotency || strlen(op->idempotency) > 255))
		rc = err_set(err, ERR_USAGE, "Idempotency-Key must have 1 to 255 characters");
	return rc;
}

const char *change_dup(struct arena *a, const char *text)
{
	return text ? arena_strdup(a, text) : NULL;
}

const struct ingest_kv *change_dup_pairs(struct arena *a, const struct ingest_kv *kv, size_t n)
{
	struct ingest_kv *copy = arena_array(a, n, sizeof(*copy));
	size_t i;

	for (i = 0; i < n; i++)
		copy[i] = (struct ingest_kv){ change_dup(a, kv[i].key), change_dup(a, kv[i].value) };
	return copy;
}

/* Names taken from a path may not be UTF-8. */
static const char *dup_clean(struct arena *a, const char *text)
{
	size_t room = strlen(text) * 3 + 1;
	char *copy = arena_alloc(a, room);

	utf8_copy(copy, room < 4 * LIMIT_name_chars ? room : 4 * LIMIT_name_chars, text, strlen(text), NULL);
	return copy;
}

static const struct ingest_foreign *dup_foreign(struct arena *a, const struct ingest_foreign *from)
{
	struct ingest_foreign *copy = from ? arena_alloc(a, sizeof(*copy)) : NULL;

	if (from)
		*copy = (struct ingest_foreign){ dup_clean(a, from->experiment), dup_clean(a, from->name),
						 from->annotates };
	return copy;
}

void change_copy(struct change *c, const struct ingest_op *op)
{
	struct arena *a = c->in.arena;
	struct ingest_op *to = &c->op;

	*to = *op;
	to->journal.bytes = NULL;
	to->logged.points = NULL;
	to->more = NULL;
	to->run = change_dup(a, op->run);
	to->experiment = change_dup(a, op->experiment && *op->experiment ? op->experiment : "Default");
	to->name = change_dup(a, op->name);
	to->move_to = change_dup(a, op->move_to);
	to->state.status = change_dup(a, op->state.status);
	to->state.notes = change_dup(a, op->state.notes);
	to->state.seen = change_dup(a, op->state.seen);
	to->state.editing = change_dup(a, op->state.editing);
	to->logged.params = change_dup_pairs(a, op->logged.params, op->logged.param_count);
	to->logged.tags = change_dup_pairs(a, op->logged.tags, op->logged.tag_count);
	to->idempotency = change_dup(a, op->idempotency);
	to->journal.writer = change_dup(a, op->journal.writer);
	to->journal.path = change_dup(a, op->journal.path);
	to->journal.foreign = dup_foreign(a, op->journal.foreign);
}

int change_refuse(struct change *c, int code, const char *fmt, ...)
{
	va_list ap;

	c->res.code = code;
	c->res.err.code = code;
	va_start(ap, fmt);
	vsnprintf(c->res.err.text, sizeof(c->res.err.text), fmt, ap);
	va_end(ap);
	return 0;
}

bool change_awaits_points(struct change *c, const struct state_run *r)
{
	c->waits = r->archived && (c->in.point_count || c->op.journal.writer);
	return c->waits;
}

/* --- restricted callers --------------------------------------------------------------------------------------- */

static int judge_level(struct change *c, const char *name, enum grant_level need)
{
	enum grant_level level = grants_level(c->grants, name);

	level = level < c->most ? level : c->most;
	if (level >= need)
		return 1;
	if (level == GRANT_NONE)
		return ERR_NOENT;
	return change_refuse(c, ERR_DENIED,
			     need == GRANT_ADMIN ? "this token is not an admin of '%.100s'"
						 : "this token may only read '%.100s'",
			     name);
}

int change_may_write_name(struct change *c, const char *name)
{
	return c->grants ? judge_level(c, name, GRANT_WRITE) : 1;
}

static int judge_experiment(struct state *st, struct change *c, int64_t experiment, enum grant_level need,
			    struct err *err)
{
	struct db_rows *q;
	const char *name;
	int rc;

	if (!c->grants)
		return 1;
	rc = db_start(state_db(st), &q, DB_experiment_name, err, "i", experiment);
	if (rc || (rc = db_next(state_db(st), q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	name = db_text(c->in.arena, q, COL_experiment_name_name);
	db_stop(q);
	return judge_level(c, name, need);
}

int change_may_write(struct state *st, struct change *c, int64_t experiment, struct err *err)
{
	return judge_experiment(st, c, experiment, GRANT_WRITE, err);
}

int change_may_admin(struct state *st, struct change *c, int64_t experiment, struct err *err)
{
	return judge_experiment(st, c, experiment, GRANT_ADMIN, err);
}

bool change_may_create(const struct change *c, const char *name)
{
	return !c->grants || (c->most >= GRANT_WRITE && grants_may_create(c->grants, name));
}

int change_refuse_name(struct change *c)
{
	struct buf below;
	size_t i;

	buf_init(&below, 300);
	for (i = 0; i < c->grants->count; i++)
		if (c->grants->items[i].create)
			buf_addf(&below, "%s%s*", below.len ? ", " : "", c->grants->items[i].name);
	change_refuse(c, ERR_DENIED, "this token may not use this name: it may create %s%s",
		      below.len ? "names that begin as in " : "none",
		      below.len && !buf_failed(&below) ? below.data : "");
	buf_done(&below);
	return 0;
}

int change_may_use_name(struct state *st, struct change *c, const char *name, struct err *err)
{
	int64_t id;
	int rc = c->grants ? db_int(state_db(st), &id, DB_experiment_by_name, err, "t", name) : 1;

	if (!c->grants || rc < 0)
		return rc;
	if (rc > 0)
		rc = judge_level(c, name, GRANT_WRITE);
	else
		rc = change_may_create(c, name) ? 1 : ERR_NOENT;
	return rc == ERR_NOENT ? change_refuse_name(c) : rc;
}

/* --- the audit log -------------------------------------------------------------------------------------------- */

int change_about_experiment(struct state *st, struct change *c, int64_t id, struct err *err)
{
	struct db_rows *q;
	int rc;

	if (!c->about.action)
		return 0;
	rc = db_start(state_db(st), &q, DB_experiment_name, err, "i", id);
	while (rc >= 0 && (rc = db_next(state_db(st), q, err)) > 0)
		c->about.experiment = db_text(c->in.arena, q, COL_experiment_name_name);
	return rc;
}

int change_about_run(struct state *st, struct change *c, const struct state_run *r, struct err *err)
{
	if (!c->about.action)
		return 0;
	c->about.id = change_dup(c->in.arena, r->uuid);
	c->about.name = change_dup(c->in.arena, r->name);
	return change_about_experiment(st, c, r->experiment_id, err);
}

const char *change_keys(struct arena *a, const struct ingest_kv *kv, size_t n)
{
	const char *keys;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	for (size_t i = 0; i < n && b.len < AUDIT_TEXT_MAX; i++)
		buf_addf(&b, "%s%s", i ? ", " : "", kv[i].key);
	keys = arena_strdup(a, b.len ? b.data : "");
	buf_done(&b);
	return keys;
}

int change_need_run(struct state *st, struct change *c, struct state_run **ret, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = state_run(st, c->op.run, ret, &why);

	if (rc == ERR_GONE && c->grants) /* maybe of an experiment that the caller must not know */
		return change_refuse(c, ERR_NOENT, "there is no run %s", c->op.run);
	if (rc == ERR_NOENT || rc == ERR_GONE)
		return change_refuse(c, rc, "%s", why.text);
	if (rc && err)
		*err = why;
	if (rc)
		return rc;
	rc = change_may_write(st, c, (*ret)->experiment_id, err);
	if (rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "there is no run %s", c->op.run);
	if (rc <= 0)
		return rc;
	memcpy(c->res.id, (*ret)->uuid, sizeof(*ret)->uuid);
	rc = change_about_run(st, c, *ret, err);
	return rc ? rc : 1;
}

static int apply_nothing(struct state *st, struct change *c, struct err *err)
{
	(void)st;
	(void)c;
	(void)err;
	return 0;
}

const struct change_ops change_sync = { .name = "sync", .after_all = true, .apply = apply_nothing };
