/* SPDX-License-Identifier: Apache-2.0 */
/* saved_view.c: reads saved views and reports, and changes them. */
#include "web/store/saved_view/saved_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "tracker/base/clock.h"
#include "tracker/base/utf8.h"
#include "web/store/base/etag.h"
#include "web/store/write/change.h"

static struct saved_view read_kept_row(struct arena *a, struct db_rows *q)
{
	return (struct saved_view){
		.id = db_i64(q, COL_kept_rows_id),
		.experiment = db_text(a, q, COL_kept_rows_experiment),
		.name = db_text(a, q, COL_kept_rows_name),
		.text = db_text(a, q, COL_kept_rows_text),
		.preferred = db_i32(q, COL_kept_rows_preferred),
		.edition = db_i64(q, COL_kept_rows_edition),
		.created_ms = db_i64(q, COL_kept_rows_created_ms),
		.updated_ms = db_i64(q, COL_kept_rows_updated_ms),
	};
}

static bool is_of_experiment(struct db_rows *q, const char *experiment)
{
	return !experiment || !strcmp(db_str(q, COL_kept_rows_experiment), experiment);
}

int saved_view_list(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_views *ret,
		    struct err *err)
{
	struct saved_views l = { 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_kept_rows, err, "tt", sel->shelf, permitted_ids(d));
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (is_of_experiment(q, sel->experiment))
			list_push(a, &l.items, &l.count, read_kept_row(a, q));
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}

static int read_editions(struct db *d, struct arena *a, struct saved_view *k, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_kept_editions, err, "i", k->id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &k->editions, &k->edition_count,
			  (struct saved_view_edition){ db_i64(q, COL_kept_editions_edition),
						       db_i64(q, COL_kept_editions_written_ms) });
	return rc;
}

static int find_kept(struct db *d, const struct saved_view_sel *sel, struct arena *a, struct saved_view *k,
		     struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_kept_row, err, "tii", sel->shelf, sel->id, sel->edition);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	*k = read_kept_row(a, q);
	rc = permitted(d, db_i64(q, COL_kept_rows_experiment_id)) ? 0 : ERR_NOENT;
	db_stop(q);
	return rc ? rc : read_editions(d, a, k, err);
}

uint64_t saved_view_hash(const struct saved_view *k)
{
	const int64_t numbers[] = { k->id, k->preferred, k->edition, k->created_ms, k->updated_ms };
	uint64_t h = hash_fnv(HASH_FNV_BEGIN, numbers, sizeof(numbers));

	h = hash_fnv(h, k->experiment, strlen(k->experiment) + 1);
	h = hash_fnv(h, k->name, strlen(k->name) + 1);
	h = hash_fnv(h, k->text, strlen(k->text) + 1);
	return k->edition_count ? hash_fnv(h, k->editions, k->edition_count * sizeof(*k->editions)) : h;
}

int saved_view_get(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_view *ret,
		   struct err *err)
{
	struct saved_view k = { 0 };
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = find_kept(d, sel, a, &k, err);
	readers_give(s, d);
	if (!rc)
		*ret = k;
	return rc;
}

static int find_preferred(struct db *d, const struct saved_view_sel *sel, struct arena *a, struct saved_view *k,
			  struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_kept_preferred, err, "tt", sel->shelf, sel->experiment);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	*k = read_kept_row(a, q);
	rc = permitted(d, db_i64(q, COL_kept_rows_experiment_id)) ? 0 : ERR_NOENT;
	db_stop(q);
	return rc;
}

int saved_view_preferred(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_view *ret,
			 struct err *err)
{
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = find_preferred(d, sel, a, ret, err);
	readers_give(s, d);
	return rc;
}

/* adds, edits and deletes saved views and reports, as kinds of changes. */

static int check_kept(const struct ingest_op *ingest, struct err *err)
{
	const struct saved_view_op *op = ingest->more;
	size_t most = strcmp(op->shelf, SAVED_VIEW_VIEW) ? LIMIT_report_bytes : LIMIT_view_bytes;
	int rc = op->name ? change_check_name(op->name, "its name", "name", err) : 0;

	if (rc || !op->text || (strlen(op->text) <= most && utf8_valid(op->text, strlen(op->text))))
		return rc;
	return err_set(err, ERR_USAGE, "the text of a %s must be at most %zu bytes of UTF-8", op->shelf, most);
}

