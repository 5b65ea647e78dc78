/* session_change.c: begins and ends sessions of the page, as kinds of changes. Knows hashes, never the text of a
 * cookie. */
#include "tracker/base/clock.h"
#include "web/store/auth/token.h"
#include "web/store/base/no_memory.h"
#include "web/store/write/change.h"

static int copy_session(struct change *c, const struct ingest_op *op, struct err *err)
{
	struct session_new *row = arena_alloc(c->in.arena, sizeof *row);

	if (!row)
		return no_memory(err);
	*row = *(const struct session_new *)op->more;
	c->op = (struct ingest_op){ .kind = op->kind, .more = row };
	return 0;
}

/* Also deletes expired sessions. */
static int put_session(struct state *st, struct change *c, struct err *err)
{
	const struct session_new *row = c->op.more;
	int rc = db_run(state_db(st), DB_session_expire, err, "i", clock_wall_ms());

	return rc ? rc : db_run(state_db(st), DB_session_put, err, "tti", row->hash, row->token, row->until_ms);
}

/* Other processes are notified as of a token change, so they drop cached sessions. */
static int end_session(struct state *st, struct change *c, struct err *err)
{
	struct db *d = state_db(st);
	int rc = db_run(d, DB_session_end, err, "t", c->op.name);

	return rc ? rc : token_tell(d, err);
}

const struct change_ops session_change_new = { .name = "session_new", .copy = copy_session, .apply = put_session };
const struct change_ops session_change_end = { .name = "session_end", .apply = end_session, .settled = token_changed };
