/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: the writer's cache of rows, loaded on demand: lifetime, and the flush of changes. */
#include "tracker/mem/mem.h"
#include "web/store/state/state_inside.h"

#include <stdlib.h>

#define CACHE_MAX 20000 /* entries of one kind kept between commits */
#define ENTRY_BYTES 96	/* overhead of an entry: key, hash, index */

struct state *state_new(struct db *db, size_t cache_bytes)
{
	struct state *st = mem_zalloc(sizeof(*st));

	st->db = db;
	st->cache_bytes = cache_bytes;
	st->rev = -1;
	st->arena = arena_new();
	st->runs = map_new(sizeof(struct state_run));
	st->run_uuids = map_new(sizeof(struct state_run *));
	st->keys = map_new(sizeof(int64_t));
	st->series = map_new(sizeof(int64_t));
	st->run_keys = map_new(1);
	st->recent = map_new(sizeof(struct state_recent));
	st->metrics = map_new(sizeof(struct state_metric));
	st->writers = map_new(sizeof(struct state_writer));
	return st;
}

void state_free(struct state *st)
{
	if (!st)
		return;
	map_free(st->runs);
	map_free(st->run_uuids);
	map_free(st->keys);
	map_free(st->series);
	map_free(st->run_keys);
	map_free(st->recent);
	map_free(st->metrics);
	map_free(st->writers);
	arena_free(st->arena);
	free(st->dirty_runs.items);
	free(st->dirty_metrics.items);
	free(st);
}

struct db *state_db(struct state *st)
{
	return st->db;
}

void state_drop(struct state *st)
{
	map_clear(st->runs);
	map_clear(st->run_uuids);
	map_clear(st->keys);
	map_clear(st->series);
	map_clear(st->run_keys);
	map_clear(st->recent);
	map_clear(st->metrics);
	map_clear(st->writers);
	arena_free(st->arena);
	st->arena = arena_new();
	st->dirty_runs.count = 0;
	st->dirty_metrics.count = 0;
	st->full_count = 0;
	st->rev = -1;
}

/* On a remote database, reading a row again costs more than its memory. */
static void trim_shared_state(struct state *st)
{
	const size_t bytes = map_count(st->runs) * (sizeof(struct state_run) + 2 * ENTRY_BYTES) +
			     map_count(st->metrics) * (sizeof(struct state_metric) + ENTRY_BYTES) +
			     map_count(st->recent) * (sizeof(struct state_recent) + ENTRY_BYTES) +
			     (map_count(st->keys) + map_count(st->series) + map_count(st->run_keys) +
			      map_count(st->writers)) * ENTRY_BYTES;

	if (bytes > st->cache_bytes)
		state_drop(st);
}

void state_trim(struct state *st)
{
	struct map *const alone[] = { st->keys, st->series, st->run_keys, st->metrics, st->writers };
	size_t i;

	if (db_shared(st->db)) {
		trim_shared_state(st);
		return;
	}
	if (map_count(st->runs) > CACHE_MAX)
		state_drop(st);
	for (i = 0; i < sizeof(alone) / sizeof(alone[0]); i++)
		if (map_count(alone[i]) > CACHE_MAX)
			map_clear(alone[i]);
}

/* The run is locked, so no other process has added the row. */
static void add_metric_row(struct db_batch *known, struct db_batch *fresh, struct state_metric *m)
{
	db_batch_add(m->stored ? known : fresh, m->key_id, m->run_id, SUM_ROW_ARGS(&m->sum));
	m->stored = true;
}

static int put_metric(struct state *st, struct state_metric *m, struct err *err)
{
	if (m->sum.count)
		return db_run(st->db, DB_metric_put, err, "ii" SUM_ROW_FMT, m->key_id, m->run_id,
			      SUM_ROW_ARGS(&m->sum));
	m->stored = false;
	return db_run(st->db, DB_metric_delete, err, "ii", m->key_id, m->run_id);
}

int state_flush_metrics(struct state *st, struct err *err)
{
	struct db_batch known, fresh;
	size_t i;
	int rc = 0;

	db_batch_init(&known, "ii" SUM_ROW_FMT);
	db_batch_init(&fresh, "ii" SUM_ROW_FMT);
	for (i = 0; i < st->dirty_metrics.count && !rc; i++) {
		struct state_metric *m = st->dirty_metrics.items[i];

		m->marked = false;
		if (db_shared(st->db) && m->sum.count)
			add_metric_row(&known, &fresh, m);
		else
			rc = put_metric(st, m, err);
	}
	if (!rc)
		rc = db_batch_run(&fresh, st->db, DB_metrics_add, err);
	if (!rc)
		rc = db_batch_run(&known, st->db, DB_metrics_put, err);
	db_batch_drop(&known);
	db_batch_drop(&fresh);
	st->dirty_metrics.count = 0;
	return rc;
}

/* Takes n numbers of the change counter, one for each changed or removed run; *ret: the last. With other writers
 * their commits wait from here on. So this comes last, and numbers ascend in the order of commits. */
static int take_revs(struct state *st, int64_t n, int64_t *ret, struct err *err)
{
	int rc;

	if (db_shared(st->db))
		rc = db_int(st->db, ret, DB_rev_take, err, "i", n);
	else
		rc = st->rev < 0 ? db_int(st->db, &st->rev, DB_rev_get, err, "") : 0;
	if (rc < 0 || db_shared(st->db))
		return rc < 0 ? rc : 0;
	*ret = st->rev += n;
	return 0;
}

static int64_t count_changed_runs(const struct state *st)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < st->dirty_runs.count; i++)
		n += ((const struct state_run *)st->dirty_runs.items[i])->changed;
	return n;
}

#define RUN_FMT "itiixxiiiixii"
#define RUN_ARGS(r, rev)                                                                                               \
	(r)->id, (r)->status, (int64_t)(r)->inferred, (int64_t)(r)->beats, (r)->start_ms, (r)->end_ms, (r)->last_ms,   \
		(r)->last_step, (int64_t)(r)->segment, (int64_t)(r)->world_size, (r)->deleted_ms,                      \
		(r)->changed ? (rev) : INT64_C(-1), (r)->keys

static int put_changed_run(struct state *st, struct db_batch *together, const struct state_run *r, int64_t rev,
			   struct err *err)
{
	if (r->gone)
		return db_run(st->db, DB_gone_rev_put, err, "ii", r->id, rev);
	if (!db_shared(st->db))
		return db_run(st->db, DB_run_put, err, RUN_FMT, RUN_ARGS(r, rev));
	db_batch_add(together, RUN_ARGS(r, rev));
	return 0;
}

int state_flush(struct state *st, uint64_t *ret_rev, struct err *err)
{
	int64_t rev = 0, changed = count_changed_runs(st);
	struct db_batch runs;
	size_t i;
	int rc = state_flush_metrics(st, err);

	*ret_rev = 0;
	if (!rc && changed)
		rc = take_revs(st, changed, &rev, err);
	if (!rc && changed)
		*ret_rev = (uint64_t)rev;
	rev -= changed;
	db_batch_init(&runs, RUN_FMT);
	for (i = 0; i < st->dirty_runs.count && !rc; i++) {
		struct state_run *r = st->dirty_runs.items[i];

		rev += r->changed;
		rc = put_changed_run(st, &runs, r, rev, err);
		r->version++;
		r->marked = false;
		r->changed = false;
	}
	if (!rc)
		rc = db_batch_run(&runs, st->db, DB_runs_put, err);
	db_batch_drop(&runs);
	st->dirty_runs.count = 0;
	return rc;
}
