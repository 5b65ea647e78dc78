/* keysets.c: sets of keys by their content, and the set of each run that was asked for. */
#include "web/store/read/keysets.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "web/store/base/map.h"

#define BYTES_MAX ((size_t)64 << 20) /* of ids; beyond that everything is forgotten */
#define RUNS_MAX 200000

struct seen {
	uint64_t rev;
	struct keyset *set;
};

struct keysets {
	pthread_mutex_t lock;
	struct map *sets; /* ids -> struct keyset * */
	struct map *runs; /* int64 id of a run -> struct seen */
	size_t bytes;
	char rows_of[DB_ROWS_OF_BYTES]; /* whose sets these are */
};

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "store: out of memory");
}

struct keysets *keysets_new(void)
{
	struct keysets *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	pthread_mutex_init(&k->lock, NULL);
	k->sets = map_new(sizeof(struct keyset *));
	k->runs = map_new(sizeof(struct seen));
	if (k->sets && k->runs)
		return k;
	keysets_free(k);
	return NULL;
}

static void leave(struct keyset *s)
{
	if (!--s->users)
		free(s);
}

static void forget(struct keysets *k)
{
	size_t i;

	for (i = 0; i < map_count(k->sets); i++)
		leave(*(struct keyset **)map_at(k->sets, i));
	map_clear(k->sets);
	map_clear(k->runs);
	k->bytes = 0;
}

void keysets_free(struct keysets *k)
{
	if (!k)
		return;
	if (k->sets && k->runs)
		forget(k);
	map_free(k->sets);
	map_free(k->runs);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static int read_ids(struct db *d, int64_t run, struct buf *ids, struct err *err)
{
	struct db_rows *q;
	int64_t id;
	int rc = db_start(d, &q, DB_metric_keys_of_run, err, "i", run);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		id = db_i64(q, COL_metric_keys_of_run_key_id);
		buf_add(ids, &id, sizeof id);
		rc = 0;
	}
	return rc ? rc : buf_failed(ids) ? no_memory(err) : 0;
}

/* A set of these ids that nobody has yet; NULL when out of memory. */
static struct keyset *make_set(const struct buf *ids)
{
	struct keyset *s = malloc(sizeof *s + ids->len);

	if (!s)
		return NULL;
	s->count = ids->len / sizeof s->ids[0];
	s->users = 1;
	if (ids->len)
		memcpy(s->ids, ids->data, ids->len);
	return s;
}

/* The set of these ids, with one user more; NULL when out of memory. Under the lock. */
static struct keyset *intern(struct keysets *k, const struct buf *ids)
{
	const char *bytes = ids->len ? ids->data : "";
	struct keyset **slot = map_get(k->sets, bytes, ids->len), *s;

	if (!slot) {
		s = make_set(ids);
		slot = s ? map_put(k->sets, bytes, ids->len) : NULL;
		if (!slot) {
			free(s);
			return NULL;
		}
		*slot = s;
		k->bytes += ids->len;
	}
	(*slot)->users++;
	return *slot;
}

/* What was read becomes the run's set, unless a newer one is known. */
static struct keyset *remember(struct keysets *k, int64_t run, uint64_t rev, const struct buf *ids)
{
	struct keyset *s;
	struct seen *seen;

	pthread_mutex_lock(&k->lock);
	if (k->bytes > BYTES_MAX || map_count(k->runs) > RUNS_MAX)
		forget(k);
	s = intern(k, ids);
	seen = s ? map_put(k->runs, &run, sizeof run) : NULL;
	if (seen && seen->rev <= rev)
		*seen = (struct seen){ rev, s };
	pthread_mutex_unlock(&k->lock);
	return s;
}

static struct keyset *known(struct keysets *k, int64_t run, uint64_t rev)
{
	struct keyset *s = NULL;
	const struct seen *seen;

	pthread_mutex_lock(&k->lock);
	seen = map_get(k->runs, &run, sizeof run);
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
		snprintf(rows_of, sizeof rows_of, "%s", db_str(q, COL_changes_now_rows_of));
		db_stop(q);
	}
	pthread_mutex_lock(&k->lock);
	if (strcmp(k->rows_of, rows_of))
		forget(k);
	memcpy(k->rows_of, rows_of, sizeof rows_of);
	pthread_mutex_unlock(&k->lock);
	return 0;
}

int keysets_take(struct keysets *k, struct db *d, int64_t run, struct keyset **ret, struct err *err)
{
	struct buf ids;
	int64_t rev = 0;
	int rc = db_int(d, &rev, DB_run_rev, err, "i", run);

	if (rc < 0)
		return rc;
	*ret = known(k, run, (uint64_t)rev);
	if (*ret)
		return 0;
	buf_init(&ids, SIZE_MAX);
	rc = read_ids(d, run, &ids, err);
	*ret = rc ? NULL : remember(k, run, (uint64_t)rev, &ids);
	if (!rc && !*ret)
		rc = no_memory(err);
	buf_done(&ids);
	return rc;
}

void keysets_give(struct keysets *k, struct keyset *s)
{
	pthread_mutex_lock(&k->lock);
	leave(s);
	pthread_mutex_unlock(&k->lock);
}
