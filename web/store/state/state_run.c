/* SPDX-License-Identifier: Apache-2.0 */
/* state_run.c: runs with their segments, and experiments by name. */
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/store/state/state_inside.h"

#include <limits.h>

#include "tracker/base/clock.h"

static void copy_status(char to[16], const char *from)
{
	size_t n = strlen(from) < 15 ? strlen(from) : 15;

	memcpy(to, from, n);
	to[n] = '\0';
}

/* Reads all segments of a run. */
static int load_state_segments(struct state *st, struct state_run *r, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(st->db, &q, DB_segment_list, err, "i", r->id);

	while (rc >= 0 && (rc = db_next(st->db, q, err)) > 0) {
		struct state_segment s = {
			.number = db_i32(q, COL_segment_list_number),
			.first_step = db_i64(q, COL_segment_list_first_step),
			.first_epoch = db_i64(q, COL_segment_list_first_epoch),
			.hide = { db_i64(q, COL_segment_list_hide_step), db_i64(q, COL_segment_list_hide_epoch) },
			.start_ms = db_time(q, COL_segment_list_start_ms),
			.end_ms = db_time(q, COL_segment_list_end_ms),
			.final = db_i32(q, COL_segment_list_final),
			.world_size = db_i32(q, COL_segment_list_world_size),
		};
		struct state_segment *all = arena_array(st->arena, r->segment_count + 1, sizeof(*all));

		copy_status(s.status, db_str(q, COL_segment_list_status));
		if (r->segment_count)
			memcpy(all, r->segments, r->segment_count * sizeof(*all));
		all[r->segment_count++] = s;
		r->segments = all;
	}
	return rc;
}

/* Resets the cache entry, so that all is read again. */
static void forget_state_run(struct state *st, struct state_run *r)
{
	struct state_run blank = { .id = r->id, .params = -1, .rank_seen = INT_MIN, .slot = ++st->slots,
				   .group = st->group };

	memcpy(blank.uuid, r->uuid, sizeof(blank.uuid));
	*r = blank;
}

static struct state_run *remember_state_run(struct state *st, int64_t id, const char *uuid)
{
	struct state_run *r = map_put(st->runs, &id, sizeof(id));
	struct state_run **by_uuid = map_put(st->run_uuids, uuid, 32);

	*by_uuid = r;
	r->id = id;
	memcpy(r->uuid, uuid, 32);
	forget_state_run(st, r);
	return r;
}

/* Reads a run's row into its cache entry. */
static struct state_run *load_state_run(struct state *st, struct db_rows *q)
{
	struct state_run *r = remember_state_run(st, db_i64(q, COL_run_by_uuid_id), db_str(q, COL_run_by_uuid_uuid));

	r->experiment_id = db_i64(q, COL_run_by_uuid_experiment_id);
	r->name = arena_strdup(st->arena, db_str(q, COL_run_by_uuid_name));
	copy_status(r->status, db_str(q, COL_run_by_uuid_status));
	r->inferred = db_i32(q, COL_run_by_uuid_inferred);
	r->beats = db_i32(q, COL_run_by_uuid_beats);
	r->start_ms = db_time(q, COL_run_by_uuid_start_ms);
	r->end_ms = db_time(q, COL_run_by_uuid_end_ms);
	r->last_ms = db_i64(q, COL_run_by_uuid_last_ms);
	r->last_step = db_i64(q, COL_run_by_uuid_last_step);
	r->segment = db_i32(q, COL_run_by_uuid_segment);
	r->world_size = db_i32(q, COL_run_by_uuid_world_size);
	r->deleted_ms = db_time(q, COL_run_by_uuid_deleted_ms);
	r->keys = db_i64(q, COL_run_by_uuid_keys);
	r->version = db_i64(q, COL_run_by_uuid_version);
	r->archived = db_i32(q, COL_run_by_uuid_archived);
	return r;
}

static int fetch_state_run(struct state *st, struct db_rows *q, struct state_run **ret, struct err *err)
{
	struct state_run *r;
	int rc = db_next(st->db, q, err);

	if (rc <= 0)
		return rc < 0 ? rc : err_set(err, ERR_NOENT, "no such run");
	r = load_state_run(st, q);
	db_stop(q);
	rc = load_state_segments(st, r, err);
	if (!rc)
		*ret = r;
	else
		state_drop(st);
	return rc;
}

/* Starts the query for a row; with other writers a separate statement locks it first. */
static int start_run_by_id(struct state *st, int64_t id, struct db_rows **ret, struct err *err)
{
	int rc = db_run(st->db, DB_run_lock_id, err, "i", id);

	return rc ? rc : db_start(st->db, ret, DB_run_by_id, err, "i", id);
}

