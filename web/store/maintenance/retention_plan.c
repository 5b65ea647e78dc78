/* SPDX-License-Identifier: Apache-2.0 */
/* retention_plan.c: what goes by the rules: which runs are kept, all files of the others by age, then the oldest of
 * what is over a quota. Rows come from one snapshot; files on disk are listed afterwards, and judged again when they
 * go. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/maintenance/retention.h"
#include "web/store/wandb/artifact_versions.h"

#define ID_DIGITS 32

/* A version of W&B's artifacts. */
struct plan_version {
	int64_t id, created_ms;
	bool kept;
};

struct planner {
	struct store *s;
	const struct retention_plan_opts *o;
	struct arena *arena;
	struct retention_plan *to;
	struct map *kept;     /* ids of runs whose files stay */
	struct map *versions; /* EXPERIMENT/COLLECTION/NUMBER -> struct plan_version */
	int64_t now_ms;
};

static int check_plan_stop(const struct planner *p, struct err *err)
{
	return p->o->stop && p->o->stop(p->o->arg) ? err_set(err, ERR_CANCELED, "the store is closing") : 0;
}

/* --- runs that are kept ----------------------------------------------------------------------------------------- */

/* Adds every id in a text. */
static void add_ids(struct map *io, const char *text)
{
	for (size_t n; *text; text += n ? n : 1) {
		n = strspn(text, "0123456789abcdef");
		if (n == ID_DIGITS)
			map_put(io, text, ID_DIGITS);
	}
}

static int add_registered(struct db *d, struct map *io, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_retention_sources, err, "");

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		add_ids(io, db_str(q, COL_retention_sources_source));
		add_ids(io, db_str(q, COL_retention_sources_location));
		add_ids(io, db_str(q, COL_retention_sources_run));
	}
	return rc;
}

int retention_registered(struct store *s, struct map *io, struct err *err)
{
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = add_registered(d, io, err);
	readers_give(s, d);
	return rc;
}

/* Chooses the metric that the experiment's runs are judged by; *ret_key: its number. */
static int choose_goal(struct planner *p, struct db *d, struct retention_experiment *e, int64_t *ret_key,
		       struct err *err)
{
	struct db_rows *q;
	int64_t runs = 0;
	int rc = db_int(d, &runs, DB_retention_run_count, err, "i", e->id);

	rc = rc < 0 ? rc : db_start(d, &q, DB_retention_goals, err, "i", e->id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		const char *key = db_text(p->arena, q, COL_retention_goals_name), *said;

		said = db_text(p->arena, q, COL_retention_goals_said);
		goal_choice_add(&e->goal, key, *said ? said : NULL, (size_t)db_i64(q, COL_retention_goals_runs),
				(size_t)runs);
		if (e->goal.key == key)
			*ret_key = db_i64(q, COL_retention_goals_id);
	}
	if (!e->goal.best)
		e->goal.key = NULL;
	return rc;
}

static int keep_best_runs(struct planner *p, struct db *d, struct retention_experiment *e, struct err *err)
{
	int64_t key = -1;
	struct db_rows *q;
	int rc = choose_goal(p, d, e, &key, err);

	rc = rc ? rc
		: db_start(d, &q, DB_retention_best, err, "iiii", e->id, e->goal.key ? key : (int64_t)-1,
			   (int64_t)e->goal.best, e->rule.keep_best);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		map_put(p->kept, db_str(q, COL_retention_best_uuid), ID_DIGITS);
	return rc;
}

static bool has_file_rule(const struct retention_rule *r)
{
	return r->artifact_ms != RETENTION_OFF || r->quota_bytes != RETENTION_OFF;
}

/* Whether files of the experiment are listed: it is asked for, or its files count for the quota of all. */
static bool is_wanted(const struct planner *p, const struct retention_experiment *e)
{
	const struct retention_plan_opts *o = p->o;

	if (!o->all_files && !has_file_rule(&e->rule))
		return false;
	return !o->only || e->id == *o->only || (!e->own && o->rules.all.quota_bytes != RETENTION_OFF);
}

