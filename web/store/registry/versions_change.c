/* versions_change.c: changes of versions of registered models, their stages and tags. */
#include <inttypes.h>
#include <stdio.h>

#include "tracker/base/clock.h"
#include "web/store/registry/registry_inside.h"

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

static int make_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	struct db *d = state_db(st);
	int64_t id, version, now = clock_wall_ms();
	int rc = registry_need(st, c, &id, err);

	if (rc > 0)
		rc = db_int(d, &version, DB_version_next, err, "i", id);
	if (rc <= 0)
		return rc;
	snprintf(c->res.id, sizeof c->res.id, "%" PRId64, version);
	rc = db_run(d, DB_version_add, err, "iittttti", id, version, op->text, op->source, op->location, op->run,
		    op->run_link, now);
	if (!rc)
		rc = db_run(d, DB_registered_touch, err, "ii", id, now);
	return rc ? rc : put_version_tags(st, id, version, op, err);
}

const struct change_ops registry_version_new = { .name = "registry_version_new",
						 .copy = registry_copy,
						 .apply = make_version };

static int describe_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_version_description_put, err, "iiti", id, op->version,
				     op->text, clock_wall_ms());
}

const struct change_ops registry_version_describe = { .name = "registry_version_describe",
						      .copy = registry_copy,
						      .apply = describe_version };

static int set_version_stage(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	struct db *d = state_db(st);
	int64_t id, now = clock_wall_ms();
	int rc = registry_need_version(st, c, &id, err);

	if (rc <= 0)
		return rc;
	rc = op->archive ? db_run(d, DB_versions_archive, err, "iiti", id, op->version, op->text, now) : 0;
	if (!rc)
		rc = db_run(d, DB_version_stage_put, err, "iiti", id, op->version, op->text, now);
	return rc ? rc : db_run(d, DB_registered_touch, err, "ii", id, now);
}

const struct change_ops registry_version_stage = { .name = "registry_version_stage",
						   .copy = registry_copy,
						   .apply = set_version_stage };

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

const struct change_ops registry_version_delete = { .name = "registry_version_delete",
						    .copy = registry_copy,
						    .apply = delete_version };

static int tag_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	return rc <= 0 ? rc : put_version_tags(st, id, op->version, op, err);
}

const struct change_ops registry_version_tag = { .name = "registry_version_tag",
						 .copy = registry_copy,
						 .apply = tag_version };

static int untag_version(struct state *st, struct change *c, struct err *err)
{
	const struct registry_op *op = c->op.more;
	int64_t id;
	int rc = registry_need_version(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_version_tag_delete, err, "iit", id, op->version, op->text);
}

const struct change_ops registry_version_untag = { .name = "registry_version_untag",
						   .copy = registry_copy,
						   .apply = untag_version };
