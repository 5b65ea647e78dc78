/* SPDX-License-Identifier: Apache-2.0 */
/* orphan_blobs.c: objects without a file: sends one part by part, reads ranges of it with the thread pool, and
 * removes those that no row names. */

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"
#include "web/store/files/objects.h"

#define WAIT_S 10.0
#define AWAY_S 1.0 /* after a failure, requests fail at once for this long */

/* --- writing ------------------------------------------------------------------------------------------------ */

struct orphan_blobs {
	struct objects *o;
	struct orphan_blobs_object of;
	char key[OBJECT_KEY_MAX + 1];
	struct object_upload *parts; /* NULL: no full part yet */
	unsigned char *bytes;	     /* OBJECTS_PART */
	size_t n;
	struct sha256 sha;
};

int orphan_blobs_begin(struct orphan_blobs **ret, struct artifacts *a, struct err *err)
{
	struct objects *o = artifacts_objects(a);
	struct orphan_blobs *l;
	int rc = o ? objects_ready(o, err)
		   : err_set(err, ERR_UNSUPPORTED, "no object store is configured: use --artifacts s3://BUCKET");

	if (rc)
		return rc;
	if (!objects_hold(o, OBJECTS_PART))
		return err_set(err, ERR_BUSY, "too many large files are in transfer: try again later");
	l = mem_zalloc(sizeof(*l));
	*l = (struct orphan_blobs){ .o = o, .bytes = mem_alloc(OBJECTS_PART) };
	sha256_init(&l->sha);
	rc = files_draw_name(l->of.name, err);
	objects_key(o, l->of.name, l->key);
	if (!rc)
		rc = ingest_submit(o->store, &(struct ingest_op){ .kind = &object_change_begin, .name = l->of.name },
				   NULL, NULL, err);
	if (rc)
		orphan_blobs_free(l);
	else
		*ret = l;
	return rc;
}

static int send_loose_part(struct orphan_blobs *l, struct err *err)
{
	int rc = l->parts ? 0 : object_upload_begin(&l->parts, l->o->client, l->key, NULL, err);

	if (!rc)
		rc = object_upload_part(l->parts, l->bytes, l->n, err);
	l->n = 0;
	return rc ? objects_failed("cannot write an archive to the object store", rc, err) : 0;
}

int orphan_blobs_add(struct orphan_blobs *l, const void *bytes, size_t n, struct err *err)
{
	const unsigned char *at = bytes;
	size_t take;
	int rc = 0;

	sha256_add(&l->sha, bytes, n);
	l->of.bytes += n;
	for (; n && !rc; at += take, n -= take) {
		take = n < OBJECTS_PART - l->n ? n : OBJECTS_PART - l->n;
		memcpy(l->bytes + l->n, at, take);
		l->n += take;
		if (l->n == OBJECTS_PART)
			rc = send_loose_part(l, err);
	}
	return rc;
}

static int send_loose_rest(struct orphan_blobs *l, struct err *err)
{
	const struct object_put whole = { .key = l->key, .bytes = l->bytes, .n = l->n };
	int rc;

	if (!l->parts)
		rc = object_put(l->o->client, &whole, err);
	else
		rc = l->n ? object_upload_part(l->parts, l->bytes, l->n, err) : 0;
	if (!rc && l->parts)
		rc = object_upload_end(l->parts, err);
	return rc ? objects_failed("cannot write an archive to the object store", rc, err) : 0;
}

static int add_digest(void *user, const void *bytes, size_t n)
{
	sha256_add(user, bytes, n);
	return 0;
}

static int verify_loose_object(struct orphan_blobs *l, struct err *err)
{
	struct object_facts facts;
	struct sha256 sha;
	char came[65];
	int rc;

	sha256_init(&sha);
	rc = object_get(l->o->client, &(struct object_get){ .key = l->key, .piece = add_digest, .user = &sha }, &facts,
			err);
	if (rc)
		return objects_failed("cannot read an archive back from the object store", rc, err);
	sha256_end(&sha, came);
	return strcmp(came, l->of.sha256)
		       ? err_set(err, ERR_BUSY, "the object %s differs from what was sent: try again", l->key)
		       : 0;
}

int orphan_blobs_end(struct orphan_blobs *l, struct orphan_blobs_object *ret, struct err *err)
{
	int rc = send_loose_rest(l, err);

	sha256_end(&l->sha, l->of.sha256);
	if (!rc)
		rc = verify_loose_object(l, err);
	if (!rc)
		*ret = l->of;
	return rc;
}

