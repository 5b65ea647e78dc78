/* SPDX-License-Identifier: Apache-2.0 */
/* state_sets.c: looks up and adds what a batch of points needs in sets, with a fixed number of round trips. Only for
 * remote databases; in this process single lookups are cheap. */
#include "web/store/state/state_inside.h"

#include "tracker/event/event.h"

#define SMALL 2 /* up to this many are looked up one by one, if the run has series */

/* --- keys --------------------------------------------------------------------------------------------------- */

static size_t list_unknown_keys(struct buf *b, const struct state *st, const char *const *names, size_t n)
{
	size_t i, unknown = 0;

	array_begin(b);
	for (i = 0; i < n; i++) {
		if (map_get(st->keys, names[i], strlen(names[i])))
			continue;
		array_text(b, names[i]);
		unknown++;
	}
	return unknown;
}

static int remember_keys(struct state *st, struct db *d, enum db_query query, const char *names, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, query, err, "t", names);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		const char *name = db_str(q, COL_keys_by_name_name);
		int64_t *id = map_put(st->keys, name, strlen(name));

		*id = db_i64(q, COL_keys_by_name_id);
	}
	return rc;
}

int state_expect_keys(struct state *st, const char *const *names, size_t n, struct err *err)
{
	struct buf b;
	int rc = 0;

	if (!st->shared || n <= SMALL)
		return 0;
	if (list_unknown_keys(&b, st, names, n) > SMALL)
		rc = remember_keys(st, st->db, DB_keys_by_name, array_end(&b), err);
	buf_done(&b);
	if (!rc && list_unknown_keys(&b, st, names, n) > SMALL) /* like state_key does it for one */
		rc = remember_keys(st, db_alone(st->db), DB_keys_add, array_end(&b), err);
	buf_done(&b);
	return rc;
}

/* --- series ------------------------------------------------------------------------------------------------- */

struct expected {
	struct state *st;
	struct state_run *r;
	const struct state_expected *all;
	size_t count;
	int segment;
	bool first; /* the run is locked and has no series, so nothing needs a lookup */
	struct err *err;
};

static int64_t expected_key_id(const struct expected *e, size_t i)
{
	const char *name = e->all[i].key;
	const int64_t *id = map_get(e->st->keys, name, strlen(name));

	return id ? *id : 0;
}

static struct state_series_key expected_series_key(const struct expected *e, int64_t key_id, int rank)
{
	return (struct state_series_key){ e->r->slot, key_id, rank, e->segment };
}

static int remember_series(struct expected *e, enum db_query query, const char *keys, const char *ranks)
{
	struct db *d = e->st->db;
	struct db_rows *q;
	int rc = db_start(d, &q, query, e->err, "iitt", e->r->id, (int64_t)e->segment, keys, ranks);

	while (rc >= 0 && (rc = db_next(d, q, e->err)) > 0) {
		struct state_series_key name = expected_series_key(e, db_i64(q, COL_series_find_all_key_id),
								   db_i32(q, COL_series_find_all_rank));
		int64_t *id = map_put(e->st->series, &name, sizeof(name));

		*id = db_i64(q, COL_series_find_all_id);
	}
	return rc;
}

/* Lists unknown series of the batch and returns their number; adding: those to add, up to the run's limit of keys. */
static size_t list_unknown_series(struct expected *e, struct buf *keys, struct buf *ranks, bool adding)
{
	size_t i, unknown = 0;

	array_begin(keys);
	array_begin(ranks);
	for (i = 0; i < e->count; i++) {
		int64_t key_id = expected_key_id(e, i), run_key[2] = { e->r->slot, key_id };
		struct state_series_key name = expected_series_key(e, key_id, e->all[i].rank);

		if (!key_id || map_get(e->st->series, &name, sizeof(name)))
			continue;
		if (adding && !map_get(e->st->run_keys, run_key, sizeof(run_key))) {
			if (e->r->keys >= LIMIT_keys_per_run)
				continue;
			map_put(e->st->run_keys, run_key, sizeof(run_key));
			e->r->keys++;
		}
		array_int(keys, key_id);
		array_int(ranks, e->all[i].rank);
		unknown++;
	}
	return unknown;
}

