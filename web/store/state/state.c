/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: the writer's cache of rows, loaded on demand: lifetime, and the flush of changes. */
#include "tracker/mem/mem.h"
#include "web/store/state/state_inside.h"

#include <stdlib.h>

#define ENTRY_BYTES 96 /* overhead of an entry: key, hash, index */

struct state *state_new(struct db *db, size_t cache_bytes)
{
	struct state *st = mem_zalloc(sizeof(*st));

	st->db = db;
	st->shared = db_shared(db);
	st->session = db_session(db);
	st->cache_bytes = cache_bytes;
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
}

void state_begin(struct state *st)
{
	if (st->session != db_session(st->db))
		state_drop(st);
	st->session = db_session(st->db);
	st->group += st->shared;
	st->next_runs = NULL;
}

void state_trim(struct state *st)
{
	const size_t bytes = map_count(st->runs) * (sizeof(struct state_run) + 2 * ENTRY_BYTES) +
			     map_count(st->metrics) * (sizeof(struct state_metric) + ENTRY_BYTES) +
			     map_count(st->recent) * (sizeof(struct state_recent) + ENTRY_BYTES) +
			     (map_count(st->keys) + map_count(st->series) + map_count(st->run_keys) +
			      map_count(st->writers)) * ENTRY_BYTES;

	if (bytes > st->cache_bytes)
		state_drop(st);
}

int state_flush_metrics(struct state *st, struct err *err)
{
	struct db_batch known, fresh;
	size_t i;
	int rc = 0;

	db_batch_init(&known, st->db, DB_metrics_put, "ii" SUM_ROW_FMT);
	db_batch_init(&fresh, st->db, DB_metrics_add, "ii" SUM_ROW_FMT);
	for (i = 0; i < st->dirty_metrics.count && !rc; i++) {
		struct state_metric *m = st->dirty_metrics.items[i];

		if (m->sum.count) /* the run is locked, so no other process has added the row */
			rc = db_batch_add(m->stored ? &known : &fresh, err, m->key_id, m->run_id,
					  SUM_ROW_ARGS(&m->sum));
		else
			rc = db_run(st->db, DB_metric_delete, err, "ii", m->key_id, m->run_id);
		m->marked = false;
		m->stored = m->sum.count;
	}
	if (!rc)
		rc = db_batch_run(&fresh, err);
	if (!rc)
		rc = db_batch_run(&known, err);
	db_batch_drop(&known);
	db_batch_drop(&fresh);
	st->dirty_metrics.count = 0;
	return rc;
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

int state_flush(struct state *st, uint64_t *ret_rev, struct err *err)
{
	int64_t rev = 0, changed = count_changed_runs(st);
	struct db_batch runs;
	size_t i;
	int rc = state_flush_metrics(st, err);

	*ret_rev = 0;
	/* One number of the change counter for each changed or removed run. With other writers their commits wait from
	 * here on. So this comes last, and numbers ascend in the order of commits. */
	if (!rc && changed && (rc = db_int(st->db, &rev, DB_rev_take, err, "i", changed)) > 0) {
		*ret_rev = (uint64_t)rev;
		rc = 0;
	}
	rev -= changed;
	db_batch_init(&runs, st->db, DB_runs_put, RUN_FMT);
	for (i = 0; i < st->dirty_runs.count && !rc; i++) {
		struct state_run *r = st->dirty_runs.items[i];

		rev += r->changed;
		rc = r->gone ? db_run(st->db, DB_gone_rev_put, err, "ii", r->id, rev)
			     : db_batch_add(&runs, err, RUN_ARGS(r, rev));
		r->version++;
		r->marked = false;
		r->changed = false;
	}
	if (!rc)
		rc = db_batch_run(&runs, err);
	db_batch_drop(&runs);
	st->dirty_runs.count = 0;
	return rc;
}
