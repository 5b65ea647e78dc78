/* SPDX-License-Identifier: Apache-2.0 */
/* token_change.c: creates, revokes and deletes tokens and sessions, as kinds of changes. Knows hashes, never the text
 * of a token. */
#include "tracker/base/clock.h"
#include "web/store/auth/token.h"
#include "web/store/write/change.h"

static int check_token(const struct ingest_op *op, struct err *err)
{
	const struct token_new *t = op->more;

	return change_check_name(t->name ? t->name : "", "the token's name", "name", err);
}

static void copy_token(struct change *c, const struct ingest_op *op)
{
	const struct token_new *from = op->more;
	struct token_new *t = arena_alloc(c->in.arena, sizeof(*t));

	*t = *from;
	t->name = change_dup(c->in.arena, from->name);
	t->hash = change_dup(c->in.arena, from->hash);
	c->op = (struct ingest_op){ .kind = op->kind, .more = t };
}

int token_tell(struct db *d, struct err *err)
{
	int rc = db_run(d, DB_token_count_up, err, "");

	/* the notification holds up other commits, but is rare */
	return rc ? rc : db_run(d, DB_live_tell, err, "");
}

static int count_token_change(struct state *st, struct err *err)
{
	return token_tell(state_db(st), err);
}

static int put_token(struct state *st, struct change *c, struct err *err)
{
	const struct token_new *t = c->op.more;
	int64_t there;
	int rc = db_int(state_db(st), &there, DB_token_in_force, err, "t", t->name);

	if (rc > 0)
		return change_refuse(c, ERR_EXISTS, "there is already a token named '%.100s': revoke it or choose "
				     "another name", t->name);
	if (!rc)
		rc = db_run(state_db(st), DB_token_put, err, "ttiix", t->name, t->hash, (int64_t)t->scope,
			    clock_wall_ms(), t->expires_ms);
	return rc ? rc : count_token_change(st, err);
}

static int revoke_token(struct state *st, struct change *c, struct err *err)
{
	const char *name = c->op.name;
	int64_t there;
	int rc;

	if (!name) {
		rc = db_run(state_db(st), DB_token_clear, err, "");
		return rc ? rc : count_token_change(st, err);
	}
	rc = db_int(state_db(st), &there, DB_token_in_force, err, "t", name);
	if (!rc)
		return change_refuse(c, ERR_NOENT, "there is no token '%.100s' to revoke", name);
	if (rc > 0)
		rc = db_run(state_db(st), DB_token_revoke, err, "ti", name, clock_wall_ms());
	return rc ? rc : count_token_change(st, err);
}

const struct change_ops token_change_new = {
	.name = "token_new", .check = check_token, .copy = copy_token, .apply = put_token, .settled = token_changed
};
const struct change_ops token_change_revoke = { .name = "token_revoke",
						.apply = revoke_token,
						.settled = token_changed };

/* --- sessions of the page ------------------------------------------------------------------------------------- */

static void copy_session(struct change *c, const struct ingest_op *op)
{
	struct session_new *row = arena_alloc(c->in.arena, sizeof(*row));

	*row = *(const struct session_new *)op->more;
	c->op = (struct ingest_op){ .kind = op->kind, .more = row };
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
