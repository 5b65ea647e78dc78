/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c: changes of registered models and versions. */
#include "web/store/registry/registered.h"

#include <inttypes.h>
#include <stdio.h>

#include "tracker/base/clock.h"
#include "web/store/write/change.h"

/* Copy of every kind: puts struct registry_op into c->op.more. */
static void registry_copy(struct change *c, const struct ingest_op *op)
{
	const struct registry_op *from = op->more;
	struct arena *a = c->in.arena;
	struct registry_op *to = arena_alloc(a, sizeof(*to));

	*to = *from;
	to->name = change_dup(a, from->name);
	to->text = change_dup(a, from->text);
	to->source = change_dup(a, from->source);
	to->location = change_dup(a, from->location);
	to->run = change_dup(a, from->run);
	to->run_link = change_dup(a, from->run_link);
	to->tags = change_dup_pairs(a, from->tags, from->tag_count);
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

struct ingest_op registry_op(const struct registry_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .more = op };
}

/* Finds the row of the registered model that c names. Whether the caller may change it, its name decides like that of
 * an experiment; of a version the experiment of its run does. 1: found, 0 refused, or negative. */
static int registry_need(struct state *st, struct change *c, int64_t *ret, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int rc = db_int(state_db(st), ret, DB_registered_id, err, "t", op->name);

	c->about.name = op->name;
	rc = rc > 0 ? change_may_write_name(c, op->name) : rc;
	if (rc && rc != ERR_NOENT)
		return rc;
	return c->res.code ? 0 : change_refuse(c, ERR_NOENT, "Registered Model with name=%.400s not found", op->name);
}

static int registry_need_version(struct state *st, struct change *c, int64_t *ret, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t experiment;
	int rc = db_int(state_db(st), ret, DB_version_model, err, "ti", op->name, op->version);

	c->about.name = op->name;
	c->about.id = arena_printf(c->in.arena, "%" PRId64, op->version);
	if (rc > 0 && c->grants) {
		rc = db_int(state_db(st), &experiment, DB_version_experiment, err, "ti", op->name, op->version);
		rc = rc > 0 ? change_may_write(st, c, experiment, err) : rc ? rc : change_may_write_name(c, op->name);
	}
	if (rc && rc != ERR_NOENT)
		return rc;
	return c->res.code ? 0
			   : change_refuse(c, ERR_NOENT, "Model Version (name=%.400s, version=%" PRId64 ") not found",
					   op->name, op->version);
}

/* --- models --------------------------------------------------------------------------------------------------- */

static int put_registered_tags(struct state *st, int64_t id, const struct registry_op *op, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_registered_tag_put, err, "itt", id, op->tags[i].key, op->tags[i].value);
	return rc;
}

/* 1: no other model has the name, 0 refused, or negative. */
static int registered_name_is_free(struct state *st, struct change *c, const char *name, int64_t own, struct err *err)
{
	int64_t id = own;
	int rc = db_int(state_db(st), &id, DB_registered_id, err, "t", name);

	if (rc < 0)
		return rc;
	return id == own ? 1 : change_refuse(c, ERR_EXISTS, "Registered Model (name=%.400s) already exists.", name);
}

static int make_registered(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int rc = change_may_create(c, op->name) ? 1 : change_refuse_name(c);

	if (rc > 0)
		rc = registered_name_is_free(st, c, op->name, 0, err);
	if (rc <= 0)
		return rc;
	c->about.name = op->name;
	rc = db_run(state_db(st), DB_registered_add, err, "tti", op->name, op->text ? op->text : "", clock_wall_ms());
	return rc ? rc : put_registered_tags(st, db_last_id(state_db(st)), op, err);
}

CHANGE_AUDITED(registry_model_new, registry_copy, make_registered, "create", "registered_model");

static int rename_registered(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id, now = clock_wall_ms();
	int rc = registry_need(st, c, &id, err);

	if (rc > 0 && !change_may_create(c, op->text))
		rc = change_refuse_name(c);
	if (rc > 0)
		rc = registered_name_is_free(st, c, op->text, id, err);
	if (rc <= 0)
		return rc;
	c->about.name = op->text;
	c->about.detail = arena_printf(c->in.arena, "was %s", op->name);
	rc = db_run(state_db(st), DB_registered_name_put, err, "iti", id, op->text, now);
	return rc ? rc : db_run(state_db(st), DB_versions_touch, err, "ii", id, now);
}

CHANGE_AUDITED(registry_model_rename, registry_copy, rename_registered, "rename", "registered_model");

static int describe_registered(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need(st, c, &id, err);

	return rc <= 0 ? rc
		       : db_run(state_db(st), DB_registered_description_put, err, "iti", id, op->text, clock_wall_ms());
}

CHANGE_AUDITED(registry_model_describe, registry_copy, describe_registered, "edit", "registered_model");

static int delete_registered(struct state *st, struct change *c, struct err *err)
{
	static const enum db_query tables[] = { DB_registered_tags_delete, DB_registered_aliases_delete,
						DB_versions_delete, DB_version_tags_delete, DB_registered_delete };
	int64_t id;
	int rc = registry_need(st, c, &id, err);
	size_t i;

	if (rc <= 0)
		return rc;
	for (i = 0, rc = 0; i < sizeof(tables) / sizeof(tables[0]) && !rc; i++)
		rc = db_run(state_db(st), tables[i], err, "i", id);
	return rc;
}

CHANGE_AUDITED(registry_model_delete, registry_copy, delete_registered, "delete", "registered_model");

