/* SPDX-License-Identifier: Apache-2.0 */
/* keysets.c: sets of keys by content, the set of each requested run, and the names of keys. */
#include "tracker/mem/mem.h"
#include "web/store/read/keysets.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* --- names of keys -------------------------------------------------------------------------------------------- */

static int read_name_rows(struct db *d, struct db_rows *q, const struct key_names *k, struct err *err)
{
	int rc;

	while ((rc = db_next(d, q, err)) > 0)
		k->fn(k->arg, (size_t)db_i64(q, COL_key_names_place) - 1, db_str(q, COL_key_names_name));
	return rc;
}

int key_names_read(struct db *d, const struct key_names *k, struct err *err)
{
	struct db_rows *q;
	struct buf list;
	int rc;

	if (!k->n)
		return 0;
	rc = db_start(d, &q, DB_key_names, err, "t", array_of(&list, k->ids, k->n));
	if (!rc)
		rc = read_name_rows(d, q, k, err);
	buf_done(&list);
	return rc;
}

#define BYTES_MAX ((size_t)64 << 20) /* limit for ids; above it everything is dropped */
#define RUNS_MAX 200000

struct keyset_seen {
	uint64_t rev;
	struct keyset *set;
};

struct keysets {
	pthread_mutex_t lock;
	struct map *sets; /* ids -> struct keyset * */
	struct map *runs; /* int64 id of a run -> struct keyset_seen */
	size_t bytes;
	char rows_of[DB_ROWS_OF_BYTES]; /* the database these sets come from */
};

struct keysets *keysets_new(void)
{
	struct keysets *k = mem_zalloc(sizeof(*k));

	pthread_mutex_init(&k->lock, NULL);
	k->sets = map_new(sizeof(struct keyset *));
	k->runs = map_new(sizeof(struct keyset_seen));
	return k;
}

static void release_keyset(struct keyset *s)
{
	if (!--s->users)
		free(s);
}

static void forget_keysets(struct keysets *k)
{
	size_t i;

	for (i = 0; i < map_count(k->sets); i++)
		release_keyset(*(struct keyset **)map_at(k->sets, i));
	map_clear(k->sets);
	map_clear(k->runs);
	k->bytes = 0;
}