/* Reads the experiments with the rules that they follow, and which of their runs are the best. */
static int read_experiments(struct planner *p, struct db *d, struct err *err)
{
	const struct retention_rules *rules = &p->o->rules;
	struct retention_plan *to = p->to;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_experiment_names, err, "");

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		int64_t id = db_i64(q, COL_experiment_names_id);
		const struct retention_rule *own = retention_own_rule(rules, id);

		list_push(p->arena, &to->experiments, &to->experiment_count,
			  (struct retention_experiment){ .id = id,
							 .name = db_text(p->arena, q, COL_experiment_names_name),
							 .rule = own ? *own : rules->all,
							 .own = own != NULL });
	}
	for (size_t i = 0; i < to->experiment_count && !rc; i++)
		if (is_wanted(p, &to->experiments[i]) && to->experiments[i].rule.keep_best)
			rc = keep_best_runs(p, d, &to->experiments[i], err);
	return rc;
}

static void add_unit(struct planner *p, struct retention_unit u, int64_t experiment)
{
	struct retention_plan *to = p->to;
	size_t at = list_find(to->experiments, to->experiment_count, sizeof(*to->experiments), experiment);
	struct retention_experiment *e = &to->experiments[at];

	if (at == to->experiment_count || e->id != experiment)
		return;
	u.experiment = (uint32_t)at;
	u.kept = u.kept || map_get(p->kept, u.uuid + (u.model ? 2 : 0), ID_DIGITS);
	u.trash = !u.kept && u.deleted_ms != INT64_MIN && e->rule.trash_ms != RETENTION_OFF &&
		  u.deleted_ms <= p->now_ms - e->rule.trash_ms;
	u.kept = u.kept || !has_file_rule(&e->rule);
	if (u.kept && !u.model)
		map_put(p->kept, u.uuid, ID_DIGITS);
	e->kept_runs += u.kept && !u.model;
	list_push(p->arena, &to->units, &to->unit_count, u);
}

/* Runs first: a logged model is kept with the run that made it. */
static int read_units(struct planner *p, struct db *d, struct err *err)
{
	struct retention_unit u;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_retention_runs, err, "t", RETENTION_KEEP);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		u = (struct retention_unit){ .deleted_ms = db_time(q, COL_retention_runs_deleted_ms),
					     .kept = db_i64(q, COL_retention_runs_kept) };
		snprintf(u.uuid, sizeof(u.uuid), "%s", db_str(q, COL_retention_runs_uuid));
		add_unit(p, u, db_i64(q, COL_retention_runs_experiment_id));
	}
	rc = rc ? rc : db_start(d, &q, DB_retention_models, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		const char *run = db_str(q, COL_retention_models_source_run);

		u = (struct retention_unit){ .deleted_ms = db_time(q, COL_retention_models_deleted_ms),
					     .model = true,
					     .kept = map_get(p->kept, run, strlen(run)) };
		snprintf(u.uuid, sizeof(u.uuid), "%s", db_str(q, COL_retention_models_uuid));
		add_unit(p, u, db_i64(q, COL_retention_models_experiment_id));
	}
	return rc;
}

static int read_kept_versions(struct planner *p, struct db *d, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_retention_versions, err, "");

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		const char *name = arena_printf(p->arena, "%lld/%s/%lld",
						(long long)db_i64(q, COL_retention_versions_experiment_id),
						db_str(q, COL_retention_versions_collection),
						(long long)db_i64(q, COL_retention_versions_version));
		const char *user = db_str(q, COL_retention_versions_used_by);
		struct plan_version *v = map_put(p->versions, name, strlen(name));

		v->id = db_i64(q, COL_retention_versions_id);
		v->created_ms = db_i64(q, COL_retention_versions_created_ms);
		v->kept = v->kept || db_i64(q, COL_retention_versions_needed) || map_get(p->kept, user, strlen(user));
	}
	return rc;
}

static int read_plan_rows(struct planner *p, struct err *err)
{
	struct db *d;
	int rc = readers_take(p->s, &d, err);

	if (rc)
		return rc;
	rc = add_registered(d, p->kept, err);
	rc = rc ? rc : read_experiments(p, d, err);
	rc = rc ? rc : read_units(p, d, err);
	rc = rc ? rc : read_kept_versions(p, d, err);
	readers_give(p->s, d);
	return rc;
}

/* --- files ------------------------------------------------------------------------------------------------------ */

