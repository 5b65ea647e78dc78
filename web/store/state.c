/* state.c: the writer's memory of rows, loaded when first needed. */
#include "web/store/state.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/event/limits.h"
#include "web/store/map.h"

#define CACHE_MAX 20000 /* entries of one kind that are kept between commits */

struct pointer_list {
	void **items;
	size_t count, cap;
};

struct state {
	struct db *db;
	struct arena *arena; /* texts and segments of runs */
	struct map *runs, *run_uuids, *keys, *series, *metrics, *writers;
	struct pointer_list dirty_runs, dirty_metrics;
	bool out_of_memory;
};

int state_new(struct state **ret, struct db *db, struct err *err)
{
	struct state *st = calloc(1, sizeof *st);

	if (!st)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	st->db = db;
	st->arena = arena_new();
	st->runs = map_new(sizeof(struct state_run));
	st->run_uuids = map_new(sizeof(struct state_run *));
	st->keys = map_new(sizeof(int64_t));
	st->series = map_new(sizeof(int64_t));
	st->metrics = map_new(sizeof(struct state_metric));
	st->writers = map_new(sizeof(struct state_writer));
	if (!st->arena || !st->runs || !st->run_uuids || !st->keys || !st->series || !st->metrics || !st->writers) {
		state_free(st);
		return err_set(err, ERR_NOMEM, "store: out of memory");
	}
	*ret = st;
	return 0;
}

void state_free(struct state *st)
{
	if (!st)
		return;
	map_free(st->runs);
	map_free(st->run_uuids);
	map_free(st->keys);
	map_free(st->series);
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
	struct arena *fresh = arena_new();

	map_clear(st->runs);
	map_clear(st->run_uuids);
	map_clear(st->keys);
	map_clear(st->series);
	map_clear(st->metrics);
	map_clear(st->writers);
	if (fresh) {
		arena_free(st->arena);
		st->arena = fresh;
	}
	st->dirty_runs.count = 0;
	st->dirty_metrics.count = 0;
	st->out_of_memory = false;
}

void state_trim(struct state *st)
{
	if (map_count(st->runs) > CACHE_MAX || map_count(st->keys) > CACHE_MAX || map_count(st->series) > CACHE_MAX ||
	    map_count(st->metrics) > CACHE_MAX || map_count(st->writers) > CACHE_MAX)
		state_drop(st);
}

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "store: out of memory");
}

static void list_add(struct state *st, struct pointer_list *l, void *item)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		void **grown = realloc(l->items, cap * sizeof *grown);

		if (!grown) {
			st->out_of_memory = true;
			return;
		}
		l->items = grown;
		l->cap = cap;
	}
	l->items[l->count++] = item;
}

static void copy_status(char to[16], const char *from)
{
	size_t n = strlen(from) < 15 ? strlen(from) : 15;

	memcpy(to, from, n);
	to[n] = '\0';
}

static int load_segments(struct state *st, struct state_run *r, struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(st->db, &q, DB_segment_list, err, "i", r->id);

	while (!rc && (rc = db_next(st->db, q, err)) > 0) {
		struct state_segment s = {
			.number = sqlite3_column_int(q, 0),
			.first_step = sqlite3_column_int64(q, 1),
			.first_epoch = sqlite3_column_int64(q, 2),
			.hide_step = sqlite3_column_int64(q, 3),
			.hide_epoch = sqlite3_column_int64(q, 4),
			.start_ms = db_time(q, 5),
			.end_ms = db_time(q, 6),
			.final = sqlite3_column_int(q, 8),
			.world_size = sqlite3_column_int(q, 9),
		};
		struct state_segment *all = arena_array(st->arena, r->segment_count + 1, sizeof *all);

		if (!all) {
			db_stop(q);
			return no_memory(err);
		}
		copy_status(s.status, (const char *)sqlite3_column_text(q, 7));
		if (r->segment_count)
			memcpy(all, r->segments, r->segment_count * sizeof *all);
		all[r->segment_count++] = s;
		r->segments = all;
		rc = 0;
	}
	return rc;
}

static struct state_run *remember(struct state *st, int64_t id, const char *uuid)
{
	struct state_run *r = map_put(st->runs, &id, sizeof id);
	struct state_run **by_uuid = map_put(st->run_uuids, uuid, 32);

