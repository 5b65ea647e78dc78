/* SPDX-License-Identifier: Apache-2.0 */
/* change_run.c: runs that clients create, patch, give params, tags and points, delete and restore; descriptions of
 * experiments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/base/etag.h"
#include "web/store/write/apply.h"
#include "web/store/write/change.h"
#include "web/store/write/segment.h"

/* --- create ------------------------------------------------------------------------------------------------- */

static int check_run_name(const struct ingest_op *op, struct err *err)
{
	return op->name ? change_check_name(op->name, "name", "name", err) : 0;
}

static int check_new_run(const struct ingest_op *op, struct err *err)
{
	int rc = op->run ? change_check_run(op, err) : 0;

	return rc ? rc : check_run_name(op, err);
}

static void copy_new_run(struct change *c, const struct ingest_op *op)
{
	change_copy(c, op);
	if (!c->op.name)
		c->op.name = "run";
}

/* Draws an id if none is given: 1 the id is free, 0 refused. */
static int is_run_id_free(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc;

	if (!c->op.run) {
		apply_draw_id(c->res.id);
		return 1;
	}
	memcpy(c->res.id, c->op.run, 33);
	rc = state_run(st, c->op.run, &r, err);
	if (!rc)
		return change_refuse(c, ERR_EXISTS, "run %s already exists", c->op.run);
	if (rc == ERR_GONE)
		return change_refuse(c, ERR_GONE, "run %s was deleted and removed for good", c->op.run);
	return rc == ERR_NOENT ? 1 : rc;
}

/* Adds the run, its first segment, params and tags. */
static int make_new_run(struct state *st, struct change *c, struct err *err)
{
	const struct ingest_op *op = &c->op;
	const struct ingest_state *s = &op->state;
	int64_t start = s->start_ms && s->start_ms != INGEST_NO_TIME ? s->start_ms : clock_wall_ms();
	const char *status = s->status ? s->status : "running";
	struct state_new_run n = { .uuid = c->res.id, .experiment = op->experiment, .name = op->name, .status = status,
				   .start_ms = start };
	struct state_run *r;
	int rc = change_may_use_name(st, c, op->experiment, err);

	if (rc > 0)
		rc = is_run_id_free(st, c, err);
	if (rc <= 0)
		return rc;
	rc = state_run_add(st, &n, &r, err);
	if (!rc)
		rc = change_about_run(st, c, r, err);
	if (!rc)
		rc = segment_open(st, r, &(struct segment_open){ .start_ms = start, .status = status }, err);
	if (!rc)
		rc = params_add(st, r, op->logged.params, op->logged.param_count, err);
	return rc ? rc : apply_tags(st, r, op->logged.tags, op->logged.tag_count, err);
}

const struct change_ops change_run_new = { .name = "run_new",
					   .makes_run = true,
					   .judges = true,
					   .action = "create",
					   .object = "run",
					   .check = check_new_run,
					   .copy = copy_new_run,
					   .apply = make_new_run };

/* --- write ------------------------------------------------------------------------------------------------ */

static int check_patch(const struct ingest_op *op, struct err *err)
{
	int rc = change_check_run(op, err);

	return rc ? rc : check_run_name(op, err);
}

/* 1: the run may move to the requested experiment; 0 refused. */
static int may_move_run(struct state *st, struct change *c, const struct state_run *r, struct err *err)
{
	int64_t deleted = 0;
	int rc;

	if (!strcmp(r->status, "running"))
		return change_refuse(c, ERR_EXISTS, "run %s is running: it can be moved once it has ended", r->uuid);
	rc = db_int(state_db(st), &deleted, DB_experiment_name_state, err, "ti", c->op.move_to, (int64_t)-1);
	if (rc >= 0 && deleted)
		return change_refuse(c, ERR_EXISTS, "experiment '%.100s' is deleted: restore it first", c->op.move_to);
	return rc < 0 ? rc : 1;
}

