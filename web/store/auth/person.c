/* SPDX-License-Identifier: Apache-2.0 */
/* person.c: sign-ins by a provider and tokens that a session confirms, as kinds of changes. */
#include "web/store/auth/person.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/base/parts.h"
#include "web/store/write/change.h"

/* Programs of one person; each request compares its token with all rows. */
enum { CHILDREN_MAX = 100 };

int person_session(struct person_sign_in *s, char ret[TOKEN_TEXT_MAX], struct err *err)
{
	s->session = (struct session_new){ .until_ms = clock_wall_ms() + TOKEN_SESSION_MS };
	return token_draw(ret, s->session.hash, err);
}

int person_of_session(struct store *s, const char *hash, struct arena *a, const char **ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(store_whole(s), &d, err);

	if (rc)
		return rc;
	*ret = NULL;
	rc = db_start(d, &q, DB_session_owner, err, "t", hash);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		*ret = db_text(a, q, COL_session_owner_name);
	readers_give(s, d);
	return rc;
}

static int check_sign_in(const struct ingest_op *op, struct err *err)
{
	const struct person_sign_in *p = op->more;

	return change_check_name(p->name, "the person's name", "name", err);
}

static void copy_sign_in(struct change *c, const struct ingest_op *op)
{
	const struct person_sign_in *from = op->more;
	struct person_sign_in *p = arena_alloc(c->in.arena, sizeof(*p));

	*p = *from;
	p->name = change_dup(c->in.arena, from->name);
	p->issuer = change_dup(c->in.arena, from->issuer);
	p->subject = change_dup(c->in.arena, from->subject);
	p->grants = change_dup(c->in.arena, from->grants);
	c->op = (struct ingest_op){ .kind = op->kind, .more = p };
}

struct person_row {
	char hash[TOKEN_HASH_MAX];
	bool same, revoked; /* same: as granted now */
};

/* 1: found, 0: a new person, negative: failed. */
static int read_person(struct db *d, const struct person_sign_in *p, struct person_row *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_person_get, err, "tt", p->issuer, p->subject);

	if (rc < 0 || (rc = db_next(d, q, err)) <= 0)
		return rc;
	snprintf(ret->hash, sizeof(ret->hash), "%s", db_str(q, COL_person_get_hash));
	ret->same = db_i32(q, COL_person_get_scope) == (int)p->scope &&
		    !strcmp(db_str(q, COL_person_get_grants), p->grants);
	ret->revoked = !db_null(q, COL_person_get_revoked_ms);
	db_stop(q);
	return 1;
}

/* Inserts the row of a new person, under a hash that no text has. */
static int put_person(struct db *d, struct change *c, const struct person_sign_in *p, struct person_row *row,
		      struct err *err)
{
	char text[TOKEN_TEXT_MAX];
	int64_t there;
	int rc = db_int(d, &there, DB_token_in_force, err, "t", p->name);

	if (rc > 0)
		return change_refuse(c, ERR_EXISTS,
				     "'%.100s' is the name of another person or token here: its "
				     "administrator can revoke that one: dptrack token revoke '%.100s'",
				     p->name, p->name);
	if (!rc)
		rc = token_draw(text, row->hash, err);
	if (!rc)
		rc = db_run(d, DB_person_put, err, "ttititt", p->name, row->hash, (int64_t)p->scope, p->grants,
			    clock_wall_ms(), p->issuer, p->subject);
	return rc ? rc : token_tell(d, err);
}

/* For the audit log: a sign-in with what the person may do, or that nothing is left of it. */
static int describe_sign_in(struct state *st, struct change *c, struct err *err)
{
	const struct person_sign_in *p = c->op.more;

	if (p->scope > TOKEN_NONE) {
		c->about.detail = arena_printf(c->in.arena, "%s%s%s", token_scope_name(p->scope),
					       *p->grants ? ", experiments " : "", p->grants);
		return token_describe_session(st, c, p->session.hash, err);
	}
	c->about =
		(struct change_about){ .action = c->res.existed ? NULL : "revoke", .object = "token", .name = p->name };
	return 0;
}