	if (!r || !by_uuid)
		return NULL;
	*by_uuid = r;
	memset(r, 0, sizeof *r);
	r->id = id;
	memcpy(r->uuid, uuid, 32);
	r->params = r->keys = -1;
	return r;
}

static int load_run(struct state *st, sqlite3_stmt *q, struct state_run **ret, struct err *err)
{
	struct state_run *r = remember(st, sqlite3_column_int64(q, 0), (const char *)sqlite3_column_text(q, 1));

	if (!r)
		return no_memory(err);
	r->experiment_id = sqlite3_column_int64(q, 2);
	r->name = arena_strdup(st->arena, (const char *)sqlite3_column_text(q, 3));
	copy_status(r->status, (const char *)sqlite3_column_text(q, 4));
	r->inferred = sqlite3_column_int(q, 5);
	r->beats = sqlite3_column_int(q, 6);
	r->start_ms = db_time(q, 7);
	r->end_ms = db_time(q, 8);
	r->last_ms = sqlite3_column_int64(q, 9);
	r->last_step = sqlite3_column_int64(q, 10);
	r->segment = sqlite3_column_int(q, 11);
	r->world_size = sqlite3_column_int(q, 12);
	r->deleted_ms = db_time(q, 13);
	*ret = r;
	return r->name ? 0 : no_memory(err);
}

static int fetch_run(struct state *st, sqlite3_stmt *q, struct state_run **ret, struct err *err)
{
	struct state_run *r = NULL;
	int rc = db_next(st->db, q, err);

	if (rc <= 0)
		return rc < 0 ? rc : err_set(err, ERR_NOENT, "no such run");
	rc = load_run(st, q, &r, err);
	db_stop(q);
	if (!rc)
		rc = load_segments(st, r, err);
	if (!rc)
		*ret = r;
	else
		state_drop(st);
	return rc;
}

int state_run(struct state *st, const char *uuid, struct state_run **ret, struct err *err)
{
	struct state_run **known = map_get(st->run_uuids, uuid, 32);
	sqlite3_stmt *q;
	int64_t id;
	int rc;

	if (known && !(*known)->gone) {
		*ret = *known;
		return 0;
	}
	rc = known ? 0 : db_start(st->db, &q, DB_run_by_uuid, err, "t", uuid);
	if (!rc)
		rc = known ? ERR_NOENT : fetch_run(st, q, ret, err);
	if (rc != ERR_NOENT)
		return rc;
	rc = db_int(st->db, &id, DB_gone_get, err, "t", uuid);
	if (rc < 0)
		return rc;
	return rc ? err_set(err, ERR_GONE, "run %s was deleted and removed for good", uuid)
		  : err_set(err, ERR_NOENT, "there is no run %s", uuid);
}

int state_run_by_id(struct state *st, int64_t id, struct state_run **ret, struct err *err)
{
	struct state_run *known = map_get(st->runs, &id, sizeof id);
	sqlite3_stmt *q;
	int rc;

	if (known) {
		*ret = known;
		return 0;
	}
	rc = db_start(st->db, &q, DB_run_by_id, err, "i", id);
	return rc ? rc : fetch_run(st, q, ret, err);
}

int state_run_add(struct state *st, const struct state_new_run *n, struct state_run **ret, struct err *err)
{
	struct state_run *r;
	int64_t experiment = n->experiment_id;
	bool existed;
	int rc = n->experiment ? state_experiment(st, n->experiment, &experiment, &existed, err) : 0;

	if (!rc)
		rc = db_run(st->db, DB_run_add, err, "tittit", n->uuid, experiment, n->name, n->status, n->start_ms,
			    n->user ? n->user : "");
	if (rc)
		return rc;
	r = remember(st, db_last_id(st->db), n->uuid);
	if (!r)
		return no_memory(err);
	r->experiment_id = experiment;
	r->name = arena_strdup(st->arena, n->name);
	copy_status(r->status, n->status);
	r->beats = n->beats;
	r->start_ms = n->start_ms;
	r->end_ms = INT64_MIN;
	r->deleted_ms = INT64_MIN;
	r->last_ms = n->beats ? 0 : clock_wall_ms();
	r->last_step = -1;
	if (!r->name)
		return no_memory(err);
	state_mark(st, r, true);
	*ret = r;
	return 0;
}