/* Says what the patch changes: a status or an end alone has no entry, as it is recorded with the run. */
static void describe_patch(struct change *c)
{
	const struct ingest_op *op = &c->op;
	struct change_about *b = &c->about;
	const char *name = op->name && strcmp(op->name, b->name) ? op->name : NULL;
	const char *from = op->move_to && strcmp(op->move_to, b->experiment) ? b->experiment : NULL;

	b->action = from ? "move" : name ? "rename" : op->state.notes ? "edit" : NULL;
	b->detail = arena_printf(c->in.arena, "%s%s%s%s%s%s", from ? "from " : "", from ? from : "",
				 name ? from ? ", was " : "was " : "", name ? b->name : "",
				 op->state.notes && (from || name) ? ", " : "", op->state.notes ? "notes" : "");
	b->name = name ? name : b->name;
	b->experiment = from ? op->move_to : b->experiment;
}

/* 1: the author of the notes saw those that are stored, or writes the same; 0 refused. */
static int saw_notes(struct state *st, struct change *c, const struct state_run *r, struct err *err)
{
	const struct ingest_state *s = &c->op.state;
	const char *stored = "";
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_note_get, err, "i", r->id);

	if (rc || (rc = db_next(state_db(st), q, err)) < 0)
		return rc;
	if (rc) {
		stored = db_text(c->in.arena, q, COL_note_get_text);
		db_stop(q);
	}
	if (!strcmp(stored, s->notes) || etag_matches(s->seen, hash_fnv_text(HASH_FNV_BEGIN, stored)))
		return 1;
	change_refuse(c, ERR_EXISTS, "the notes have changed since they were read");
	err_field(&c->res.err, "If-Match");
	return 0;
}

static int patch_run(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc > 0 && c->op.move_to)
		rc = change_may_use_name(st, c, c->op.move_to, err);
	if (rc > 0 && c->op.move_to)
		rc = may_move_run(st, c, r, err);
	if (rc > 0 && c->op.state.notes && c->op.state.seen)
		rc = saw_notes(st, c, r, err);
	if (rc <= 0)
		return rc;
	describe_patch(c);
	return apply_patch(st, r, &c->op, err);
}

const struct change_ops change_run_patch = {
	.name = "run_patch", .judges = true, .action = "edit", .object = "run", .check = check_patch, .apply = patch_run
};

static int forget_note(struct state *st, struct change *c, struct err *err)
{
	int64_t found = 0, edition = strtoll(c->op.name, NULL, 10);
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc > 0)
		rc = db_int(state_db(st), &found, DB_note_edition, err, "i", r->id);
	if (rc > 0 && edition == found)
		return change_refuse(c, ERR_EXISTS, "edition %s is the newest: it is replaced, not deleted",
				     c->op.name);
	if (rc > 0)
		rc = db_int(state_db(st), &found, DB_note_text_find, err, "ii", r->id, edition);
	if (rc <= 0)
		return rc || c->res.code ? rc : change_refuse(c, ERR_NOENT, "the notes have no edition %s", c->op.name);
	c->about.detail = arena_printf(c->in.arena, "notes, edition %s", c->op.name);
	return db_run(state_db(st), DB_note_text_delete, err, "ii", r->id, edition);
}

const struct change_ops change_note_forget = { .name = "note_forget",
					       .judges = true,
					       .action = "delete",
					       .object = "run",
					       .check = change_check_run,
					       .apply = forget_note };

/* 1: each param is new or has the same value; 0 refused. */
static int check_run_agrees(struct state *st, struct change *c, const struct state_run *r, struct err *err)
{
	const struct ingest_op *op = &c->op;
	struct params_lookup l = {
		.run = r, .kv = op->logged.params, .count = op->logged.param_count, .arena = c->in.arena
	};
	size_t i;
	int rc = params_find(st, &l, err);

	for (i = 0; i < op->logged.param_count && !rc; i++)
		if (l.values[i] && strcmp(l.values[i], op->logged.params[i].value))
			return change_refuse(c, ERR_EXISTS,
					     "param '%.100s' is already '%.100s': the first value of a param is final",
					     op->logged.params[i].key, l.values[i]);
	return rc ? rc : 1;
}

static int add_run_params(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc > 0)
		rc = check_run_agrees(st, c, r, err);
	return rc <= 0 ? rc : params_add(st, r, c->op.logged.params, c->op.logged.param_count, err);
}

const struct change_ops change_run_params = {
	.name = "run_params", .judges = true, .check = change_check_run, .apply = add_run_params
};

static int put_run_tags(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	c->about.detail = change_keys(c->in.arena, c->op.logged.tags, c->op.logged.tag_count);
	return rc <= 0 ? rc : apply_tags(st, r, c->op.logged.tags, c->op.logged.tag_count, err);
}

