/* chosen.c: keys of runs by their ids, and the summaries of the few that are wanted. Knows no filter and no order. */
#include "web/store/read/chosen.h"

#include <stdlib.h>
#include <string.h>

#include "web/store/base/map.h"
#include "web/store/points/sum_row.h"
#include "web/store/read/metric.h"

struct chosen_key {
	const char *name; /* the map's; NULL: not looked up yet */
	uint32_t runs;
	bool asked, watched; /* watched: alerts are made of it */
};

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "out of memory");
}

static int ask(struct chosen *c, struct db *d, const struct query_runs_opts *o, struct err *err)
{
	struct chosen_key *k;
	int64_t id;
	size_t i;
	int rc = 0;

	for (i = 0; i < o->metric_count && rc >= 0; i++) {
		rc = db_int(d, &id, DB_key_by_name, err, "t", o->metrics[i]);
		k = rc > 0 ? map_put(c->keys, &id, sizeof id) : NULL;
		if (rc > 0 && !k)
			rc = no_memory(err);
		if (k)
			k->asked = true;
	}
	return rc < 0 ? rc : 0;
}

static int count_run(struct chosen *c, struct db *d, int64_t run, struct err *err)
{
	struct chosen_key *k;
	struct db_rows *q;
	int64_t id;
	int rc = db_start(d, &q, DB_metric_keys_of_run, err, "i", run);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		id = db_i64(q, COL_metric_keys_of_run_key_id);
		k = map_put(c->keys, &id, sizeof id);
		if (!k) {
			db_stop(q);
			return no_memory(err);
		}
		k->runs++;
		rc = 0;
	}
	return rc;
}

static int name_keys(struct chosen *c, struct db *d, struct err *err)
{
	struct db_rows *q;
	size_t i, len;
	int rc = 0;

	for (i = 0; i < map_count(c->keys) && !rc; i++) {
		struct chosen_key *k = map_at(c->keys, i);
		const int64_t *id = map_key_at(c->keys, i, &len);

		rc = db_start(d, &q, DB_key_name, err, "i", *id);
		if (rc || (rc = db_next(d, q, err)) <= 0)
			continue;
		k->name = map_text(c->keys, db_str(q, COL_key_name_name));
		db_stop(q);
		k->watched = k->name && metric_is_loss(k->name);
		rc = k->name ? 0 : no_memory(err);
	}
	return rc;
}

int chosen_begin(struct chosen *c, struct db *d, const struct query_runs_opts *o, const int64_t *runs, size_t n,
		 struct err *err)
{
	size_t i, have = 0;
	int rc;

	c->keys = map_new(sizeof(struct chosen_key));
	if (!c->keys)
		return no_memory(err);
	rc = ask(c, d, o, err);
	for (i = 0; i < n && !rc; i++)
		rc = count_run(c, d, runs[i], err);
	if (!rc)
		rc = name_keys(c, d, err);
	for (i = 0; i < map_count(c->keys); i++)
		have += ((struct chosen_key *)map_at(c->keys, i))->runs > 0;
	c->all = o->metrics_max ? have <= o->metrics_max : !o->some_metrics;
	return rc;
}

void chosen_end(struct chosen *c)
{
	map_free(c->keys);
	c->keys = NULL;
}

static int by_key(const void *x, const void *y)
{
	return strcmp(((const struct query_metric *)x)->key, ((const struct query_metric *)y)->key);
}

/* The ids of the run's keys that are loaded. */
static int wanted_ids(const struct chosen *c, struct db *d, int64_t run, struct arena *a, int64_t **ret, size_t *ret_n,
		      struct err *err)
{
	const struct chosen_key *k;
	struct db_rows *q;
	int64_t id;
	int rc;

	*ret_n = 0;
	*ret = arena_array(a, map_count(c->keys) + 1, sizeof **ret);
	if (!*ret)
		return no_memory(err);
	rc = db_start(d, &q, DB_metric_keys_of_run, err, "i", run);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		id = db_i64(q, COL_metric_keys_of_run_key_id);
		k = map_get(c->keys, &id, sizeof id);
		if (k && k->name && (k->asked || k->watched))
			(*ret)[(*ret_n)++] = id;
		rc = 0;
	}
	return rc;
}

int chosen_load(const struct chosen *c, struct db *d, int64_t run_id, struct arena *a, struct query_run *r,
		struct err *err)
{
	struct db_rows *q;
	struct sum sum;
	int64_t *ids;
	size_t n, i;
	int rc = wanted_ids(c, d, run_id, a, &ids, &n, err);

	r->metrics = rc ? NULL : arena_array(a, n + 1, sizeof *r->metrics);
	if (!rc && !r->metrics)
		rc = no_memory(err);
	for (i = 0; i < n && !rc; i++) {
		const struct chosen_key *k = map_get(c->keys, &ids[i], sizeof ids[i]);

		rc = db_start(d, &q, DB_metric_get, err, "ii", ids[i], run_id);
		if (rc || (rc = db_next(d, q, err)) <= 0)
			continue;
		sum_row_read(q, COL_metric_get_count, &sum);
		db_stop(q);
		metric_of(&r->metrics[r->metric_count++], arena_strdup(a, k->name), &sum);
		rc = r->metrics[r->metric_count - 1].key ? 0 : no_memory(err);
	}
	if (!rc && r->metric_count)
		qsort(r->metrics, r->metric_count, sizeof *r->metrics, by_key);
	return rc;
}

static bool is_asked(const struct chosen *c, const char *name)
{
	size_t i;

	for (i = 0; i < map_count(c->keys); i++) {
		const struct chosen_key *k = map_at(c->keys, i);

		if (!k->asked)
			return false; /* those that are asked for were put first */
		if (k->name && !strcmp(k->name, name))
			return true;
	}
	return false;
}

void chosen_trim(const struct chosen *c, struct query_run *r)
{
	size_t i, n = 0;

	if (c->all)
		return;
	for (i = 0; i < r->metric_count; i++)
		if (is_asked(c, r->metrics[i].key))
			r->metrics[n++] = r->metrics[i];
	r->metric_count = n;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct query_key_runs *)x)->key, ((const struct query_key_runs *)y)->key);
}

int chosen_keys(const struct chosen *c, struct arena *a, struct query_runs *ret, struct err *err)
{
	size_t i;

	ret->keys = arena_array(a, map_count(c->keys) + 1, sizeof *ret->keys);
	if (!ret->keys)
		return no_memory(err);
	for (i = 0; i < map_count(c->keys); i++) {
		const struct chosen_key *k = map_at(c->keys, i);

		if (!k->runs || !k->name)
			continue;
		ret->keys[ret->key_count] = (struct query_key_runs){ arena_strdup(a, k->name), k->runs };
		if (!ret->keys[ret->key_count++].key)
			return no_memory(err);
	}
	if (ret->key_count)
		qsort(ret->keys, ret->key_count, sizeof *ret->keys, by_name);
	return 0;
}
