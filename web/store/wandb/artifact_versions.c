/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_versions.c: reads and changes versions of W&B's artifacts. */
#include "web/store/wandb/artifact_versions.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "web/store/db/db.h"
#include "web/store/write/change.h"

/* --- changes ---------------------------------------------------------------------------------------------------- */

static void copy_version_op(struct change *c, const struct ingest_op *op)
{
	const struct artifact_version_op *from = op->more;
	struct artifact_version_op *to = arena_alloc(c->in.arena, sizeof(*to));
	struct arena *a = c->in.arena;

	*to = *from;
	to->collection = change_dup(a, from->collection);
	to->type = change_dup(a, from->type);
	to->digest = change_dup(a, from->digest);
	to->client = change_dup(a, from->client);
	to->run = change_dup(a, from->run);
	to->said = change_dup(a, from->said);
	to->pairs = change_dup_pairs(a, from->pairs, from->pair_count);
	to->files.items = arena_array(a, from->files.count + 1, sizeof(*to->files.items));
	for (size_t i = 0; i < from->files.count; i++) {
		to->files.items[i] = from->files.items[i];
		to->files.items[i].name = change_dup(a, from->files.items[i].name);
		to->files.items[i].md5 = change_dup(a, from->files.items[i].md5);
	}
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

static int put_aliases(struct db *d, const struct artifact_version_op *op, int64_t id, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < op->pair_count && !rc; i++)
		rc = db_run(d, *op->pairs[i].value == '-' ? DB_wandb_alias_drop : DB_wandb_alias_put, err, "it", id,
			    op->pairs[i].key);
	return rc;
}

/* The version that a repeated request or an equal content finds: 1 found, 0 none, negative: failed. */
static int find_same_version(struct db *d, const struct artifact_version_op *op, struct change *c, int64_t *ret,
			     struct err *err)
{
	int rc = op->shared ? db_int(d, ret, DB_wandb_pending, err, "itt", op->experiment, op->collection, op->client)
		 : *op->client ? db_int(d, ret, DB_wandb_by_client, err, "t", op->client)
			       : 0;

	if (rc || op->shared)
		return rc;
	rc = db_int(d, ret, DB_wandb_same, err, "itt", op->experiment, op->collection, op->digest);
	c->res.existed = rc > 0;
	if (rc <= 0)
		return rc;
	rc = put_aliases(d, op, *ret, err);
	if (!rc && op->run && *op->run) /* its files stay while one of their runs is kept */
		rc = db_run(d, DB_wandb_logged_again, err, "ti", op->run, *ret);
	return rc ? rc : 1;
}

static int create_version(struct db *d, const struct artifact_version_op *op, struct change *c, struct err *err)
{
	int64_t id, last;
	int rc = find_same_version(d, op, c, &id, err);

	if (!rc) {
		rc = db_int(d, &last, DB_wandb_last_version, err, "it", op->experiment, op->collection);
		rc = rc < 0 ? rc
			    : db_run(d, DB_wandb_add, err, "itittttit", op->experiment, op->collection, last + 1,
				     op->type, op->digest, op->client, op->run, clock_wall_ms(), op->said);
		if (!rc)
			id = db_last_id(d);
	}
	if (rc >= 0)
		snprintf(c->res.id, sizeof(c->res.id), "%lld", (long long)id);
	return rc < 0 ? rc : 0;
}

static int commit_version(struct db *d, const struct artifact_version_op *op, struct err *err)
{
	int rc = db_run(d, DB_wandb_state_put, err, "ii", op->id, (int64_t)ARTIFACT_COMMITTED);

	if (!rc && op->digest)
		rc = db_run(d, DB_wandb_digest_put, err, "it", op->id, op->digest);
	for (size_t i = 0; i < op->files.count && !rc; i++) {
		const struct artifact_version_file *f = &op->files.items[i];

		rc = db_run(d, DB_wandb_file_put, err, "ittii", op->id, f->name, f->md5, f->bytes, f->born);
	}
	return rc ? rc : put_aliases(d, op, op->id, err);
}

