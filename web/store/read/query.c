/* SPDX-License-Identifier: Apache-2.0 */
/* query.c: reads experiments, one run, changes and keys; addresses of artifacts. */
#include "web/store/read/query.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "web/store/base/parts.h"
#include "web/store/read/read_inside.h"

#define CHANGES_MAX 1000

/* Experiments by number. */
static struct map *map_experiment_ids(const struct query_experiments *list, const int64_t *ids)
{
	struct map *m = map_new(sizeof(struct query_experiment *));
	size_t i;

	for (i = 0; i < list->count; i++) {
		struct query_experiment **e = map_put(m, &ids[i], sizeof(ids[i]));

		*e = &list->items[i];
	}
	return m;
}

/* Reads the run counts of all experiments. */
static int count_experiment_runs(struct db *d, struct query_experiments *list, const int64_t *ids, struct err *err)
{
	struct map *known = map_experiment_ids(list, ids);
	struct query_experiment **e;
	struct db_rows *q;
	int64_t id;
	int rc = permitted_ids(d) ? db_start(d, &q, DB_experiment_counts_of, err, "t", permitted_ids(d))
				  : db_start(d, &q, DB_experiment_counts, err, "");

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		id = db_i64(q, COL_experiment_counts_experiment_id);
		e = map_get(known, &id, sizeof(id));
		if (!e)
			continue;
		(*e)->run_count = (uint64_t)db_i64(q, COL_experiment_counts_runs);
		(*e)->running_count = (uint64_t)db_i64(q, COL_experiment_counts_running);
		(*e)->failed_count = (uint64_t)db_i64(q, COL_experiment_counts_failed);
		(*e)->changed_ms = db_i64(q, COL_experiment_counts_changed_ms);
	}
	map_free(known);
	return rc;
}

/* Reads the experiments of a query, then counts their runs. */
static int list_experiment_rows(struct db *d, enum db_query which, struct arena *a, struct query_experiments *ret,
				struct err *err)
{
	int64_t *ids = NULL;
	size_t n = 0;
	struct db_rows *q;
	int rc = db_start(d, &q, which, err, "t", permitted_ids(d));

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		list_push(a, &ids, &n, db_i64(q, COL_experiment_list_id));
		list_push(a, &ret->items, &ret->count,
			  (struct query_experiment){ .id = db_text(a, q, COL_experiment_list_id),
						     .name = db_text(a, q, COL_experiment_list_name),
						     .created_ms = db_i64(q, COL_experiment_list_created_ms),
						     .changed_ms = db_i64(q, COL_experiment_list_created_ms),
						     .description = db_text(a, q, COL_experiment_list_description),
						     .archived = db_i64(q, COL_experiment_list_archived) != 0 });
	}
	return rc ? rc : count_experiment_runs(d, ret, ids, err);
}

static int read_experiment_list(struct store *s, enum db_query which, struct arena *a, struct query_experiments *ret,
				struct err *err)
{
	struct query_experiments list = { 0 };
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = list_experiment_rows(d, which, a, &list, err);
	readers_give(s, d);
	if (!rc)
		*ret = list;
	return rc;
}

int query_experiments(struct store *s, struct arena *a, struct query_experiments *ret, struct err *err)
{
	return read_experiment_list(s, DB_experiment_list, a, ret, err);
}

int query_experiments_deleted(struct store *s, struct arena *a, struct query_experiments *ret, struct err *err)
{
	return read_experiment_list(s, DB_experiment_trash, a, ret, err);
}

const char *query_mlflow_status(const char *status)
{
	static const char *const names[][2] = {
		{ "running", "RUNNING" }, { "finished", "FINISHED" }, { "failed", "FAILED" },
		{ "killed", "KILLED" },	  { "preempted", "KILLED" },  { "scheduled", "SCHEDULED" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], status))
			return names[i][1];
	return "RUNNING";
}

enum { RUNS_LISTED = 5 }; /* runs that an ambiguous prefix lists */

/* Finds the run whose id has the given prefix. Several runs are an error that lists the first of them. */
static int find_run_id(struct db *d, const char *id, int64_t *ret, char uuid[33], struct err *err)
{
	char from[40], to[40], list[256] = "";
	struct db_rows *q;
	size_t used = 0;
	int rc, found = 0;

	if (!text_is_hex(id, 4, 32))
		return err_set(err, ERR_NOENT, "there is no run %.40s", id);
	snprintf(from, sizeof(from), "%s", id);
	snprintf(to, sizeof(to), "%sg", id);
	rc = db_start(d, &q, DB_run_by_prefix, err, "ttt", from, to, permitted_ids(d));
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		*ret = db_i64(q, COL_run_by_prefix_id);
		snprintf(uuid, 33, "%s", db_str(q, COL_run_by_prefix_uuid));
		if (found++ < RUNS_LISTED && used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", uuid);
		rc = 0;
	}
	if (!rc && found > 1)
		return err_set(err, ERR_USAGE, "several runs begin with %s: %s%s: give more digits", id, list,
			       found > RUNS_LISTED ? " and more" : "");
	return rc || found ? rc : readers_missing(d, id, err);
}