/* The version that a file of EXPERIMENT/RUN/artifacts/… belongs to, or NULL. */
static const struct plan_version *find_file_version(struct planner *p, int64_t experiment, const char *path)
{
	static const char below[] = "/artifacts/" WANDB_ARTIFACTS "/";
	const char *at = strstr(path, below), *slash, *end;
	char name[400];
	int n;

	at = at ? at + sizeof(below) - 1 : "";
	slash = strchr(at, '/');
	if (!slash || slash[1] != 'v')
		return NULL;
	end = slash + 2 + strspn(slash + 2, "0123456789");
	if (*end != '/' && *end != '.')
		return NULL;
	n = snprintf(name, sizeof(name), "%lld/%.*s/%.*s", (long long)experiment, (int)(slash - at), at,
		     (int)(end - slash - 2), slash + 2);
	return n > 0 && (size_t)n < sizeof(name) ? map_get(p->versions, name, (size_t)n) : NULL;
}

/* Says whether a file stays, or goes by its age. */
static void judge_file(struct planner *p, struct retention_unit *u, const struct artifact_item *of)
{
	struct retention_plan *to = p->to;
	struct retention_experiment *e = &to->experiments[u->experiment];
	const struct plan_version *v = u->model ? NULL : find_file_version(p, e->id, of->path);
	struct retention_file f = { .of = *of, .unit = (uint32_t)(u - to->units), .version = v ? v->id : 0 };
	int64_t age_ms = p->now_ms - (v ? v->created_ms : of->time_ns / 1000000);

	f.stays = u->kept || u->trash || (v && v->kept);
	f.doomed = !f.stays && e->rule.artifact_ms != RETENTION_OFF && age_ms >= e->rule.artifact_ms;
	e->files++;
	e->bytes += (uint64_t)of->bytes;
	e->trash_bytes += u->trash ? (uint64_t)of->bytes : 0;
	list_push(p->arena, &to->files, &to->file_count, f);
}

static int list_unit_files(struct planner *p, struct retention_unit *u, struct err *err)
{
	const struct retention_experiment *e = &p->to->experiments[u->experiment];
	struct artifact_files found = { 0 };
	int rc = check_plan_stop(p, err);

	u->first = p->to->file_count;
	if (!rc && is_wanted(p, e))
		rc = artifact_files(
			p->s, arena_printf(p->arena, "%lld/%s%s", (long long)e->id, u->model ? "models/" : "", u->uuid),
			p->arena, &found, err);
	for (size_t i = 0; i < found.count; i++)
		judge_file(p, u, &found.items[i]);
	u->count = p->to->file_count - u->first;
	return rc;
}

static int compare_ages(const void *x, const void *y)
{
	const struct retention_file *a = *(const struct retention_file *const *)x;
	const struct retention_file *b = *(const struct retention_file *const *)y;

	return a->of.time_ns != b->of.time_ns ? (a->of.time_ns < b->of.time_ns ? -1 : 1)
					      : strcmp(a->of.path, b->of.path);
}

/* Whether a file counts for a quota: of the experiment, or NULL: for the one of all. */
static bool counts_for(const struct planner *p, const struct retention_file *f, const struct retention_experiment *of)
{
	const struct retention_experiment *e = &p->to->experiments[p->to->units[f->unit].experiment];

	return !f->doomed && !p->to->units[f->unit].trash && (of ? e == of : !e->own);
}

/* The files of a version of W&B's artifacts go together. */
static int64_t doom_for_quota(struct planner *p, struct retention_file *f)
{
	const struct retention_unit *u = &p->to->units[f->unit];
	int64_t freed = 0;

	for (size_t i = f->version ? u->first : (size_t)(f - p->to->files);
	     i < (f->version ? u->first + u->count : (size_t)(f - p->to->files) + 1); i++) {
		struct retention_file *g = &p->to->files[i];

		if (g->version != f->version || g->doomed)
			continue;
		g->doomed = g->over_quota = true;
		freed += g->of.bytes;
	}
	return freed;
}

/* Dooms the oldest files until the rest fits. */
static void apply_quota(struct planner *p, const struct retention_experiment *of, int64_t quota)
{
	struct retention_plan *to = p->to;
	struct retention_file **list;
	int64_t bytes = 0;
	size_t n = 0;

	if (quota == RETENTION_OFF)
		return;
	list = mem_array(to->file_count + 1, sizeof(struct retention_file *));
	for (size_t i = 0; i < to->file_count; i++)
		if (counts_for(p, &to->files[i], of)) {
			bytes += to->files[i].of.bytes;
			if (!to->files[i].stays)
				list[n++] = &to->files[i];
		}
	if (n && bytes > quota)
		qsort(list, n, sizeof(struct retention_file *), compare_ages);
	for (size_t i = 0; i < n && bytes > quota; i++)
		if (!list[i]->doomed)
			bytes -= doom_for_quota(p, list[i]);
	free(list);
}