static int remove_version(struct db *d, const struct artifact_version_op *op, struct change *c, struct err *err)
{
	int64_t one;
	int rc = op->aliased ? 0 : db_int(d, &one, DB_wandb_aliased, err, "i", op->id);

	if (rc > 0)
		return change_refuse(c, ERR_EXISTS,
				     "the version has aliases: delete them with it (delete_aliases=True)");
	rc = rc ? rc : db_run(d, DB_wandb_aliases_drop, err, "i", op->id);
	return rc ? rc : db_run(d, DB_wandb_state_put, err, "ii", op->id, (int64_t)ARTIFACT_DELETED);
}

/* Whether the caller may write to the version's experiment, and to the run that uses it: 1, 0 refused, or negative. */
static int may_change(struct state *st, struct change *c, int64_t experiment, struct err *err)
{
	const struct artifact_version_op *op = c->op.more;
	struct state_run *r;
	int rc;

	if (op->what == ARTIFACT_USE && (rc = state_run(st, op->run, &r, err)))
		return rc == ERR_NOENT || rc == ERR_GONE ? 0 : rc;
	rc = change_may_write(st, c, op->what == ARTIFACT_USE ? r->experiment_id : experiment, err);
	return rc == ERR_NOENT ? 0 : rc;
}

/* For the audit log: a version is there once it is committed; its files and uses are recorded data. */
static int describe_version_op(struct state *st, struct change *c, int64_t experiment, struct err *err)
{
	const struct artifact_version_op *op = c->op.more;
	struct db_rows *q;
	int rc;

	c->about.action = op->what == ARTIFACT_COMMIT	? "create"
			  : op->what == ARTIFACT_ALIAS	? "alias"
			  : op->what == ARTIFACT_UPDATE ? "edit"
			  : op->what == ARTIFACT_REMOVE ? "delete"
							: NULL;
	if (!c->about.action)
		return 0;
	c->about.object = "artifact_version";
	c->about.id = c->res.id;
	c->about.detail = change_keys(c->in.arena, op->pairs, op->pair_count);
	rc = db_start(state_db(st), &q, DB_wandb_by_id, err, "i", op->id);
	while (rc >= 0 && (rc = db_next(state_db(st), q, err)) > 0)
		c->about.name = arena_printf(c->in.arena, "%s:v%lld", db_str(q, COL_wandb_by_id_collection),
					     (long long)db_i64(q, COL_wandb_by_id_version));
	return rc ? rc : change_about_experiment(st, c, experiment, err);
}

/* Applies one change of a version, which must exist unless it is created. */
static int apply_version_op(struct state *st, struct change *c, struct err *err)
{
	const struct artifact_version_op *op = c->op.more;
	struct db *d = state_db(st);
	int64_t experiment = op->experiment;
	int rc = op->what == ARTIFACT_CREATE ? 1 : db_int(d, &experiment, DB_wandb_experiment, err, "i", op->id);

	rc = rc > 0 ? may_change(st, c, experiment, err) : rc;
	if (!rc && !c->res.code)
		return change_refuse(c, ERR_NOENT, "there is no artifact %lld", (long long)op->id);
	if (rc <= 0)
		return rc;
	if (op->what == ARTIFACT_CREATE)
		return create_version(d, op, c, err);
	snprintf(c->res.id, sizeof(c->res.id), "%lld", (long long)op->id);
	rc = describe_version_op(st, c, experiment, err);
	if (rc)
		return rc;
	switch (op->what) {
	case ARTIFACT_COMMIT:
		return commit_version(d, op, err);
	case ARTIFACT_RUN:
		return db_run(d, DB_wandb_run_put, err, "it", op->id, op->run);
	case ARTIFACT_ALIAS:
		return put_aliases(d, op, op->id, err);
	case ARTIFACT_UPDATE:
		rc = db_run(d, DB_wandb_said_put, err, "it", op->id, op->said);
		return rc ? rc : put_aliases(d, op, op->id, err);
	case ARTIFACT_USE:
		return db_run(d, DB_wandb_use_add, err, "ti", op->run, op->id);
	default:
		return remove_version(d, op, c, err);
	}
}

CHANGE_KIND(artifact_version_change, copy_version_op, apply_version_op);