int state_run_rename(struct state *st, struct state_run *r, const char *name, struct err *err)
{
	char *copy = arena_strdup(st->arena, name);
	int rc;

	if (!copy)
		return no_memory(err);
	r->name = copy;
	state_mark(st, r, true);
	rc = db_run(st->db, DB_run_name_put, err, "it", r->id, r->name);
	return rc ? rc : db_run(st->db, DB_run_name_tag_put, err, "it", r->id, r->name);
}

void state_mark(struct state *st, struct state_run *r, bool changed)
{
	r->changed = r->changed || changed;
	if (r->marked)
		return;
	r->marked = true;
	list_add(st, &st->dirty_runs, r);
}

struct state_segment *state_segment(struct state_run *r, int number)
{
	size_t i;

	for (i = 0; i < r->segment_count; i++)
		if (r->segments[i].number == number)
			return &r->segments[i];
	return NULL;
}

int state_segment_save(struct state *st, const struct state_run *r, const struct state_segment *s, struct err *err)
{
	return db_run(st->db, DB_segment_put, err, "iiiiiixxtii", r->id, (int64_t)s->number, s->first_step,
		      s->first_epoch, s->hide_step, s->hide_epoch, s->start_ms, s->end_ms, s->status,
		      (int64_t)s->final, (int64_t)s->world_size);
}

struct state_segment *state_segment_add(struct state *st, struct state_run *r, const struct state_segment *s,
					struct err *err)
{
	struct state_segment *all = arena_array(st->arena, r->segment_count + 1, sizeof *all);
	size_t at = 0;

	if (!all) {
		no_memory(err);
		return NULL;
	}
	while (at < r->segment_count && r->segments[at].number < s->number)
		at++;
	if (r->segment_count) {
		memcpy(all, r->segments, at * sizeof *all);
		memcpy(all + at + 1, r->segments + at, (r->segment_count - at) * sizeof *all);
	}
	all[at] = *s;
	r->segments = all;
	r->segment_count++;
	return state_segment_save(st, r, s, err) ? NULL : &all[at];
}

int state_experiment(struct state *st, const char *name, int64_t *ret, bool *ret_existed, struct err *err)
{
	int rc = db_int(st->db, ret, DB_experiment_by_name, err, "t", name);

	*ret_existed = rc > 0;
	if (rc)
		return rc < 0 ? rc : 0;
	rc = db_run(st->db, DB_experiment_add, err, "ti", name, clock_wall_ms());
	if (!rc)
		*ret = db_last_id(st->db);
	return rc;
}

int state_key(struct state *st, const char *name, int64_t *ret, struct err *err)
{
	int64_t *known = map_get(st->keys, name, strlen(name)), id;
	int rc;

	if (known) {
		*ret = *known;
		return 0;
	}
	rc = db_int(st->db, &id, DB_key_by_name, err, "t", name);
	if (rc < 0)
		return rc;
	if (!rc) {
		rc = db_run(st->db, DB_key_add, err, "t", name);
		if (rc)
			return rc;
		id = db_last_id(st->db);
	}
	known = map_put(st->keys, name, strlen(name));
	if (!known)
		return no_memory(err);
	*known = id;
	*ret = id;
	return 0;
}

int state_count_params(struct state *st, struct state_run *r, struct err *err)
{
	int rc = r->params >= 0 ? 0 : db_int(st->db, &r->params, DB_params_of_run_count, err, "i", r->id);

	return rc < 0 ? rc : 0;
}

/* Counts the key of a series that is to be made, unless another rank or segment has it. */
static int count_key(struct state *st, struct state_run *r, const struct state_series_key *k, struct err *err)
{
	int64_t any;
	int rc = r->keys >= 0 ? 0 : db_int(st->db, &r->keys, DB_keys_of_run_count, err, "i", r->id);

	if (rc >= 0)
		rc = db_int(st->db, &any, DB_series_has_key, err, "ii", k->run_id, k->key_id);
	if (rc)
		return rc < 0 ? rc : 0;
	if (r->keys >= LIMIT_keys_per_run)
		return err_set(err, ERR_LIMIT, "run %s has %d metric keys, and may have no more", r->uuid, (int)LIMIT_keys_per_run);
	r->keys++;
	return 0;
}