const struct change_ops change_run_tags = { .name = "run_tags",
					    .judges = true,
					    .action = "tag",
					    .object = "run",
					    .check = change_check_run,
					    .apply = put_run_tags };

static int drop_run_tag(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	c->about.detail = c->op.name;
	rc = apply_untag(st, r, c->op.name, err);
	return rc ? rc < 0 ? rc : 0 : change_refuse(c, ERR_NOENT, "run %s has no tag '%.100s'", r->uuid, c->op.name);
}

const struct change_ops change_run_untag = { .name = "run_untag",
					     .judges = true,
					     .action = "untag",
					     .object = "run",
					     .check = change_check_run,
					     .apply = drop_run_tag };

/* --- delete, restore -------------------------------------------------------------------------------------------- */

static int set_run_deleted(struct state *st, struct change *c, int64_t deleted_ms, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	if ((deleted_ms == INT64_MIN) == (r->deleted_ms == INT64_MIN))
		c->about.action = NULL;
	r->deleted_ms = deleted_ms;
	state_mark(st, r, true);
	return 0;
}

static int mark_run_deleted(struct state *st, struct change *c, struct err *err)
{
	return set_run_deleted(st, c, clock_wall_ms(), err);
}

static int unmark_run_deleted(struct state *st, struct change *c, struct err *err)
{
	return set_run_deleted(st, c, INT64_MIN, err);
}

const struct change_ops change_run_delete = { .name = "run_delete",
					      .judges = true,
					      .action = "delete",
					      .object = "run",
					      .check = change_check_run,
					      .apply = mark_run_deleted };
const struct change_ops change_run_restore = { .name = "run_restore",
					       .judges = true,
					       .action = "restore",
					       .object = "run",
					       .check = change_check_run,
					       .apply = unmark_run_deleted };

/* --- experiments ---------------------------------------------------------------------------------------------- */

static int check_experiment_op(const struct ingest_op *op, struct err *err)
{
	return change_check_name(op->name ? op->name : "", "the experiment's name", "name", err);
}

static int apply_experiment_op(struct state *st, struct change *c, struct err *err)
{
	int64_t id;
	int rc = change_may_use_name(st, c, c->op.name, err);

	if (rc <= 0)
		return rc;
	rc = state_experiment(st, c->op.name, &id, &c->res.existed, err);

	if (!rc)
		snprintf(c->res.id, sizeof(c->res.id), "%lld", (long long)id);
	return rc;
}

const struct change_ops change_experiment = {
	.name = "experiment", .judges = true, .check = check_experiment_op, .apply = apply_experiment_op
};

/* --- points --------------------------------------------------------------------------------------------------- */

/* Points of one run without a journal; a repeated request is recognised by its key and changes
 * nothing. */

static int decode_points_op(struct change *c, const struct ingest_op *op, struct err *err)
{
	return intake_points(&c->in, op, err);
}

/* 1: the request was stored before, and res has the first answer. 0: it is new; its key is stored. */
static int find_repeated_request(struct state *st, const struct state_run *r, struct change *c, struct err *err)
{
	int64_t accepted;
	int rc = db_int(state_db(st), &accepted, DB_idempotency_get, err, "iti", r->id, c->op.idempotency,
			clock_wall_ms() - APPLY_IDEMPOTENCY_MS);

	if (rc > 0) {
		c->res.accepted = (uint64_t)accepted;
		c->res.existed = true;
	}
	return rc ? rc : db_run(state_db(st), DB_idempotency_put, err, "itii", r->id, c->op.idempotency,
				clock_wall_ms(), (int64_t)c->in.point_count);
}

static int apply_points_op(struct state *st, struct change *c, struct err *err)
{
	struct state_run *r;
	int rc = change_need_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	if (change_awaits_points(c, r))
		return 0;
	rc = c->op.idempotency ? find_repeated_request(st, r, c, err) : 0;
	if (rc)
		return rc < 0 ? rc : 0;
	c->res.accepted = c->in.point_count;
	return apply_points(st, r, &(struct apply_points){ .rank = 0, .segment = r->segment }, &c->in, err);
}

const struct change_ops change_points = { .name = "points",
					  .judges = true,
					  .check = change_check_run,
					  .decode = decode_points_op,
					  .apply = apply_points_op };