int query_run_id(struct store *s, const char *prefix, char ret[33], struct err *err)
{
	int64_t run_id;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = find_run_id(d, prefix, &run_id, ret, err);
	readers_give(s, d);
	return rc;
}

struct run_load {
	const char *id;
	bool series;
};

static int load_one_run(struct db *d, const struct run_load *l, struct arena *a, struct query_run *ret, struct err *err)
{
	int64_t run_id = 0;
	char uuid[33];
	int rc = find_run_id(d, l->id, &run_id, uuid, err);

	if (!rc)
		rc = detail_load(d, run_id, a, ret, err);
	if (!rc)
		rc = detail_load_rest(d, run_id, a, ret, err);
	return rc || !l->series ? rc : detail_load_series(d, run_id, a, ret, err);
}

static int read_one_run(struct store *s, const struct run_load *l, struct arena *a, struct query_run *ret,
			struct err *err)
{
	struct query_run run = { 0 };
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = load_one_run(d, l, a, &run, err);
	readers_give(s, d);
	if (!rc)
		*ret = run;
	return rc;
}

int query_run(struct store *s, const char *id, struct arena *a, struct query_run *ret, struct err *err)
{
	return read_one_run(s, &(struct run_load){ .id = id }, a, ret, err);
}

int query_run_series(struct store *s, const char *id, struct arena *a, struct query_run *ret, struct err *err)
{
	return read_one_run(s, &(struct run_load){ .id = id, .series = true }, a, ret, err);
}

int query_run_texts(struct store *s, const char *id, struct arena *a, struct query_kvs *ret, struct err *err)
{
	struct query_kvs texts = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t run;
	int rc = readers_take_run(s, &d, id, &run, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_texts_of_run, err, "i", run);
	rc = rc ? rc : query_pairs_read(d, q, a, &texts, err);
	readers_give(s, d);
	*ret = texts;
	return rc;
}

/* "<first 8 digits of the store's id>-<rev>" */
static int parse_token(const char *token, uint64_t *ret_rev, char ret_store[9], struct err *err)
{
	char *end;

	if (strlen(token) < 10 || token[8] != '-' || strspn(token, "0123456789abcdef") < 8 ||
	    strspn(token + 9, "0123456789") != strlen(token + 9) || strlen(token) > 28)
		return err_set(err, ERR_USAGE, "since: '%.40s' is not a token of this call", token);
	memcpy(ret_store, token, 8);
	ret_store[8] = '\0';
	*ret_rev = strtoull(token + 9, &end, 10);
	return 0;
}

struct changes_load {
	struct db *d;
	uint64_t since, rev; /* rev: in, the newest; out, the last one listed, if any */
};

/* Lists the runs that changed after `since`. */
static int load_changes(struct changes_load *l, struct arena *a, struct query_changes *c, struct err *err)
{
	struct db *d = l->d;
	const char **ids = arena_array(a, CHANGES_MAX, sizeof(*ids));
	struct db_rows *q;
	int rc;

	rc = db_start(d, &q, DB_changes_since, err, "it", (int64_t)l->since, permitted_ids(d));
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = 0;
		if (c->run_count == CHANGES_MAX) {
			c->more = true;
			db_stop(q);
			break;
		}
		ids[c->run_count++] = db_text(a, q, COL_changes_since_uuid);
		l->rev = (uint64_t)db_i64(q, COL_changes_since_rev);
	}
	c->runs = ids;
	return rc;
}

/* Reads the newest rev and the prefix of tokens; tokens with another prefix are of another database. */
static int load_now(const struct store *s, struct db *d, uint64_t *ret_rev, char ret_of[9], struct err *err)
{
	char text[256], digest[65];
	const char *rows_of;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_changes_now, err, "");

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc < 0 ? rc
			      : err_set(err, ERR_DAMAGED, "store: the change counter is missing: restore a backup");
	*ret_rev = (uint64_t)db_i64(q, COL_changes_now_rev);
	rows_of = db_str(q, COL_changes_now_rows_of);
	snprintf(text, sizeof(text), "%s %s", s->id, rows_of);
	sha256_hex(text, strlen(text), digest);
	snprintf(ret_of, 9, "%.8s", *rows_of ? digest : s->id);
	db_stop(q);
	return 0;
}