static int tag_registered(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need(st, c, &id, err);

	c->about.detail = change_keys(c->in.arena, op->tags, op->tag_count);
	return rc <= 0 ? rc : put_registered_tags(st, id, c->op.more, err);
}

CHANGE_AUDITED(registry_model_tag, registry_copy, tag_registered, "tag", "registered_model");

/* Deletes the row named by the text of the operation. */
static int drop_registered_row(struct state *st, struct change *c, enum db_query which, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need(st, c, &id, err);

	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), which, err, "it", id, op->text);
	c->about.detail = op->text;
	if (!db_changed(state_db(st)))
		c->about.action = NULL;
	return rc;
}

static int untag_registered(struct state *st, struct change *c, struct err *err)
{
	return drop_registered_row(st, c, DB_registered_tag_delete, err);
}

CHANGE_AUDITED(registry_model_untag, registry_copy, untag_registered, "untag", "registered_model");

static int set_alias(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	c->about.detail = op->text;
	return rc <= 0 ? rc : db_run(state_db(st), DB_registered_alias_put, err, "iti", id, op->text, op->version);
}

CHANGE_AUDITED(registry_alias, registry_copy, set_alias, "alias", "model_version");

static int drop_alias(struct state *st, struct change *c, struct err *err)
{
	return drop_registered_row(st, c, DB_registered_alias_delete, err);
}

CHANGE_AUDITED(registry_unalias, registry_copy, drop_alias, "unalias", "registered_model");

/* --- versions ------------------------------------------------------------------------------------------------- */

static int put_version_tags(struct state *st, int64_t id, int64_t version, const struct registry_op *op,
			    struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_version_tag_put, err, "iitt", id, version, op->tags[i].key,
			    op->tags[i].value);
	return rc;
}

/* A restricted caller's version needs a run that it may write: else it could not see its own version. */
static int need_version_run(struct state *st, struct change *c, const char *run, struct err *err)
{
	int64_t experiment;
	int rc = db_int(state_db(st), &experiment, DB_run_experiment, err, "t", run);

	rc = rc > 0 ? change_may_write(st, c, experiment, err) : rc;
	if (rc && rc != ERR_NOENT)
		return rc;
	return c->res.code ? 0 : change_refuse(c, ERR_NOENT, "Run with id=%.40s not found", run);
}

static int make_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	struct db *d = state_db(st);
	int64_t id, version, now = clock_wall_ms();
	int rc = registry_need(st, c, &id, err);

	if (rc > 0 && c->grants && op->run && *op->run)
		rc = need_version_run(st, c, op->run, err);
	if (rc > 0)
		rc = db_int(d, &version, DB_version_next, err, "i", id);
	if (rc <= 0)
		return rc;
	snprintf(c->res.id, sizeof(c->res.id), "%" PRId64, version);
	c->about.id = c->res.id;
	rc = db_run(d, DB_version_add, err, "iittttti", id, version, op->text, op->source, op->location, op->run,
		    op->run_link, now);
	if (!rc)
		rc = db_run(d, DB_registered_touch, err, "ii", id, now);
	return rc ? rc : put_version_tags(st, id, version, op, err);
}

CHANGE_AUDITED(registry_version_new, registry_copy, make_version, "create", "model_version");

static int describe_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_version_description_put, err, "iiti", id, op->version,
				     op->text, clock_wall_ms());
}

CHANGE_AUDITED(registry_version_describe, registry_copy, describe_version, "edit", "model_version");

static int set_version_stage(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	struct db *d = state_db(st);
	int64_t id, now = clock_wall_ms();
	int rc = registry_need_version(st, c, &id, err);

	if (rc > 0 && op->archive) /* changes other versions, too */
		rc = registry_need(st, c, &id, err);
	if (rc <= 0)
		return rc;
	c->about.detail = op->text;
	rc = op->archive ? db_run(d, DB_versions_archive, err, "iiti", id, op->version, op->text, now) : 0;
	if (!rc)
		rc = db_run(d, DB_version_stage_put, err, "iiti", id, op->version, op->text, now);
	return rc ? rc : db_run(d, DB_registered_touch, err, "ii", id, now);
}

CHANGE_AUDITED(registry_version_stage, registry_copy, set_version_stage, "stage", "model_version");

static int delete_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	struct db *d = state_db(st);
	int64_t id, now = clock_wall_ms();
	int rc = registry_need_version(st, c, &id, err);

	if (rc <= 0)
		return rc;
	rc = db_run(d, DB_version_aliases_delete, err, "ii", id, op->version);
	if (!rc)
		rc = db_run(d, DB_version_delete, err, "iii", id, op->version, now);
	return rc ? rc : db_run(d, DB_registered_touch, err, "ii", id, now);
}

CHANGE_AUDITED(registry_version_delete, registry_copy, delete_version, "delete", "model_version");

static int tag_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	c->about.detail = change_keys(c->in.arena, op->tags, op->tag_count);
	return rc <= 0 ? rc : put_version_tags(st, id, op->version, op, err);
}

CHANGE_AUDITED(registry_version_tag, registry_copy, tag_version, "tag", "model_version");

static int untag_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), DB_version_tag_delete, err, "iit", id, op->version, op->text);
	c->about.detail = op->text;
	if (!db_changed(state_db(st)))
		c->about.action = NULL;
	return rc;
}

CHANGE_AUDITED(registry_version_untag, registry_copy, untag_version, "untag", "model_version");