struct ingest_op artifact_version_op(const struct artifact_version_op *op)
{
	return (struct ingest_op){ .kind = &artifact_version_change, .more = op };
}

/* --- reads ------------------------------------------------------------------------------------------------------ */

static int start_versions(struct db *d, const struct artifact_version_sel *s, struct db_rows **q, struct err *err)
{
	switch (s->by) {
	case ARTIFACT_BY_ID:
		return db_start(d, q, DB_wandb_by_id, err, "i", s->id);
	case ARTIFACT_BY_CLIENT:
		return db_start(d, q, DB_wandb_by_client, err, "t", s->text);
	case ARTIFACT_BY_VERSION:
		return db_start(d, q, DB_wandb_by_version, err, "iti", s->experiment, s->text, s->id);
	case ARTIFACT_BY_ALIAS:
		return db_start(d, q, DB_wandb_by_alias, err, "itt", s->experiment, s->text, s->alias);
	case ARTIFACT_OF_COLLECTION:
		return db_start(d, q, DB_wandb_of_collection, err, "it", s->experiment, s->text);
	case ARTIFACT_OF_EXPERIMENT:
		return db_start(d, q, DB_wandb_of_experiment, err, "i", s->experiment);
	default:
		return db_start(d, q, s->by == ARTIFACT_MADE_BY ? DB_wandb_made_by : DB_wandb_used_by, err, "t",
				s->text);
	}
}

int artifact_versions(struct store *s, const struct artifact_version_sel *sel, struct arena *a,
		      struct artifact_versions *ret, struct err *err)
{
	struct artifact_versions list = { 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = start_versions(d, sel, &q, err);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (permitted(d, db_i64(q, COL_wandb_by_id_experiment_id)))
			list_push(a, &list.items, &list.count,
			  (struct artifact_version){
				  .id = db_i64(q, COL_wandb_by_id_id),
				  .experiment = db_i64(q, COL_wandb_by_id_experiment_id),
				  .version = db_i64(q, COL_wandb_by_id_version),
				  .created_ms = db_i64(q, COL_wandb_by_id_created_ms),
				  .collection = db_text(a, q, COL_wandb_by_id_collection),
				  .type = db_text(a, q, COL_wandb_by_id_type),
				  .digest = db_text(a, q, COL_wandb_by_id_digest),
				  .client = db_text(a, q, COL_wandb_by_id_client),
				  .run = db_text(a, q, COL_wandb_by_id_run),
				  .said = db_text(a, q, COL_wandb_by_id_said),
				  .state = (enum artifact_version_state)db_i32(q, COL_wandb_by_id_state) });
	readers_give(s, d);
	*ret = list;
	return rc;
}

int artifact_version_pairs(struct store *s, const struct artifact_version_part *part, struct arena *a,
			   struct query_kvs *ret, struct err *err)
{
	struct query_kvs pairs = { 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	if (part->what == ARTIFACT_ALIASES)
		rc = db_start(d, &q, DB_wandb_aliases, err, "it", part->of->experiment, part->of->collection);
	else
		rc = db_start(d, &q, DB_wandb_users, err, "i", part->of->id);
	rc = rc ? rc : query_pairs_read(d, q, a, &pairs, err);
	readers_give(s, d);
	*ret = pairs;
	return rc;
}

int artifact_version_files(struct store *s, int64_t id, struct arena *a, struct artifact_version_files *ret,
			   struct err *err)
{
	struct artifact_version_files list = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t experiment;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_int(d, &experiment, DB_wandb_experiment, err, "i", id);
	if (rc > 0 && permitted(d, experiment)) {
		rc = db_start(d, &q, DB_wandb_files, err, "i", id);
		while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
			list_push(a, &list.items, &list.count,
				  (struct artifact_version_file){ .name = db_text(a, q, COL_wandb_files_name),
								  .md5 = db_text(a, q, COL_wandb_files_md5),
								  .bytes = db_i64(q, COL_wandb_files_bytes),
								  .born = db_i64(q, COL_wandb_files_born) });
	}
	readers_give(s, d);
	*ret = list;
	return rc < 0 ? rc : 0;
}