/* Makes the person, or changes the scope, then begins the session. */
static int sign_in(struct state *st, struct change *c, struct err *err)
{
	const struct person_sign_in *p = c->op.more;
	struct person_row row = { .revoked = false };
	struct db *d = state_db(st);
	int found = read_person(d, p, &row, err), rc = found < 0 ? found : 0;

	if (found > 0 && row.revoked)
		return change_refuse(c, ERR_GONE,
				     "'%.100s' was revoked here: ask the administrator, who lets a person in "
				     "again with dptrack token add NAME --scope read",
				     p->name);
	c->res.existed = found > 0 ? row.same : p->scope == TOKEN_NONE;
	if (!found && p->scope > TOKEN_NONE)
		rc = put_person(d, c, p, &row, err);
	else if (!rc && !c->res.existed)
		rc = db_run(d, DB_person_grants_put, err, "tit", row.hash, (int64_t)p->scope, p->grants);
	if (!rc && found > 0 && !c->res.existed)
		rc = token_tell(d, err);
	if (!rc && !c->res.code && p->scope > TOKEN_NONE)
		rc = db_run(d, DB_session_expire, err, "i", clock_wall_ms());
	if (!rc && !c->res.code && p->scope > TOKEN_NONE)
		rc = db_run(d, DB_session_put, err, "tti", p->session.hash, row.hash, p->session.until_ms);
	return rc ? rc : describe_sign_in(st, c, err);
}

const struct change_ops person_change_sign_in = { .name = "person_sign_in",
						  .action = "sign_in",
						  .object = "session",
						  .check = check_sign_in,
						  .copy = copy_sign_in,
						  .apply = sign_in };

static void copy_confirm(struct change *c, const struct ingest_op *op)
{
	const struct login_confirm *from = op->more;
	struct login_confirm *l = arena_alloc(c->in.arena, sizeof(*l));

	*l = *from;
	l->session = change_dup(c->in.arena, from->session);
	l->device = change_dup(c->in.arena, from->device);
	l->hash = change_dup(c->in.arena, from->hash);
	c->op = (struct ingest_op){ .kind = op->kind, .more = l };
}

/* Puts the program's token under the one that the session is of. */
static int confirm_login(struct state *st, struct change *c, struct err *err)
{
	const struct login_confirm *l = c->op.more;
	struct db *d = state_db(st);
	const char *name = NULL, *owner = NULL, *person = NULL;
	struct db_rows *q;
	int64_t n;
	int rc = db_start(d, &q, DB_session_owner, err, "t", l->session);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		name = arena_printf(c->in.arena, "%s/%s", db_str(q, COL_session_owner_name), l->device);
		owner = db_text(c->in.arena, q, COL_session_owner_hash);
		person = db_text(c->in.arena, q,
				 *db_str(q, COL_session_owner_person) ? COL_session_owner_person
								      : COL_session_owner_name);
	}
	if (rc < 0)
		return rc;
	if (!owner)
		return change_refuse(
			c, ERR_NOENT,
			"this session has ended, or is of a token that the server has from "
			"DPTRACK_TOKEN or a file: sign in by a provider or by a token of dptrack token add");
	if (change_check_name(name, "the token's name", "name", &c->res.err))
		return c->res.code = c->res.err.code, 0;
	rc = db_int(d, &n, DB_token_taken, err, "ttt", name, l->hash, owner);
	if (rc > 0)
		return change_refuse(c, ERR_EXISTS,
				     "this address was used already, or another token is named '%.100s': run "
				     "dptrack login again, if need be with --name NAME",
				     name);
	if (!rc)
		rc = db_int(d, &n, DB_token_children, err, "tt", owner, name);
	if (rc > 0 && n >= CHILDREN_MAX)
		return change_refuse(c, ERR_EXISTS,
				     "%d programs have a token already: let the administrator revoke some",
				     CHILDREN_MAX);
	c->about.name = name;
	c->about.author = person;
	c->about.detail = "dptrack login";
	rc = rc < 0 ? rc : db_run(d, DB_token_children_end, err, "ti", owner, clock_wall_ms());
	if (!rc)
		rc = db_run(d, DB_token_put_child, err, "ttixtt", name, l->hash, clock_wall_ms(), l->expires_ms, owner,
			    person);
	return rc ? rc : token_tell(d, err);
}

const struct change_ops login_change_confirm = { .name = "login_confirm",
						 .judges = true,
						 .action = "create",
						 .object = "token",
						 .copy = copy_confirm,
						 .apply = confirm_login,
						 .settled = token_changed };
