/* object_change.c: rows of objects that begin or are removed, and of their place, as kinds of changes. Makes no
 * request. */
#include "tracker/base/clock.h"
#include "web/store/files/artifacts.h"
#include "web/store/write/change.h"

static int begin_object(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_object_begin, err, "ti", c->op.name, clock_wall_ms());
}

static int doom_object(struct state *st, struct change *c, struct err *err)
{
	int64_t one;
	int rc = db_int(state_db(st), &one, DB_object_doom, err, "t", c->op.name);

	return rc ? (rc < 0 ? rc : 0) : change_refuse(c, ERR_NOENT, "a file uses the object");
}

static int forget_object(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_object_forget, err, "t", c->op.name);
}

static int place_object(struct state *st, struct change *c, struct err *err)
{
	return db_run(state_db(st), DB_artifacts_place_put, err, "t", c->op.name);
}

const struct change_ops object_change_begin = { .name = "object_begin", .never_waits = true, .apply = begin_object };
const struct change_ops object_change_doom = { .name = "object_doom", .apply = doom_object };
const struct change_ops object_change_forget = { .name = "object_forget", .apply = forget_object };
const struct change_ops object_change_place = { .name = "artifacts_place", .apply = place_object };