/* A restricted caller's token does not move with changes that it may not see. */
static int load_permitted_rev(struct changes_load *l, const struct query_changes *c, bool first, struct err *err)
{
	int64_t rev = 0;
	int rc;

	if (!permitted_ids(l->d))
		return 0;
	if (!first && !c->reset && !c->run_count)
		l->rev = l->since;
	if (!first && !c->reset)
		return 0;
	rc = db_int(l->d, &rev, DB_rev_permitted, err, "t", permitted_ids(l->d));
	l->rev = (uint64_t)rev;
	return rc < 0 ? rc : 0;
}

int query_changes(struct store *s, const char *since, struct arena *a, struct query_changes *ret, struct err *err)
{
	struct query_changes c = { 0 };
	struct changes_load l = { 0 };
	char of_store[9] = "", ours[9] = "";
	int rc = since && *since ? parse_token(since, &l.since, of_store, err) : 0;

	if (!rc)
		rc = readers_take_permitted(s, &l.d, err);
	if (rc)
		return rc;
	rc = load_now(s, l.d, &l.rev, ours, err);
	/* Revs only grow, so a larger one is from before the store was restored. */
	c.reset = strcmp(of_store, ours) || l.since > l.rev;
	if (!rc && !c.reset)
		rc = load_changes(&l, a, &c, err);
	if (rc >= 0)
		rc = load_permitted_rev(&l, &c, !since || !*since, err);
	readers_give(s, l.d);
	if (rc < 0)
		return rc;
	c.token = arena_printf(a, "%s-%llu", ours, (unsigned long long)l.rev);
	*ret = c;
	return 0;
}

int experiment_named(struct db *d, const char *name, int64_t *ret, struct err *err)
{
	int rc = db_int(d, ret, DB_experiment_by_name, err, "t", name);

	if (rc < 0 || (rc && permitted(d, *ret)))
		return rc < 0 ? rc : 0;
	return err_set(err, ERR_NOENT, "there is no experiment '%.100s'", name);
}

struct key_list {
	const char **items;
	size_t count;
};

/* Reads the key names of a query. experiments: an array, NULL: all. */
static int load_key_names(struct db *d, enum db_query which, const char *experiments, struct arena *a,
			  struct key_list *l)
{
	struct db_rows *q;
	int rc = db_start(d, &q, which, NULL, "t", experiments);

	while (rc >= 0 && (rc = db_next(d, q, NULL)) > 0)
		list_push(a, &l->items, &l->count, db_text(a, q, COL_keys_of_params_name));
	return rc;
}

size_t query_layer_group(const char *key)
{
	static const char *const groups[] = { "grad_norm/", "update_ratio/", "dead_units/" };

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (!strncmp(key, groups[i], strlen(groups[i])))
			return strlen(groups[i]) - 1;
	return 0;
}

int query_keys(struct store *s, const char *experiment, struct arena *a, struct query_keys *ret, struct err *err)
{
	struct key_list params = { 0 }, tags = { 0 }, metrics = { 0 };
	const char *of;
	int64_t id;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	of = permitted_ids(d);
	if (experiment) {
		rc = experiment_named(d, experiment, &id, err);
		of = rc ? NULL : arena_printf(a, "{%lld}", (long long)id);
	}
	if (!rc &&
	    (load_key_names(d, DB_keys_of_params, of, a, &params) || load_key_names(d, DB_keys_of_tags, of, a, &tags) ||
	     load_key_names(d, DB_keys_of_metrics, of, a, &metrics)))
		rc = db_failed(d, err, "listing keys");
	readers_give(s, d);
	if (!rc)
		*ret = (struct query_keys){ params.items, tags.items, metrics.items,
					    params.count, tags.count, metrics.count };
	return rc;
}

/* --- addresses of artifacts ----------------------------------------------------------------------------------- */

const char *location_of(struct arena *a, const char *location, int64_t experiment, const char *below)
{
	size_t all = strlen(location), n = strchr(location, ':') ? strcspn(location, "?") : all;

	if (!all)
		return arena_printf(a, "mlflow-artifacts:/%lld/%s", (long long)experiment, below);
	return arena_printf(a, "%.*s%s%s%s", (int)n, location, n && location[n - 1] == '/' ? "" : "/", below,
			    location + n);
}
