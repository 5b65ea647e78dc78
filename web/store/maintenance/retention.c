/* SPDX-License-Identifier: Apache-2.0 */
/* retention.c: the rules as rows, and the change that records deleted files. */
#include "web/store/maintenance/retention.h"

#include <stdio.h>
#include <stdlib.h>

#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"
#include "web/store/write/change.h"

#define ALL_EXPERIMENTS ((int64_t)-1)
#define DAY_MS 86400e3

/* --- rules ------------------------------------------------------------------------------------------------------ */

int retention_check(const struct retention_rule *r, struct err *err)
{
	if (r->quota_bytes != RETENTION_OFF && r->quota_bytes <= 0) {
		err_set(err, ERR_USAGE, "quota_bytes: expected 1 or more; omit it for no quota");
		return err_field(err, "quota_bytes");
	}
	if (r->artifact_ms || r->keep_best)
		return 0;
	err_set(err, ERR_USAGE,
		"artifact_days 0 with keep_best 0 would delete every artifact: choose more days, or keep some runs");
	return err_field(err, "artifact_days");
}

const struct retention_rule *retention_own_rule(const struct retention_rules *r, int64_t experiment)
{
	size_t at = list_find(r->items, r->count, sizeof(*r->items), experiment);

	return at < r->count && r->items[at].experiment == experiment ? &r->items[at].rule : NULL;
}

static struct retention_rule read_rule(struct db_rows *q)
{
	return (struct retention_rule){ db_time(q, COL_retention_list_artifact_ms),
					db_i64(q, COL_retention_list_keep_best),
					db_time(q, COL_retention_list_trash_ms),
					db_time(q, COL_retention_list_quota_bytes) };
}

int retention_rules(struct store *s, struct arena *a, struct retention_rules *ret, struct err *err)
{
	struct retention_rules list = { .all = RETENTION_NO_RULE };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_retention_list, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (db_i64(q, COL_retention_list_experiment_id) == ALL_EXPERIMENTS)
			list.all = read_rule(q);
		else if (permitted_level(d, db_str(q, COL_retention_list_name)) >= GRANT_ADMIN)
			list_push(a, &list.items, &list.count,
				  (struct retention_own){ db_i64(q, COL_retention_list_experiment_id),
							  db_text(a, q, COL_retention_list_name), read_rule(q) });
	readers_give(s, d);
	*ret = list;
	return rc;
}

static int check_put(const struct ingest_op *op, struct err *err)
{
	const struct retention_put *put = op->more;

	return put->rule ? retention_check(put->rule, err) : 0;
}

