/* SPDX-License-Identifier: Apache-2.0 */
/* share.c: the rows of links, read and changed. The column share has the kind and the targets, a line with who made the
 * link, and the name of what it shows; the name of the row is share/ID. */
#include "web/store/auth/share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/base/map.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/write/change.h"

#define ROW_PREFIX "share/"
#define ENDED_MS (INT64_C(90) * 24 * 3600 * 1000) /* links that ended before then are forgotten */
/* Each request compares its token with all rows. */
enum { SHARES_MAX = 1000 };

static const char *const kind_names[] = { "run", "comparison", "view", "report" };

const char *share_kind_name(enum share_kind kind)
{
	return kind_names[kind];
}

bool share_kind_read(const char *word, enum share_kind *ret)
{
	for (int i = 0; i < SHARE_KINDS; i++)
		if (!strcmp(word, kind_names[i]))
			return *ret = (enum share_kind)i, true;
	return false;
}

static const char *make_share_text(struct arena *a, const struct share *s)
{
	const char *text = kind_names[s->kind];

	for (size_t i = 0; i < s->target_count; i++)
		text = arena_printf(a, "%s %s", text, s->target[i]);
	return arena_printf(a, "%s\n%s\n%s", text, s->person, s->name);
}

void share_parse(struct share *ret, struct arena *a, const char *text)
{
	char *rest = arena_strdup(a, text), *words = strsep(&rest, "\n"), *word = strsep(&words, " ");
	const char **target = NULL;

	share_kind_read(word, &ret->kind);
	ret->target_count = 0;
	while ((word = strsep(&words, " ")))
		list_push(a, &target, &ret->target_count, word);
	ret->target = target;
	word = strsep(&rest, "\n");
	ret->person = word ? word : "";
	ret->name = rest ? rest : "";
}

static struct share read_share_row(struct arena *a, struct db_rows *q)
{
	struct share s = { .id = arena_strdup(a, db_str(q, COL_share_list_name) + strlen(ROW_PREFIX)),
			   .experiment_id = db_i64(q, COL_share_list_experiment_id),
			   .experiment = db_text(a, q, COL_share_list_experiment),
			   .created_ms = db_i64(q, COL_share_list_created_ms),
			   .expires_ms = db_i64(q, COL_share_list_expires_ms),
			   .revoked_ms = db_time(q, COL_share_list_revoked_ms),
			   .used_ms = db_time(q, COL_share_list_used_ms) };

	share_parse(&s, a, db_str(q, COL_share_list_share));
	return s;
}

int share_list(struct store *s, struct arena *a, struct share **ret, size_t *ret_count, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	*ret = NULL;
	*ret_count = 0;
	if (rc)
		return rc;
	rc = db_start(d, &q, DB_share_list, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (permitted_level(d, db_str(q, COL_share_list_experiment)) >= GRANT_ADMIN)
			list_push(a, ret, ret_count, read_share_row(a, q));
	readers_give(s, d);
	return rc;
}

int share_find(struct store *s, const char *hash, struct arena *a, struct share *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(store_whole(s), &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_share_of_hash, err, "t", hash);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		*ret = read_share_row(a, q);
		db_stop(q);
	}
	readers_give(s, d);
	return rc > 0 ? 0 : rc ? rc : ERR_NOENT;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static void copy_new_share(struct change *c, const struct ingest_op *op)
{
	const struct share_new *from = op->more;
	struct arena *a = c->in.arena;
	struct share_new *to = arena_alloc(a, sizeof(*to));
	const char **target = arena_array(a, from->share.target_count, sizeof(*target));

	*to = *from;
	for (size_t i = 0; i < from->share.target_count; i++)
		target[i] = change_dup(a, from->share.target[i]);
	to->share.target = target;
	to->share.id = change_dup(a, from->share.id);
	to->share.person = change_dup(a, from->share.person);
	to->share.name = change_dup(a, from->share.name);
	to->share.experiment = change_dup(a, from->share.experiment);
	to->hash = change_dup(a, from->hash);
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

/* Fills the entry of the audit log. */
static void describe_share(struct change *c, const struct share *s)
{
	c->about.id = s->id;
	c->about.name = s->name;
	c->about.experiment = s->experiment;
	c->about.detail = arena_printf(c->in.arena, "%s%s%s", kind_names[s->kind], s->target_count == 1 ? " " : "",
				       s->target_count == 1 ? s->target[0] : "");
}

/* Stores a link of which the caller may be the author, unless there are too many. */
static int put_share(struct state *st, struct change *c, struct err *err)
{
	const struct share_new *n = c->op.more;
	const struct share *s = &n->share;
	struct arena *a = c->in.arena;
	int64_t id = 0, valid = 0;
	int rc = db_int(state_db(st), &id, DB_experiment_by_name, err, "t", s->experiment);

	if (rc > 0)
		rc = change_may_admin(st, c, id, err);
	else if (!rc)
		rc = ERR_NOENT;
	if (rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "there is no experiment '%.100s'", s->experiment);
	if (rc <= 0)
		return rc;
	rc = db_int(state_db(st), &valid, DB_share_valid, err, "i", s->created_ms);
	if (rc > 0 && valid >= SHARES_MAX)
		return change_refuse(c, ERR_EXISTS, "%d links are valid already: revoke some", SHARES_MAX);
	rc = rc < 0 ? rc : db_run(state_db(st), DB_share_forget, err, "i", s->created_ms - ENDED_MS);
	if (rc)
		return rc;
	describe_share(c, s);
	rc = db_run(state_db(st), DB_share_put, err, "ttiitti", arena_printf(a, ROW_PREFIX "%s", s->id), n->hash,
		    s->created_ms, s->expires_ms, arena_printf(a, "=%" PRId64, id), make_share_text(a, s), id);
	return rc ? rc : token_tell(state_db(st), err);
}

/* 1: *ret is a link that has not been revoked, of an experiment of which the caller is an admin; 0: refused. */
static int need_share(struct state *st, struct change *c, struct share *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_share_of_name, err, "t",
			  arena_printf(c->in.arena, ROW_PREFIX "%s", c->op.name));

	if (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
		*ret = read_share_row(c->in.arena, q);
		db_stop(q);
		rc = change_may_admin(st, c, ret->experiment_id, err);
	} else if (!rc) {
		rc = ERR_NOENT;
	}
	if (rc == ERR_NOENT || (rc > 0 && ret->revoked_ms != INT64_MIN))
		return change_refuse(c, ERR_NOENT, "there is no link %.40s to revoke", c->op.name);
	return rc;
}

static int revoke_share(struct state *st, struct change *c, struct err *err)
{
	struct share s;
	int rc = need_share(st, c, &s, err);

	if (rc <= 0)
		return rc;
	describe_share(c, &s);
	rc = db_run(state_db(st), DB_token_revoke, err, "ti", arena_printf(c->in.arena, ROW_PREFIX "%s", s.id),
		    clock_wall_ms());
	return rc ? rc : token_tell(state_db(st), err);
}

const struct change_ops share_change_new = { .name = "share_new",
					     .judges = true,
					     .action = "share",
					     .object = "share",
					     .copy = copy_new_share,
					     .apply = put_share,
					     .settled = token_changed };
const struct change_ops share_change_revoke = { .name = "share_revoke",
						.judges = true,
						.action = "revoke",
						.object = "share",
						.apply = revoke_share,
						.settled = token_changed };