static int start_run_by_uuid(struct state *st, const char *uuid, struct db_rows **ret, struct err *err)
{
	int rc = db_run(st->db, DB_run_lock_uuid, err, "t", uuid);

	return rc ? rc : db_start(st->db, ret, DB_run_by_uuid, err, "t", uuid);
}

/* Makes a cached run valid: if another process has written it, it is read again. ERR_NOENT: its row is gone. */
static int make_run_current(struct state *st, struct state_run *r, struct err *err)
{
	struct db_rows *q;
	int rc;

	if (r->group == st->group)
		return 0;
	rc = start_run_by_id(st, r->id, &q, err);
	if (rc)
		return rc;
	rc = db_next(st->db, q, err);
	if (rc > 0 && db_i64(q, COL_run_by_uuid_version) == r->version) {
		r->group = st->group;
		db_stop(q);
		return 0;
	}
	if (rc <= 0)
		return rc < 0 ? rc : err_set(err, ERR_NOENT, "no such run");
	r = load_state_run(st, q);
	db_stop(q);
	return load_state_segments(st, r, err);
}

int state_lock(struct state *st, const char *const *uuids, size_t n, struct err *err)
{
	struct state_run *r;
	struct db_rows *q;
	struct buf ids;
	size_t i;
	int rc;

	array_begin(&ids);
	for (i = 0; i < n && st->shared; i++)
		if (text_is_hex(uuids[i], 32, 32))
			array_text(&ids, uuids[i]);
	if (ids.len == 1) {
		buf_done(&ids);
		return 0;
	}
	rc = db_start(st->db, &q, DB_run_lock, err, "t", array_end(&ids));
	while (rc >= 0 && (rc = db_next(st->db, q, err)) > 0) {
		int64_t id = db_i64(q, COL_run_lock_id);

		r = map_get(st->runs, &id, sizeof(id));
		if (r && r->version == db_i64(q, COL_run_lock_version))
			r->group = st->group;
	}
	buf_done(&ids);
	return rc;
}

int state_run(struct state *st, const char *uuid, struct state_run **ret, struct err *err)
{
	struct state_run **known = map_get(st->run_uuids, uuid, 32);
	struct db_rows *q;
	int64_t id;
	int rc;

	if (known && !(*known)->gone) {
		*ret = *known;
		rc = make_run_current(st, *known, err);
	} else {
		rc = known ? 0 : start_run_by_uuid(st, uuid, &q, err);
		if (!rc)
			rc = known ? ERR_NOENT : fetch_state_run(st, q, ret, err);
	}
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
	struct state_run *known = map_get(st->runs, &id, sizeof(id));
	struct db_rows *q;
	int rc;

	if (known) {
		*ret = known;
		return make_run_current(st, known, err);
	}
	rc = start_run_by_id(st, id, &q, err);
	return rc ? rc : fetch_state_run(st, q, ret, err);
}

/* The next id is above all existing and removed ones, so that a remembered id never means another row. */
static int draw_next_id(struct db *d, enum db_query above, int64_t *ret, struct err *err)
{
	int rc = db_int(d, ret, above, err, "");

	return rc < 0 ? rc : 0;
}

int state_expect_runs(struct state *st, size_t n, struct err *err)
{
	return n ? db_start(st->db, &st->next_runs, DB_run_next_ids, err, "i", (int64_t)n) : 0;
}

static int draw_run_number(struct state *st, int64_t *ret, struct err *err)
{
	int rc = st->next_runs ? db_next(st->db, st->next_runs, err) : 0;

	if (rc > 0)
		*ret = db_i64(st->next_runs, COL_run_next_ids_id);
	else
		st->next_runs = NULL;
	return rc ? rc < 0 ? rc : 0 : draw_next_id(st->db, DB_run_next_id, ret, err);
}

int state_run_add(struct state *st, const struct state_new_run *n, struct state_run **ret, struct err *err)
{
	struct state_run *r;
	int64_t experiment = n->experiment_id;
	bool existed;
	int64_t id = 0;
	int rc = n->experiment ? state_experiment(st, n->experiment, &experiment, &existed, err) : 0;

	if (!rc)
		rc = draw_run_number(st, &id, err);
	if (!rc)
		rc = db_run(st->db, DB_run_add, err, "itittit", id, n->uuid, experiment, n->name, n->status,
			    n->start_ms, n->user ? n->user : "");
	if (rc)
		return rc;
	r = remember_state_run(st, id, n->uuid);
	r->experiment_id = experiment;
	r->name = arena_strdup(st->arena, n->name);
	copy_status(r->status, n->status);
	r->beats = n->beats;
	r->start_ms = n->start_ms;
	r->end_ms = INT64_MIN;
	r->deleted_ms = INT64_MIN;
	r->last_ms = n->beats ? 0 : clock_wall_ms();
	r->last_step = -1;
	r->params = 0;
	state_mark(st, r, true);
	*ret = r;
	return 0;
}