static void copy_put(struct change *c, const struct ingest_op *op)
{
	const struct retention_put *from = op->more;
	struct retention_put *to = arena_alloc(c->in.arena, sizeof(*to));
	struct retention_rule *rule = from->rule ? arena_alloc(c->in.arena, sizeof(*rule)) : NULL;

	if (rule)
		*rule = *from->rule;
	*to = (struct retention_put){ change_dup(c->in.arena, from->experiment), rule };
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

static const char *days_text(struct arena *a, const char *what, int64_t ms)
{
	return ms == RETENTION_OFF ? "" : arena_printf(a, "%s %.6g days, ", what, (double)ms / DAY_MS);
}

static const char *describe_rule(struct arena *a, const struct retention_rule *r)
{
	const char *quota =
		r->quota_bytes == RETENTION_OFF ? "" : arena_printf(a, "quota %lld bytes, ", (long long)r->quota_bytes);

	return arena_printf(a, "%s%s%skeep the best %lld", days_text(a, "artifacts", r->artifact_ms),
			    days_text(a, "trash", r->trash_ms), quota, (long long)r->keep_best);
}

/* Replaces the rules of an experiment, or of all. */
static int put_rule(struct state *st, struct change *c, struct err *err)
{
	const struct retention_put *put = c->op.more;
	const struct retention_rule *r = put->rule;
	struct db *d = state_db(st);
	int64_t id = ALL_EXPERIMENTS;
	int rc = 1;

	if (put->experiment) {
		rc = db_int(d, &id, DB_experiment_by_name, err, "t", put->experiment);
		rc = rc > 0 ? change_may_admin(st, c, id, err) : rc < 0 ? rc : ERR_NOENT;
	} else if (c->grants) {
		rc = change_refuse(c, ERR_DENIED, "the rules for all need an admin of all experiments");
	}
	if (rc == ERR_NOENT)
		return change_refuse(c, rc, "there is no experiment '%.100s'", put->experiment);
	if (rc <= 0)
		return rc;
	c->about.name = put->experiment ? put->experiment : "all";
	c->about.experiment = put->experiment;
	c->about.detail = r ? describe_rule(c->in.arena, r) : "the rules for all";
	return !r ? db_run(d, DB_retention_drop, err, "i", id)
		  : db_run(d, DB_retention_put, err, "ixixx", id, r->artifact_ms, r->keep_best, r->trash_ms,
			   r->quota_bytes);
}

const struct change_ops retention_change_put = { .name = "retention_put",
						 .judges = true,
						 .action = "edit",
						 .object = "retention",
						 .check = check_put,
						 .copy = copy_put,
						 .apply = put_rule };

/* --- files that go ---------------------------------------------------------------------------------------------- */

static void copy_purge_step(struct change *c, const struct ingest_op *op)
{
	const struct retention_step *from = op->more;
	struct retention_step *to = arena_alloc(c->in.arena, sizeof(*to));
	struct arena *a = c->in.arena;

	*to = *from;
	to->uuid = change_dup(a, from->uuid);
	to->experiment = change_dup(a, from->experiment);
	to->why = change_dup(a, from->why);
	to->files = artifact_files_copy(a, &from->files);
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

/* Whether the run may not lose files any more: it was tagged, runs again or was registered since the plan was made. */
static int is_kept_now(struct db *d, const struct retention_step *s, struct err *err)
{
	int64_t one;
	int rc = db_int(d, &one, DB_retention_registered_one, err, "t", s->model ? s->uuid + 2 : s->uuid);

	if (!rc && !s->model)
		rc = db_int(d, &one, DB_retention_kept_run, err, "tt", s->uuid, RETENTION_KEEP);
	if (!rc && s->version)
		rc = db_int(d, &one, DB_wandb_aliased, err, "i", s->version);
	if (!rc && s->version)
		rc = db_int(d, &one, DB_wandb_births, err, "i", s->version);
	return rc;
}

/* Lists the first of the files that went. */
static const char *describe_step(struct arena *a, const struct retention_step *s, int64_t bytes)
{
	struct buf b;
	const char *text;

	buf_init(&b, 1 << 16);
	buf_addf(&b, "%s, %lld bytes:", s->why, (long long)bytes);
	for (size_t i = 0; i < s->files.count; i++) {
		const char *name = strstr(s->files.items[i].path, "/artifacts/");

		buf_addf(&b, "%s %s", i ? "," : "", name ? name + 11 : s->files.items[i].path);
	}
	text = arena_strdup(a, buf_failed(&b) ? s->why : b.data);
	buf_done(&b);
	return text;
}

/* Records that files go: removes their rows, and those on disk are in the table leaving. */
static int purge_files(struct state *st, struct change *c, struct err *err)
{
	const bool on_disk = artifacts_folder(store_artifacts(c->store));
	const struct retention_step *s = c->op.more;
	struct db *d = state_db(st);
	int64_t bytes = 0;
	int rc = is_kept_now(d, s, err);

	c->about.action = NULL;
	if (rc)
		return rc < 0 ? rc : 0;
	for (size_t i = 0; i < s->files.count && rc >= 0; i++) {
		rc = artifact_drop(st, on_disk, &s->files.items[i], err);
		bytes += rc > 0 ? s->files.items[i].bytes : 0;
		c->res.removed += rc > 0;
	}
	if (rc < 0 || !c->res.removed)
		return rc < 0 ? rc : 0;
	c->res.durable = (uint64_t)bytes;
	c->about.action = "purge";
	c->about.id = s->uuid;
	c->about.name = arena_printf(c->in.arena, "%llu file%s", (unsigned long long)c->res.removed,
				     c->res.removed == 1 ? "" : "s");
	c->about.experiment = s->experiment;
	c->about.detail = describe_step(c->in.arena, s, bytes);
	return s->version ? db_run(d, DB_wandb_state_put, err, "ii", s->version, (int64_t)2) : 0;
}

const struct change_ops retention_change_purge = { .name = "retention_purge",
						   .action = "purge",
						   .object = "artifact",
						   .copy = copy_purge_step,
						   .apply = purge_files };