void orphan_blobs_free(struct orphan_blobs *l)
{
	if (!l)
		return;
	object_upload_free(l->parts);
	objects_give(l->o, OBJECTS_PART);
	free(l->bytes);
	free(l);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

struct loose_reading {
	struct objects *o;
	char key[OBJECT_KEY_MAX + 1];
	uint64_t from;
	size_t n, got;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t ended;
	unsigned char *bytes; /* owned by the pool until done */
	bool done, left;      /* left: the caller stopped waiting */
	int rc;
	struct err err;
	struct thread_pool_task task;
};

static void drop_loose_reading(struct loose_reading *r)
{
	pthread_cond_destroy(&r->ended);
	pthread_mutex_destroy(&r->lock);
	objects_give(r->o, r->n);
	free(r->bytes);
	free(r);
}

static int take_loose_bytes(void *user, const void *bytes, size_t n)
{
	struct loose_reading *r = user;

	if (n > r->n - r->got)
		return -1;
	memcpy(r->bytes + r->got, bytes, n);
	r->got += n;
	return 0;
}

static void note_loose_outcome(struct objects *o, int rc)
{
	pthread_mutex_lock(&o->lock);
	o->away_until_s = rc ? clock_mono_s() + AWAY_S : 0;
	pthread_mutex_unlock(&o->lock);
}

/* The store answered that it has no such object: a lasting error. The log reports each object once in a row. */
static int check_lost_object(struct loose_reading *r, struct err *err)
{
	bool said;

	pthread_mutex_lock(&r->o->lock);
	said = !strcmp(r->o->lost, r->key);
	snprintf(r->o->lost, sizeof(r->o->lost), "%s", r->key);
	pthread_mutex_unlock(&r->o->lock);
	if (!said)
		log_error("the object store has no object %s, which has points of a run: restore it from a copy",
			  r->key);
	return err_set(err, ERR_DAMAGED, "the object %s, which has points of this run, is not in the object store: "
		       "restore it from a copy", r->key);
}

/* Task of the pool: fetches a range and wakes the reader, or frees it if nothing waits. */
static void fetch_loose_object(void *arg)
{
	struct loose_reading *r = arg;
	struct err err = ERR_INIT;
	struct object_facts facts;
	int rc = object_get(r->o->client,
			    &(struct object_get){
				    .key = r->key, .begin = r->from, .n = r->n, .piece = take_loose_bytes, .user = r },
			    &facts, &err);
	bool left;

	if (!rc && r->got != r->n)
		rc = err_set(&err, ERR_IO, "%s is shorter than expected", r->key);
	note_loose_outcome(r->o, rc == ERR_NOENT ? 0 : rc);
	if (rc)
		rc = rc == ERR_NOENT ? check_lost_object(r, &err)
				     : objects_failed("cannot read an archive from the object store", rc, &err);
	pthread_mutex_lock(&r->lock);
	r->done = true;
	r->rc = rc;
	r->err = err;
	left = r->left;
	pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
	if (left)
		drop_loose_reading(r);
}

static int begin_loose_reading(struct loose_reading **ret, struct objects *o, const struct orphan_blobs_range *of,
			       struct err *err)
{
	struct loose_reading *r;

	if (!objects_hold(o, of->n))
		return err_set(err, ERR_BUSY, "too many large files are in transfer: try again later");
	r = mem_zalloc(sizeof(*r));
	*r = (struct loose_reading){ .o = o, .from = of->from, .n = of->n, .bytes = mem_alloc(of->n) };
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->ended);
	objects_key(o, of->object, r->key);
	r->task = (struct thread_pool_task){ .fn = fetch_loose_object, .arg = r };
	thread_pool_give(o->crew, &r->task);
	*ret = r;
	return 0;
}

static bool was_store_away(struct objects *o)
{
	bool away;

	pthread_mutex_lock(&o->lock);
	away = clock_mono_s() < o->away_until_s;
	pthread_mutex_unlock(&o->lock);
	return away;
}