static void copy_kept(struct change *c, const struct ingest_op *op)
{
	const struct saved_view_op *from = op->more;
	struct arena *a = c->in.arena;
	struct saved_view_op *to = arena_alloc(a, sizeof(*to));

	*to = *from;
	to->shelf = change_dup(a, from->shelf);
	to->experiment = change_dup(a, from->experiment);
	to->name = change_dup(a, from->name);
	to->text = change_dup(a, from->text);
	to->seen = change_dup(a, from->seen);
	to->editing = change_dup(a, from->editing);
	c->text_bytes += to->text ? strlen(to->text) : 0;
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

struct ingest_op saved_view_ingest(const struct saved_view_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .more = op };
}

/* 1: no other item of the experiment has the name, 0: refused, or negative. */
static int kept_name_is_free(struct state *st, struct change *c, int64_t experiment, int64_t own, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	int64_t id = own;
	int rc = db_int(state_db(st), &id, DB_kept_named, err, "tit", op->shelf, experiment, op->name);

	if (rc < 0)
		return rc;
	return id == own ? 1 : change_refuse(c, ERR_EXISTS, "the experiment already has a %s named '%.100s'", op->shelf,
					     op->name);
}

static int put_preferred(struct state *st, const struct saved_view_op *op, int64_t id, int64_t experiment,
			 struct err *err)
{
	if (op->preferred > 0)
		return db_run(state_db(st), DB_kept_prefer, err, "tii", op->shelf, experiment, id);
	return op->preferred ? 0 : db_run(state_db(st), DB_kept_unprefer, err, "i", id);
}

static void report_kept_id(struct change *c, int64_t id)
{
	snprintf(c->res.id, sizeof(c->res.id), "%" PRId64, id);
}

/* For the audit log: the item and its experiment. */
static int describe_kept(struct state *st, struct change *c, const char *name, int64_t experiment, struct err *err)
{
	const struct saved_view_op *op = c->op.more;

	c->about.object = op->shelf;
	c->about.id = c->res.id;
	c->about.name = name;
	return change_about_experiment(st, c, experiment, err);
}

/* Refuses a name that is taken and one more than an experiment may have. */
static int make_kept(struct state *st, struct change *c, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	int64_t experiment = 0, count = 0, id, now = clock_wall_ms();
	int rc = 1;

	if (op->experiment && *op->experiment)
		rc = db_int(state_db(st), &experiment, DB_experiment_by_name, err, "t", op->experiment);
	if (rc > 0)
		rc = change_may_write(st, c, experiment, err);
	if ((!rc && !c->res.code) || rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "there is no experiment '%.100s'",
				     op->experiment && *op->experiment ? op->experiment : "Default");
	if (rc > 0)
		rc = kept_name_is_free(st, c, experiment, 0, err);
	if (rc > 0)
		rc = db_int(state_db(st), &count, DB_kept_count, err, "ti", op->shelf, experiment);
	if (rc > 0 && count >= LIMIT_kept_per_experiment)
		return change_refuse(c, ERR_LIMIT, "the experiment has %d %ss, the maximum: delete one first",
				     LIMIT_kept_per_experiment, op->shelf);
	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), DB_kept_add, err, "titi", op->shelf, experiment, op->name, now);
	if (rc)
		return rc;
	id = db_last_id(state_db(st));
	report_kept_id(c, id);
	rc = describe_kept(st, c, op->name, experiment, err);
	if (!rc)
		rc = db_run(state_db(st), DB_kept_text_add, err, "iitit", id, INT64_C(1), op->text ? op->text : "", now,
			    op->editing ? op->editing : "");
	return rc ? rc : put_preferred(st, op, id, experiment, err);
}

struct kept_row {
	int64_t experiment, edition;
	const char *name;
};

/* 1: found, 0: refused, or negative. */
static int find_kept_for_change(struct state *st, struct change *c, struct kept_row *ret, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_kept_find, err, "ti", op->shelf, op->id);

	if (!rc)
		rc = db_next(state_db(st), q, err);
	if (rc > 0) {
		*ret = (struct kept_row){ db_i64(q, COL_kept_find_experiment_id), db_i64(q, COL_kept_find_edition),
					  db_text(c->in.arena, q, COL_kept_find_name) };
		db_stop(q);
		rc = change_may_write(st, c, ret->experiment, err);
	}
	if ((!rc && !c->res.code) || rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "there is no %s %" PRId64, op->shelf, op->id);
	if (rc <= 0)
		return rc;
	report_kept_id(c, op->id);
	rc = describe_kept(st, c, ret->name, ret->experiment, err);
	return rc ? rc : 1;
}