void keysets_free(struct keysets *k)
{
	if (!k)
		return;
	forget_keysets(k);
	map_free(k->sets);
	map_free(k->runs);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* Makes a set of these ids with one user. */
static struct keyset *make_set(const struct buf *ids)
{
	struct keyset *s = mem_alloc(sizeof(*s) + ids->len);

	s->count = ids->len / sizeof(s->ids[0]);
	s->users = 1;
	if (ids->len)
		memcpy(s->ids, ids->data, ids->len);
	return s;
}

/* Finds or adds the set of these ids and adds a user. Under the lock. */
static struct keyset *intern_keyset(struct keysets *k, const struct buf *ids)
{
	const char *bytes = ids->len ? ids->data : "";
	struct keyset **slot = map_put(k->sets, bytes, ids->len);

	if (!*slot) {
		*slot = make_set(ids);
		k->bytes += ids->len;
	}
	(*slot)->users++;
	return *slot;
}

/* Remembers the set of a run, unless a newer one is known. */
static struct keyset *remember_keyset(struct keysets *k, int64_t run, uint64_t rev, const struct buf *ids)
{
	struct keyset *s;
	struct keyset_seen *seen;

	pthread_mutex_lock(&k->lock);
	if (k->bytes > BYTES_MAX || map_count(k->runs) > RUNS_MAX)
		forget_keysets(k);
	s = intern_keyset(k, ids);
	seen = map_put(k->runs, &run, sizeof(run));
	if (seen->rev <= rev)
		*seen = (struct keyset_seen){ rev, s };
	pthread_mutex_unlock(&k->lock);
	return s;
}

static struct keyset *find_known_keyset(struct keysets *k, int64_t run, uint64_t rev)
{
	struct keyset *s = NULL;
	const struct keyset_seen *seen;

	pthread_mutex_lock(&k->lock);
	seen = map_get(k->runs, &run, sizeof(run));
	if (seen && seen->rev == rev) {
		s = seen->set;
		s->users++;
	}
	pthread_mutex_unlock(&k->lock);
	return s;
}

int keysets_renew(struct keysets *k, struct db *d, struct err *err)
{
	char rows_of[DB_ROWS_OF_BYTES] = "";
	struct db_rows *q;
	int rc = db_start(d, &q, DB_changes_now, err, "");

	if (rc || (rc = db_next(d, q, err)) < 0)
		return rc;
	if (rc) {
		snprintf(rows_of, sizeof(rows_of), "%s", db_str(q, COL_changes_now_rows_of));
		db_stop(q);
	}
	pthread_mutex_lock(&k->lock);
	if (strcmp(k->rows_of, rows_of))
		forget_keysets(k);
	memcpy(k->rows_of, rows_of, sizeof(rows_of));
	pthread_mutex_unlock(&k->lock);
	return 0;
}

/* One query reads all revs, and one the keys of the runs whose set is unknown. */
struct keyset_taking {
	struct keysets *k;
	struct db *d;
	const struct keysets_want *w;
	struct keyset **sets;
	int64_t *revs, *missing; /* missing: ids of the runs without a set */
	struct buf *ids;	 /* of their keys; one each */
	size_t missing_count;
	struct err *err;
};

static int take_known_keysets(struct keyset_taking *t)
{
	struct db_rows *q;
	struct buf list;
	int rc = db_start(t->d, &q, DB_run_revs, t->err, "t", array_of(&list, t->w->runs, t->w->count));
	size_t i;

	while (rc >= 0 && (rc = db_next(t->d, q, t->err)) > 0)
		t->revs[db_i64(q, COL_run_revs_place) - 1] = db_i64(q, COL_run_revs_rev);
	buf_done(&list);
	for (i = 0; i < t->w->count && !rc; i++) {
		t->sets[i] = find_known_keyset(t->k, t->w->runs[i], (uint64_t)t->revs[i]);
		if (!t->sets[i])
			t->missing[t->missing_count++] = t->w->runs[i];
	}
	return rc;
}

static int compare_ids(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Adds the rows to the lists of their runs. */
static int read_missing_ids(struct keyset_taking *t, struct db_rows *q)
{
	int64_t id;
	int rc;

	while ((rc = db_next(t->d, q, t->err)) > 0) {
		id = db_i64(q, COL_metric_keys_of_runs_key_id);
		buf_add(&t->ids[db_i64(q, COL_metric_keys_of_runs_place) - 1], &id, sizeof(id));
	}
	return rc;
}

static void remember_missing_keysets(struct keyset_taking *t)
{
	struct buf *ids = t->ids;
	size_t i;

	for (i = 0; i < t->w->count; i++) {
		if (t->sets[i])
			continue;
		if (ids->len)
			qsort(ids->data, ids->len / sizeof(int64_t), sizeof(int64_t), compare_ids);
		t->sets[i] = remember_keyset(t->k, t->w->runs[i], (uint64_t)t->revs[i], ids);
		ids++;
	}
}

static int take_missing_keysets(struct keyset_taking *t)
{
	struct db_rows *q;
	struct buf list;
	size_t i;
	int rc;

	t->ids = mem_array(t->missing_count, sizeof(*t->ids));
	for (i = 0; i < t->missing_count; i++)
		buf_init(&t->ids[i], SIZE_MAX);
	rc = db_start(t->d, &q, DB_metric_keys_of_runs, t->err, "t", array_of(&list, t->missing, t->missing_count));
	if (!rc)
		rc = read_missing_ids(t, q);
	if (!rc)
		remember_missing_keysets(t);
	for (i = 0; i < t->missing_count; i++)
		buf_done(&t->ids[i]);
	free(t->ids);
	buf_done(&list);
	return rc;
}

int keysets_take(struct keysets *k, struct db *d, const struct keysets_want *w, struct keyset **ret, struct err *err)
{
	struct keyset_taking t = { .k = k, .d = d, .w = w, .sets = ret, .err = err };
	size_t i;
	int rc;

	memset(ret, 0, w->count * sizeof(struct keyset *));
	t.revs = mem_array(w->count + 1, sizeof(*t.revs));
	t.missing = mem_array(w->count + 1, sizeof(*t.missing));
	rc = take_known_keysets(&t);
	if (!rc && t.missing_count)
		rc = take_missing_keysets(&t);
	for (i = 0; i < w->count && rc; i++)
		if (ret[i])
			keysets_give(k, ret[i]);
	free(t.revs);
	free(t.missing);
	return rc;
}

void keysets_give(struct keysets *k, struct keyset *s)
{
	pthread_mutex_lock(&k->lock);
	release_keyset(s);
	pthread_mutex_unlock(&k->lock);
}