int orphan_blobs_read(struct artifacts *a, const struct orphan_blobs_range *of, void *to, struct err *err)
{
	struct objects *o = artifacts_objects(a);
	double until_s = clock_mono_s() + WAIT_S;
	struct loose_reading *r = NULL;
	bool done;
	int rc = o ? objects_ready(o, err) : err_set(err, ERR_BUSY, "the points are in an object store: name it with "
						     "--artifacts");

	if (!rc && (was_store_away(o) || atomic_load(&o->stop)))
		rc = err_set(err, ERR_BUSY, "the object store with the points does not answer");
	if (!rc)
		rc = begin_loose_reading(&r, o, of, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&r->lock);
	while (!r->done && cond_wait_until(&r->ended, &r->lock, until_s))
		;
	done = r->done;
	r->left = !done;
	rc = done ? r->rc : err_set(err, ERR_BUSY, "the object store with the points is too slow");
	if (done && !rc)
		memcpy(to, r->bytes, of->n);
	else if (done && err)
		*err = r->err;
	pthread_mutex_unlock(&r->lock);
	if (done)
		drop_loose_reading(r);
	return rc;
}

void orphan_blobs_key(struct artifacts *a, const char *object, char *ret, size_t room)
{
	const struct objects *o = artifacts_objects(a);
	char key[OBJECT_KEY_MAX + 1];

	if (o)
		objects_key(o, object, key);
	snprintf(ret, room, "%s", o ? key : object);
}

void orphan_blobs_stop(struct artifacts *a)
{
	if (a && artifacts_objects(a))
		atomic_store(&artifacts_objects(a)->stop, true);
}

/* --- objects that no file uses -------------------------------------------------------------------------------- */

/* Removes objects that no file uses: unfinished uploads, deleted or replaced files. Some at a time are marked, so that
 * no upload can give them to a file, then deleted, then their rows. */

/* Lists marked objects. */
static int list_doomed(struct store *s, struct arena *a, struct artifact_files *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_objects_doomed, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &ret->items, &ret->count,
			  (struct artifact_item){ .path = db_text(a, q, COL_objects_doomed_name) });
	readers_give(s, d);
	return rc;
}

/* Uploads are aborted first: none of them can end when its object is deleted already. */
static int delete_doomed(struct objects *o, const struct artifact_files *list, struct arena *a, struct err *err)
{
	const char **keys = arena_array(a, list->count, sizeof(*keys));
	char key[OBJECT_KEY_MAX + 1];
	int rc;

	for (size_t i = 0; i < list->count; i++) {
		objects_key(o, list->items[i].path, key);
		keys[i] = arena_strdup(a, key);
	}
	objects_key(o, "", key);
	rc = object_upload_abandon(o->client, key, keys, list->count, err);
	return rc ? rc : object_delete(o->client, keys, list->count, err);
}

/* Removes some; *io_objects counts them. 1: there may be more. */
static int sweep_some(struct objects *o, int64_t before_ms, uint64_t *io_objects, struct err *err)
{
	struct artifact_files list = { 0 };
	struct ingest_op op = { .kind = &object_change_doom, .before_ms = before_ms };
	struct arena *a = arena_new();
	int rc = ingest_submit(o->store, &op, NULL, NULL, err);

	rc = rc ? rc : list_doomed(o->store, a, &list, err);
	if (!rc && list.count)
		rc = delete_doomed(o, &list, a, err);
	op = (struct ingest_op){ .kind = &object_change_forget, .more = &list };
	if (!rc && list.count)
		rc = ingest_submit(o->store, &op, NULL, NULL, err);
	*io_objects += rc ? 0 : list.count;
	arena_free(a);
	return rc ? rc : list.count > 0;
}

static int count_garbage(struct store *s, int64_t before_ms, uint64_t *ret, struct err *err)
{
	int64_t n = 0;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_int(d, &n, DB_objects_garbage, err, "i", before_ms);
	readers_give(s, d);
	*ret = (uint64_t)n;
	return rc < 0 ? rc : 0;
}

int artifact_sweep(struct store *s, int64_t before_ms, bool dry, uint64_t *ret_objects, struct err *err)
{
	struct objects *o = artifacts_objects(s->files);
	int rc = o ? objects_ready(o, err) : 0;

	*ret_objects = 0;
	if (rc || !o)
		return rc;
	if (dry)
		return count_garbage(s, before_ms, ret_objects, err);
	do
		rc = background_job_canceled(s->work)
			     ? err_set(err, ERR_CANCELED, "the store is closing: the next gc continues")
			     : sweep_some(o, before_ms, ret_objects, err);
	while (rc > 0);
	return rc;
}
