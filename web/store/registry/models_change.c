/* models_change.c: changes of registered models, their tags and aliases. */
#include "tracker/base/clock.h"
#include "web/store/registry/registry_inside.h"

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
	int rc = registered_name_is_free(st, c, op->name, 0, err);

	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), DB_registered_add, err, "tti", op->name, op->text ? op->text : "", clock_wall_ms());
	return rc ? rc : put_registered_tags(st, db_last_id(state_db(st)), op, err);
}

const struct change_ops registry_model_new = { .name = "registry_model_new",
					       .copy = registry_copy,
					       .apply = make_registered };

static int rename_registered(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id, now = clock_wall_ms();
	int rc = registry_need(st, c, &id, err);

	if (rc > 0)
		rc = registered_name_is_free(st, c, op->text, id, err);
	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), DB_registered_name_put, err, "iti", id, op->text, now);
	return rc ? rc : db_run(state_db(st), DB_versions_touch, err, "ii", id, now);
}

const struct change_ops registry_model_rename = { .name = "registry_model_rename",
						  .copy = registry_copy,
						  .apply = rename_registered };

static int describe_registered(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_registered_description_put, err, "iti", id, op->text,
				     clock_wall_ms());
}

const struct change_ops registry_model_describe = { .name = "registry_model_describe",
						    .copy = registry_copy,
						    .apply = describe_registered };

static int delete_registered(struct state *st, struct change *c, struct err *err)
{
	static const enum db_query tables[] = { DB_registered_tags_delete, DB_registered_aliases_delete,
						DB_versions_delete, DB_version_tags_delete,
						DB_registered_delete };
	int64_t id;
	int rc = registry_need(st, c, &id, err);
	size_t i;

	if (rc <= 0)
		return rc;
	for (i = 0, rc = 0; i < sizeof tables / sizeof tables[0] && !rc; i++)
		rc = db_run(state_db(st), tables[i], err, "i", id);
	return rc;
}

const struct change_ops registry_model_delete = { .name = "registry_model_delete",
						  .copy = registry_copy,
						  .apply = delete_registered };

static int tag_registered(struct state *st, struct change *c, struct err *err)
{
	int64_t id;
	int rc = registry_need(st, c, &id, err);

	return rc <= 0 ? rc : put_registered_tags(st, id, c->op.more, err);
}

const struct change_ops registry_model_tag = { .name = "registry_model_tag",
					       .copy = registry_copy,
					       .apply = tag_registered };

/* Deletes the row named by the text of the operation. */
static int drop_registered_row(struct state *st, struct change *c, enum db_query which, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), which, err, "it", id, op->text);
}

static int untag_registered(struct state *st, struct change *c, struct err *err)
{
	return drop_registered_row(st, c, DB_registered_tag_delete, err);
}

const struct change_ops registry_model_untag = { .name = "registry_model_untag",
						 .copy = registry_copy,
						 .apply = untag_registered };

static int set_alias(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_registered_alias_put, err, "iti", id, op->text, op->version);
}

const struct change_ops registry_alias = { .name = "registry_alias", .copy = registry_copy, .apply = set_alias };

static int drop_alias(struct state *st, struct change *c, struct err *err)
{
	return drop_registered_row(st, c, DB_registered_alias_delete, err);
}

const struct change_ops registry_unalias = { .name = "registry_unalias", .copy = registry_copy, .apply = drop_alias };