static void sum_plan(struct retention_plan *to)
{
	for (size_t i = 0; i < to->file_count; i++) {
		struct retention_experiment *e = &to->experiments[to->units[to->files[i].unit].experiment];

		e->doomed_files += to->files[i].doomed;
		e->doomed_bytes += to->files[i].doomed ? (uint64_t)to->files[i].of.bytes : 0;
	}
	for (size_t i = 0; i < to->unit_count; i++) {
		struct retention_experiment *e = &to->experiments[to->units[i].experiment];

		e->trash_runs += to->units[i].trash && !to->units[i].model;
		e->trash_models += to->units[i].trash && to->units[i].model;
	}
}

int retention_plan(struct store *s, const struct retention_plan_opts *o, struct arena *a, struct retention_plan *ret,
		   struct err *err)
{
	struct retention_plan to = { 0 };
	struct planner p = { .s = s,
			     .o = o,
			     .arena = a,
			     .to = &to,
			     .kept = map_new(1),
			     .versions = map_new(sizeof(struct plan_version)),
			     .now_ms = clock_wall_ms() };
	int rc = read_plan_rows(&p, err);

	for (size_t i = 0; i < to.unit_count && !rc; i++)
		rc = list_unit_files(&p, &to.units[i], err);
	for (size_t i = 0; i < to.experiment_count && !rc; i++)
		if (to.experiments[i].own)
			apply_quota(&p, &to.experiments[i], to.experiments[i].rule.quota_bytes);
	if (!rc)
		apply_quota(&p, NULL, o->rules.all.quota_bytes);
	sum_plan(&to);
	map_free(p.kept);
	map_free(p.versions);
	*ret = to;
	return rc;
}

/* --- preview ---------------------------------------------------------------------------------------------------- */

int retention_experiment_id(struct store *s, const char *name, int64_t *ret, struct err *err)
{
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_int(d, ret, DB_experiment_by_name, err, "t", name);
	if (!rc || (rc > 0 && !permitted(d, *ret)))
		rc = err_set(err, ERR_NOENT, "there is no experiment '%.100s'", name);
	else if (rc > 0)
		rc = permitted_level(d, name) >= GRANT_ADMIN
			     ? 0
			     : err_set(err, ERR_DENIED, "this token is not an admin of '%.100s'", name);
	readers_give(s, d);
	return rc;
}

/* Puts a rule in the place of the stored one. */
static void replace_rule(struct retention_rules *io, struct arena *a, const struct retention_preview *o, int64_t id)
{
	size_t at = list_find(io->items, io->count, sizeof(*io->items), id);

	if (!o->experiment) {
		io->all = *o->instead;
		return;
	}
	if (at == io->count || io->items[at].experiment != id) {
		list_push(a, &io->items, &io->count, (struct retention_own){ .experiment = id });
		memmove(io->items + at + 1, io->items + at, (io->count - 1 - at) * sizeof(*io->items));
	}
	io->items[at] = (struct retention_own){ id, o->experiment, *o->instead };
}

/* Leaves the experiments that were asked for, and that the caller administers. */
static int select_experiments(struct store *s, const int64_t *only, struct retention_plan *io, struct err *err)
{
	size_t n = 0;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < io->experiment_count; i++)
		if ((!only || io->experiments[i].id == *only) &&
		    permitted_level(d, io->experiments[i].name) >= GRANT_ADMIN)
			io->experiments[n++] = io->experiments[i];
	io->experiment_count = n;
	readers_give(s, d);
	return 0;
}

int retention_preview(struct store *s, const struct retention_preview *o, struct arena *a, struct retention_plan *ret,
		      struct err *err)
{
	struct retention_plan_opts plan = { .all_files = true, .stop = o->stop, .arg = o->arg };
	int64_t id = -1;
	int rc = o->experiment ? retention_experiment_id(s, o->experiment, &id, err) : 0;

	rc = rc ? rc : retention_rules(store_whole(s), a, &plan.rules, err);
	if (!rc && o->instead)
		replace_rule(&plan.rules, a, o, id);
	plan.only = o->experiment ? &id : NULL;
	rc = rc ? rc : retention_plan(store_whole(s), &plan, a, ret, err);
	return rc ? rc : select_experiments(s, plan.only, ret, err);
}