/* Finds keys of the batch that any rank or segment of the run has. */
static int find_run_keys(struct expected *e, const char *keys)
{
	struct db *d = e->st->db;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_series_have_keys, e->err, "it", e->r->id, keys);

	while (rc >= 0 && (rc = db_next(d, q, e->err)) > 0) {
		int64_t name[2] = { e->r->slot, db_i64(q, COL_series_have_keys_key_id) };

		map_put(e->st->run_keys, name, sizeof(name));
	}
	return rc;
}

static int add_expected_parts(struct expected *e)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < e->count && !rc; i++) {
		if (e->r->rank_seen == e->all[i].rank && e->r->segment_seen == e->segment)
			continue;
		rc = db_run(e->st->db, DB_part_add, e->err, "iii", e->r->id, (int64_t)e->all[i].rank,
			    (int64_t)e->segment);
		e->r->rank_seen = e->all[i].rank;
		e->r->segment_seen = e->segment;
	}
	return rc;
}

static int add_expected_series(struct expected *e)
{
	struct buf keys, ranks;
	const size_t n = list_unknown_series(e, &keys, &ranks, true);
	int rc = n ? add_expected_parts(e) : 0;
	if (!rc && n)
		rc = remember_series(e, DB_series_add_all, array_end(&keys), array_end(&ranks));
	buf_done(&keys);
	buf_done(&ranks);
	return rc;
}

static int expect_series(struct expected *e)
{
	struct buf keys, ranks;
	size_t n, known;
	int rc = 0;

	if (e->first)
		return add_expected_series(e);
	n = list_unknown_series(e, &keys, &ranks, false);
	known = map_count(e->st->series);
	if (n > SMALL)
		rc = remember_series(e, DB_series_find_all, array_end(&keys), array_end(&ranks));
	known = map_count(e->st->series) - known;
	if (!rc && n > SMALL && known < n)
		rc = find_run_keys(e, keys.data);
	buf_done(&keys);
	buf_done(&ranks);
	return !rc && n > SMALL && known < n ? add_expected_series(e) : rc;
}

/* --- visible summaries -------------------------------------------------------------------------------------- */

static struct state_metric *put_run_metric(struct expected *e, int64_t key_id)
{
	int64_t name[2] = { e->r->slot, key_id };

	return map_put(e->st->metrics, name, sizeof(name));
}

static int load_expected_metrics(struct expected *e, const char *keys)
{
	struct db *d = e->st->db;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_metrics_of_keys, e->err, "it", e->r->id, keys);

	while (rc >= 0 && (rc = db_next(d, q, e->err)) > 0) {
		struct state_metric *m = put_run_metric(e, db_i64(q, COL_metrics_of_keys_key_id));

		sum_row_read(q, COL_metrics_of_keys_count, &m->sum);
		m->stored = true;
	}
	return rc;
}

/* Loads the visible summaries of the batch's keys. */
static int expect_metrics(struct expected *e)
{
	struct buf keys;
	size_t i, n = 0;
	int rc = 0;

	array_begin(&keys);
	for (i = 0; i < e->count; i++) {
		int64_t key_id = e->all[i].rank == STATE_RUN_LEVEL ? expected_key_id(e, i) : 0;
		struct state_metric *m = key_id ? put_run_metric(e, key_id) : NULL;

		if (!m || m->loaded)
			continue;
		m->run_id = e->r->id;
		m->key_id = key_id;
		m->loaded = true;
		sum_init(&m->sum);
		array_int(&keys, key_id);
		n++;
	}
	if (n && !e->first)
		rc = load_expected_metrics(e, array_end(&keys));
	buf_done(&keys);
	return rc;
}

int state_expect(struct state *st, struct state_run *r, const struct state_batch *b, struct err *err)
{
	struct expected e = { st, r, b->all, b->count, b->segment, !r->keys, err };
	size_t n = b->count;
	struct arena *a;
	const char **names;
	size_t i;
	int rc;

	if (!st->shared || (n <= SMALL && !e.first))
		return 0;
	a = arena_new();
	names = arena_array(a, n, sizeof(*names));
	for (i = 0; i < n; i++)
		names[i] = b->all[i].key;
	rc = state_expect_keys(st, names, n, err);
	arena_free(a);
	if (!rc)
		rc = expect_series(&e);
	return rc ? rc : expect_metrics(&e);
}
