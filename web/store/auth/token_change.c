/* SPDX-License-Identifier: Apache-2.0 */
/* token_change.c: creates, revokes and deletes tokens and sessions, as kinds of changes. Knows hashes, never the text
 * of a token. */
#include "tracker/base/clock.h"
#include "web/store/auth/token.h"
#include "web/store/write/change.h"

static int check_token(const struct ingest_op *op, struct err *err)
{
	const struct token_new *t = op->more;
	int rc = change_check_name(t->name ? t->name : "", "the token's name", "name", err);

	if (!rc && *t->person)
		rc = change_check_name(t->person, "the person's name", "person", err);
	if (!rc && *t->grants && (rc = token_grants_check(t->grants, t->scope, err)))
		err_field(err, "experiments");
	return rc;
}

static void copy_token(struct change *c, const struct ingest_op *op)
{
	const struct token_new *from = op->more;
	struct token_new *t = arena_alloc(c->in.arena, sizeof(*t));

	*t = *from;
	t->name = change_dup(c->in.arena, from->name);
	t->hash = change_dup(c->in.arena, from->hash);
	t->person = change_dup(c->in.arena, from->person);
	t->grants = change_dup(c->in.arena, from->grants);
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

/* 1: the experiments that grants name are there; 0 refused. A prefix may be of future ones. */
static int need_granted(struct state *st, struct change *c, const char *text, struct err *err)
{
	struct grants g = { 0 };
	int64_t id;
	size_t i;
	int rc = *text ? grants_parse(&g, c->in.arena, text, err) : 0;

	for (i = 0; i < g.count && rc >= 0; i++) {
		if (g.items[i].prefix)
			continue;
		rc = db_int(state_db(st), &id, DB_experiment_by_name, err, "t", g.items[i].name);
		if (rc)
			continue;
		change_refuse(c, ERR_USAGE,
			      "experiments: there is no experiment '%.100s': create it first, or grant a "
			      "prefix that ends with a star",
			      g.items[i].name);
		err_field(&c->res.err, "experiments");
		return 0;
	}
	return rc < 0 ? rc : 1;
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
		rc = need_granted(st, c, t->grants, err);
	if (rc <= 0)
		return rc;
	rc = db_run(state_db(st), DB_token_put, err, "ttiixtt", t->name, t->hash, (int64_t)t->scope, clock_wall_ms(),
		    t->expires_ms, t->person, t->grants);
	c->about.name = t->name;
	c->about.detail = arena_printf(c->in.arena, "%s, of %s%s%s", token_scope_name(t->scope),
				       *t->person ? t->person : t->name, *t->grants ? ", experiments " : "", t->grants);
	return rc ? rc : count_token_change(st, err);
}

static void copy_revocation(struct change *c, const struct ingest_op *op)
{
	struct token_revoke *to = arena_alloc(c->in.arena, sizeof(*to));

	*to = *(const struct token_revoke *)op->more;
	to->name = change_dup(c->in.arena, to->name);
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

/* Revokes a token, or deletes all of them. */
static int revoke_token(struct state *st, struct change *c, struct err *err)
{
	const struct token_revoke *r = c->op.more;
	const char *name = r->name;
	int64_t there;
	int rc;

	c->about.name = name;
	if (!name) {
		c->about.detail = "all tokens";
		rc = db_run(state_db(st), DB_token_clear, err, "");
		return rc ? rc : count_token_change(st, err);
	}
	rc = db_int(state_db(st), &there, DB_token_in_force, err, "t", name);
	if (!rc)
		return change_refuse(c, ERR_NOENT, "there is no token '%.100s' to revoke", name);
	if (rc > 0 && r->keep_admin) {
		rc = db_int(state_db(st), &there, DB_token_last_admin, err, "ti", name, clock_wall_ms());
		if (rc > 0)
			return change_refuse(c, ERR_EXISTS,
					     "'%.100s' is the last admin: add another one first, or revoke "
					     "it on the server's machine",
					     name);
	}
	if (rc >= 0)
		rc = db_run(state_db(st), DB_token_revoke, err, "ti", name, clock_wall_ms());
	return rc ? rc : count_token_change(st, err);
}

const struct change_ops token_change_new = { .name = "token_new",
					     .action = "create",
					     .object = "token",
					     .check = check_token,
					     .copy = copy_token,
					     .apply = put_token,
					     .settled = token_changed };
const struct change_ops token_change_revoke = { .name = "token_revoke",
						.action = "revoke",
						.object = "token",
						.copy = copy_revocation,
						.apply = revoke_token,
						.settled = token_changed };

/* --- sessions of the page ------------------------------------------------------------------------------------- */

static void copy_session(struct change *c, const struct ingest_op *op)
{
	struct session_new *row = arena_alloc(c->in.arena, sizeof(*row));

	*row = *(const struct session_new *)op->more;
	c->op = (struct ingest_op){ .kind = op->kind, .more = row };
}

int token_describe_session(struct state *st, struct change *c, const char *hash, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_session_token, err, "t", hash);

	while (rc >= 0 && (rc = db_next(state_db(st), q, err)) > 0)
		c->about.author = db_text(c->in.arena, q, COL_session_token_name);
	c->author.via = c->about.author && *c->about.author ? "token" : "environment";
	c->about.action = c->about.author ? c->about.action : NULL;
	return rc;
}

/* Also deletes expired sessions. */
static int put_session(struct state *st, struct change *c, struct err *err)
{
	const struct session_new *row = c->op.more;
	int rc = db_run(state_db(st), DB_session_expire, err, "i", clock_wall_ms());

	if (!rc)
		rc = db_run(state_db(st), DB_session_put, err, "tti", row->hash, row->token, row->until_ms);
	if (!rc)
		rc = db_run(state_db(st), DB_share_used, err, "ti", row->token, clock_wall_ms());
	return rc ? rc : token_describe_session(st, c, row->hash, err);
}

/* Other processes are notified as of a token change, so they drop cached sessions. */
static int end_session(struct state *st, struct change *c, struct err *err)
{
	struct db *d = state_db(st);
	int rc = token_describe_session(st, c, c->op.name, err);

	if (!rc)
		rc = db_run(d, DB_session_end, err, "t", c->op.name);
	return rc ? rc : token_tell(d, err);
}

const struct change_ops session_change_new = {
	.name = "session_new", .action = "sign_in", .object = "session", .copy = copy_session, .apply = put_session
};
const struct change_ops session_change_end = { .name = "session_end",
					       .judges = true,
					       .action = "sign_out",
					       .object = "session",
					       .apply = end_session,
					       .settled = token_changed };