int state_series(struct state *st, struct state_run *r, const struct state_series_key *k, int64_t *ret, struct err *err)
{
	int64_t *known = map_get(st->series, k, sizeof *k), id;
	int rc;

	if (known) {
		*ret = *known;
		return 0;
	}
	rc = db_int(st->db, &id, DB_series_find, err, "iiii", k->run_id, k->key_id, (int64_t)k->rank,
		    (int64_t)k->segment);
	if (rc < 0)
		return rc;
	if (!rc) {
		rc = count_key(st, r, k, err);
		if (!rc)
			rc = db_run(st->db, DB_series_add, err, "iiii", k->run_id, k->key_id, (int64_t)k->rank,
			    (int64_t)k->segment);
		if (rc)
			return rc;
		id = db_last_id(st->db);
	}
	known = map_put(st->series, k, sizeof *k);
	if (!known)
		return no_memory(err);
	*known = id;
	*ret = id;
	return 0;
}

int state_metric(struct state *st, int64_t run_id, int64_t key_id, struct state_metric **ret, struct err *err)
{
	int64_t name[2] = { run_id, key_id };
	struct state_metric *m = map_put(st->metrics, name, sizeof name);
	sqlite3_stmt *q;
	int rc;

	if (!m)
		return no_memory(err);
	if (!m->loaded) {
		m->run_id = run_id;
		m->key_id = key_id;
		sum_init(&m->sum);
		rc = db_start(st->db, &q, DB_metric_get, err, "ii", key_id, run_id);
		if (!rc && (rc = db_next(st->db, q, err)) > 0) {
			db_sum(q, 0, &m->sum);
			db_stop(q);
		}
		if (rc < 0)
			return rc;
		m->loaded = true;
	}
	*ret = m;
	return 0;
}

void state_metric_mark(struct state *st, struct state_metric *m)
{
	if (m->marked)
		return;
	m->marked = true;
	list_add(st, &st->dirty_metrics, m);
}

int state_writer(struct state *st, int64_t run_id, const char *uuid, struct state_writer **ret, struct err *err)
{
	char name[40];
	struct state_writer *w;
	sqlite3_stmt *q;
	int rc;

	memcpy(name, &run_id, 8);
	memcpy(name + 8, uuid, 32);
	w = map_put(st->writers, name, sizeof name);
	if (!w)
		return no_memory(err);
	if (!w->loaded) {
		rc = db_start(st->db, &q, DB_writer_get, err, "it", run_id, uuid);
		if (!rc && (rc = db_next(st->db, q, err)) > 0) {
			w->id = sqlite3_column_int64(q, 0);
			w->rank = sqlite3_column_int(q, 1);
			w->segment = sqlite3_column_int(q, 2);
			w->durable = (uint64_t)sqlite3_column_int64(q, 3);
			w->ordered = sqlite3_column_int(q, 4);
			w->loaded = true;
			db_stop(q);
		}
		if (rc < 0)
			return rc;
	}
	*ret = w;
	return 0;
}

int state_flush_metrics(struct state *st, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < st->dirty_metrics.count && !rc; i++) {
		struct state_metric *m = st->dirty_metrics.items[i];

		m->marked = false;
		if (m->sum.count)
			rc = db_run(st->db, DB_metric_put, err, "ii" DB_SUM_FMT, m->key_id, m->run_id, DB_SUM_ARGS(&m->sum));
		else
			rc = db_run(st->db, DB_metric_delete, err, "ii", m->key_id, m->run_id);
	}
	st->dirty_metrics.count = 0;
	return rc;
}

int state_flush(struct state *st, uint64_t *rev, struct err *err)
{
	size_t i;
	int rc = state_flush_metrics(st, err);

	for (i = 0; i < st->dirty_runs.count && !rc; i++) {
		struct state_run *r = st->dirty_runs.items[i];

		if (r->changed)
			++*rev;
		rc = r->gone ? db_run(st->db, DB_gone_rev_put, err, "ii", r->id, (int64_t)*rev) :
			db_run(st->db, DB_run_put, err, "itiixxiiiixi", r->id, r->status, (int64_t)r->inferred,
			    (int64_t)r->beats, r->start_ms, r->end_ms, r->last_ms, r->last_step, (int64_t)r->segment,
			    (int64_t)r->world_size, r->deleted_ms, r->changed ? (int64_t)*rev : INT64_C(-1));
		r->marked = false;
		r->changed = false;
	}
	st->dirty_runs.count = 0;
	if (!rc && st->out_of_memory)
		rc = no_memory(err);
	return rc;
}