int state_run_rename(struct state *st, struct state_run *r, const char *name, struct err *err)
{
	int rc;

	r->name = arena_strdup(st->arena, name);
	state_mark(st, r, true);
	rc = db_run(st->db, DB_run_name_put, err, "it", r->id, r->name);
	return rc ? rc : db_run(st->db, DB_run_name_tag_put, err, "it", r->id, r->name);
}

int state_run_move(struct state *st, struct state_run *r, const char *experiment, struct err *err)
{
	bool existed;
	int rc = state_experiment(st, experiment, &r->experiment_id, &existed, err);

	state_mark(st, r, true);
	if (!rc)
		rc = db_run(st->db, DB_run_models_move, err, "iit", r->id, r->experiment_id, r->uuid);
	return rc ? rc : db_run(st->db, DB_run_experiment_put, err, "ii", r->id, r->experiment_id);
}

void state_mark(struct state *st, struct state_run *r, bool changed)
{
	r->changed = r->changed || changed;
	if (r->marked)
		return;
	r->marked = true;
	mem_push(&st->dirty_runs.items, &st->dirty_runs.count, &st->dirty_runs.cap, r);
}

/* Bounds the rows that readers of the run scan. */
#define FULL_ROWS 1000
#define FULL_POINTS 50000

static bool has_full_log(const struct state_run *r)
{
	return r->log_rows >= FULL_ROWS || r->log_points >= FULL_POINTS;
}

void state_logged(struct state *st, struct state_run *r, int64_t points)
{
	bool before = has_full_log(r);

	r->log_rows++;
	r->log_points += points;
	if (!before && has_full_log(r) && st->full_count < STATE_FULL_MAX)
		st->full[st->full_count++] = r->id;
	else if (!before && has_full_log(r))
		r->log_rows = r->log_points = 0; /* the list is full; the run is found again later */
}

size_t state_full(const struct state *st, const int64_t **ret)
{
	*ret = st->full;
	return st->full_count;
}

void state_folded(struct state *st)
{
	struct state_run *r;

	while (st->full_count) {
		r = map_get(st->runs, &st->full[--st->full_count], sizeof(st->full[0]));
		if (r)
			r->log_rows = r->log_points = 0;
	}
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
		      s->first_epoch, s->hide.step, s->hide.epoch, s->start_ms, s->end_ms, s->status, (int64_t)s->final,
		      (int64_t)s->world_size);
}

int state_segment_add(struct state *st, struct state_run *r, const struct state_segment *s, struct err *err)
{
	struct state_segment *all = arena_array(st->arena, r->segment_count + 1, sizeof(*all));
	size_t at = 0;

	while (at < r->segment_count && r->segments[at].number < s->number)
		at++;
	if (r->segment_count) {
		memcpy(all, r->segments, at * sizeof(*all));
		memcpy(all + at + 1, r->segments + at, (r->segment_count - at) * sizeof(*all));
	}
	all[at] = *s;
	r->segments = all;
	r->segment_count++;
	return state_segment_save(st, r, s, err);
}

const char *state_made_experiment(struct state *st, int64_t *ret)
{
	const char *name = st->made_name;

	*ret = st->made_experiment;
	st->made_name = NULL;
	return name;
}

int state_experiment(struct state *st, const char *name, int64_t *ret, bool *ret_existed, struct err *err)
{
	int rc = db_int(st->db, ret, DB_experiment_by_name, err, "t", name);

	*ret_existed = rc > 0;
	if (rc)
		return rc < 0 ? rc : 0;
	rc = draw_next_id(st->db, DB_experiment_next_id, ret, err);
	if (!rc)
		rc = db_run(st->db, DB_experiment_add, err, "iti", *ret, name, clock_wall_ms());
	if (!rc && db_changed(st->db)) {
		st->made_experiment = *ret;
		st->made_name = name;
		return 0;
	}
	if (rc)
		return rc;
	*ret_existed = true;
	rc = db_int(st->db, ret, DB_experiment_by_name, err, "t", name);
	return rc < 0 ? rc : rc ? 0 : err_set(err, ERR_BUSY, "experiment '%.100s' was just removed", name);
}