static int put_kept_text(struct state *st, const struct saved_view_op *op, int64_t edition, struct err *err)
{
	const char *editing = op->editing ? op->editing : "";
	int64_t now = clock_wall_ms();
	int rc = db_run(state_db(st), DB_kept_text_replace, err, "iit", op->id, edition - 1, editing);

	if (!rc)
		rc = db_run(state_db(st), DB_kept_text_add, err, "iitit", op->id, edition, op->text, now, editing);
	if (!rc)
		rc = db_run(state_db(st), DB_kept_edition_put, err, "iii", op->id, edition, now);
	return rc ? rc : db_run(state_db(st), DB_kept_text_trim, err, "ii", op->id, (int64_t)LIMIT_editions);
}

/* 1: the author of the change saw what is stored; 0 refused. */
static int saw_kept(struct state *st, struct change *c, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	const struct saved_view_sel sel = { .shelf = op->shelf, .id = op->id };
	struct saved_view k;
	int rc = find_kept(state_db(st), &sel, c->in.arena, &k, err);

	if (rc || etag_matches(op->seen, saved_view_hash(&k)))
		return rc ? rc : 1;
	change_refuse(c, ERR_EXISTS, "the %s has changed since it was read", op->shelf);
	err_field(&c->res.err, "If-Match");
	return 0;
}

static int edit_kept(struct state *st, struct change *c, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	struct kept_row was;
	int rc = find_kept_for_change(st, c, &was, err);

	if (rc > 0 && op->seen)
		rc = saw_kept(st, c, err);
	if (rc > 0 && op->name)
		rc = kept_name_is_free(st, c, was.experiment, op->id, err);
	if (rc <= 0)
		return rc;
	if (op->name && strcmp(op->name, was.name)) {
		c->about.action = "rename";
		c->about.name = op->name;
		c->about.detail = arena_printf(c->in.arena, "was %s", was.name);
	}
	rc = op->name ? db_run(state_db(st), DB_kept_name_put, err, "iti", op->id, op->name, clock_wall_ms()) : 0;
	if (!rc && op->text)
		rc = put_kept_text(st, op, was.edition + 1, err);
	return rc ? rc : put_preferred(st, op, op->id, was.experiment, err);
}

static int delete_kept(struct state *st, struct change *c, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	struct kept_row was;
	int rc = find_kept_for_change(st, c, &was, err);

	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), DB_kept_texts_delete, err, "i", op->id);
	return rc ? rc : db_run(state_db(st), DB_kept_delete, err, "i", op->id);
}

static int forget_edition(struct state *st, struct change *c, struct err *err)
{
	const struct saved_view_op *op = c->op.more;
	struct saved_view gone;
	struct kept_row was;
	int rc = find_kept_for_change(st, c, &was, err);

	if (rc <= 0)
		return rc;
	rc = find_kept(state_db(st),
		       &(struct saved_view_sel){ .shelf = op->shelf, .id = op->id, .edition = op->edition },
		       c->in.arena, &gone, err);
	if (rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "the %s has no edition %" PRId64, op->shelf, op->edition);
	if (rc)
		return rc;
	if (op->edition == was.edition)
		return change_refuse(c, ERR_EXISTS, "edition %" PRId64 " is the newest: it is replaced, not deleted",
				     op->edition);
	c->about.detail = arena_printf(c->in.arena, "edition %" PRId64, op->edition);
	return db_run(state_db(st), DB_kept_text_delete, err, "ii", op->id, op->edition);
}

const struct change_ops kept_change_new = { .name = "kept_new",
					    .judges = true,
					    .action = "create",
					    .check = check_kept,
					    .copy = copy_kept,
					    .apply = make_kept };
const struct change_ops kept_change_edit = { .name = "kept_edit",
					     .judges = true,
					     .action = "edit",
					     .check = check_kept,
					     .copy = copy_kept,
					     .apply = edit_kept };
const struct change_ops kept_change_delete = { .name = "kept_delete",
					       .judges = true,
					       .action = "delete",
					       .check = check_kept,
					       .copy = copy_kept,
					       .apply = delete_kept };
const struct change_ops kept_change_forget = { .name = "kept_forget",
					       .judges = true,
					       .action = "delete",
					       .check = check_kept,
					       .copy = copy_kept,
					       .apply = forget_edition };
