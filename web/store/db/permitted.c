/* SPDX-License-Identifier: Apache-2.0 */
/* permitted.c: sets of the experiments that grants let their holder read. A set is made once per text of grants and
 * state of the table of experiments, from the snapshot of the reader that needs it, and shared by later readers. */
#include "web/store/db/engine.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"

#define SETS_MAX 256 /* texts of grants; the least recently used is evicted first */

/* What changes with the names of experiments. */
struct permitted_stamp {
	int64_t number, last, updated;
};

struct permitted {
	unsigned users; /* readers, and the cache; under its lock */
	char *grants;
	struct arena *arena;
	struct grants parsed;
	struct permitted_stamp stamp;
	int64_t *ids; /* ascending */
	size_t count, cap;
	struct buf list; /* the ids as an array for queries */
	uint64_t used;	 /* clock of the last use */
};

struct permitted_cache {
	pthread_mutex_t lock;
	uint64_t clock;
	struct permitted *sets[SETS_MAX]; /* one for each text */
	size_t count;
};

struct permitted_cache *permitted_cache_new(void)
{
	struct permitted_cache *c = mem_zalloc(sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

/* Under the lock. */
static void release_permitted_set(struct permitted *p)
{
	if (--p->users)
		return;
	free(p->grants);
	arena_free(p->arena);
	free(p->ids);
	buf_done(&p->list);
	free(p);
}

void permitted_cache_free(struct permitted_cache *c)
{
	if (!c)
		return;
	while (c->count)
		release_permitted_set(c->sets[--c->count]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static int read_permitted_stamp(struct db *d, struct permitted_stamp *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_experiment_stamp, err, "");

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	*ret = (struct permitted_stamp){ db_i64(q, COL_experiment_stamp_number), db_i64(q, COL_experiment_stamp_last),
					 db_i64(q, COL_experiment_stamp_updated) };
	db_stop(q);
	return 0;
}

/* Makes a set with one user. */
static int make_permitted_set(struct db *d, const struct restriction *r, struct permitted **ret, struct err *err)
{
	struct permitted *p = mem_zalloc(sizeof(*p));
	const int64_t one = *r->text == '=' ? strtoll(r->text + 1, NULL, 10) : -1;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_experiment_names, err, "");

	p->users = 1;
	p->grants = mem_strdup(r->text);
	p->arena = arena_new();
	rc = rc || one >= 0 ? rc : grants_parse(&p->parsed, p->arena, r->text, err);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (one >= 0 ? one == db_i64(q, COL_experiment_names_id)
			     : grants_level(&p->parsed, db_str(q, COL_experiment_names_name)) >= GRANT_READ)
			mem_push(&p->ids, &p->count, &p->cap, db_i64(q, COL_experiment_names_id));
	array_of(&p->list, p->ids, p->count);
	if (rc)
		release_permitted_set(p);
	else
		*ret = p;
	return rc;
}

/* Under the lock: the place of the grants' set; count: none. */
static size_t find_permitted_set(const struct permitted_cache *c, const char *grants)
{
	size_t i = 0;

	while (i < c->count && strcmp(c->sets[i]->grants, grants))
		i++;
	return i;
}

/* Adds the set in place of an older one, of the same grants or of others. */
static void keep_permitted_set(struct permitted_cache *c, struct permitted *p)
{
	size_t at, i;

	pthread_mutex_lock(&c->lock);
	at = find_permitted_set(c, p->grants);
	if (at == SETS_MAX)
		for (at = 0, i = 1; i < SETS_MAX; i++)
			at = c->sets[i]->used < c->sets[at]->used ? i : at;
	if (at == c->count)
		c->count++;
	else
		release_permitted_set(c->sets[at]);
	p->users++;
	p->used = ++c->clock;
	c->sets[at] = p;
	pthread_mutex_unlock(&c->lock);
}

int permitted_take(struct store *s, struct db *d, struct err *err)
{
	struct permitted_cache *c = s->permitted;
	struct permitted_stamp now = { 0 };
	struct permitted *p = NULL;
	int rc = read_permitted_stamp(d, &now, err);
	size_t at;

	if (rc)
		return rc;
	pthread_mutex_lock(&c->lock);
	at = find_permitted_set(c, s->restriction->text);
	if (at < c->count && !memcmp(&c->sets[at]->stamp, &now, sizeof(now))) {
		p = c->sets[at];
		p->users++;
		p->used = ++c->clock;
	}
	pthread_mutex_unlock(&c->lock);
	if (!p) {
		rc = make_permitted_set(d, s->restriction, &p, err);
		if (rc)
			return rc;
		p->stamp = now;
		keep_permitted_set(c, p);
	}
	d->permitted = p;
	return 0;
}

void permitted_give(struct store *s, struct db *d)
{
	if (!d->permitted)
		return;
	pthread_mutex_lock(&s->permitted->lock);
	release_permitted_set(d->permitted);
	pthread_mutex_unlock(&s->permitted->lock);
	d->permitted = NULL;
}

bool permitted(const struct db *d, int64_t experiment)
{
	const struct permitted *p = d->permitted;
	size_t at = p ? list_find(p->ids, p->count, sizeof(*p->ids), experiment) : 0;

	return !p || (at < p->count && p->ids[at] == experiment);
}

enum grant_level permitted_level(const struct db *d, const char *name)
{
	return d->permitted ? grants_level(&d->permitted->parsed, name) : GRANT_ADMIN;
}

const char *permitted_ids(const struct db *d)
{
	return d->permitted ? d->permitted->list.data : NULL;
}
