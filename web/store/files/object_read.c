/* SPDX-License-Identifier: Apache-2.0 */
/* object_read.c: downloads a file: one piece is fetched while the previous one is returned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/files/objects.h"

#define FIRST ((size_t)256 << 10) /* the first piece is small, for a fast start */
#define HAND_ON 65536

struct artifact_read {
	struct objects *o;
	char key[OBJECT_KEY_MAX + 1], etag[OBJECT_ETAG_BYTES];
	size_t held;
	pthread_mutex_t lock;
	uint64_t at, end; /* the next range to fetch */
	size_t piece;
	char *have, *come; /* being returned; being fetched; each at most OBJECTS_PART */
	size_t have_bytes, have_at, come_bytes;
	bool busy;  /* the pool fetches and owns `come` */
	bool ended; /* only the pool still refers to it */
	void (*wake)(void *arg);
	void *wake_arg;
	int rc;
	struct err err;
	struct thread_pool_task task;
};

static void drop_object_read(struct artifact_read *r)
{
	objects_give(r->o, r->held);
	pthread_mutex_destroy(&r->lock);
	free(r->have);
	free(r->come);
	free(r);
}

static int take_object_bytes(void *user, const void *bytes, size_t n)
{
	struct artifact_read *r = user;

	if (r->come_bytes + n > OBJECTS_PART)
		return -1;
	memcpy(r->come + r->come_bytes, bytes, n);
	r->come_bytes += n;
	return 0;
}

static int fetch_object_range(struct artifact_read *r, size_t n, struct err *err)
{
	const struct object_get g = { .key = r->key,
				      .begin = r->at,
				      .n = n,
				      .etag = r->etag[0] ? r->etag : NULL,
				      .piece = take_object_bytes,
				      .user = r };
	struct object_facts facts;
	int rc = object_get(r->o->client, &g, &facts, err);

	if (!rc && r->come_bytes != n)
		return err_set(err, ERR_BUSY, "the object %s is shorter than its file", r->key);
	if (!rc)
		snprintf(r->etag, sizeof(r->etag), "%s", facts.etag);
	return rc ? objects_failed("cannot read the file from the object store", rc, err) : 0;
}

/* Task of the pool: fetches the next piece and wakes the reader. */
static void fetch_next_piece(void *arg)
{
	struct artifact_read *r = arg;
	struct err err = ERR_INIT;
	void (*wake)(void *arg);
	size_t n = r->end - r->at < r->piece ? (size_t)(r->end - r->at) : r->piece;
	int rc = fetch_object_range(r, n, &err);

	pthread_mutex_lock(&r->lock);
	r->busy = false;
	r->rc = rc;
	r->err = err;
	r->at += rc ? 0 : n;
	if (r->ended) {
		pthread_mutex_unlock(&r->lock);
		drop_object_read(r);
		return;
	}
	wake = r->wake;
	r->wake = NULL;
	if (wake)
		wake(r->wake_arg);
	pthread_mutex_unlock(&r->lock);
}

/* Under the lock: starts returning the fetched piece, and fetches the next. */
static void swap_read_pieces(struct artifact_read *r)
{
	char *empty = r->have;

	r->have = r->come;
	r->have_bytes = r->come_bytes;
	r->have_at = 0;
	r->come = empty;
	r->come_bytes = 0;
	if (r->at == r->end)
		return;
	r->piece = OBJECTS_PART;
	r->busy = true;
	thread_pool_give(r->o->crew, &r->task);
}

int artifact_read_begin(struct artifact_read **ret, struct artifacts *a, const struct artifact_read_opts *opts,
			struct err *err)
{
	struct objects *o = artifacts_objects(a);
	size_t each = opts->n < OBJECTS_PART ? (size_t)opts->n : OBJECTS_PART;
	struct artifact_read *r;
	int rc = o ? objects_ready(o, err)
		   : err_set(err, ERR_UNSUPPORTED, "no object store is configured: use --artifacts s3://BUCKET");

	if (rc)
		return rc;
	if (!objects_hold(o, 2 * each))
		return err_set(err, ERR_BUSY, "too many large files are in transfer: try again later");
	r = mem_zalloc(sizeof(*r));
	*r = (struct artifact_read){ .o = o, .held = 2 * each, .at = opts->from, .end = opts->from + opts->n,
				     .piece = FIRST, .have = mem_alloc(each + 1), .come = mem_alloc(each + 1) };
	pthread_mutex_init(&r->lock, NULL);
	objects_key(o, opts->file->object, r->key);
	r->task = (struct thread_pool_task){ .fn = fetch_next_piece, .arg = r };
	r->busy = opts->n > 0;
	if (r->busy)
		thread_pool_give(o->crew, &r->task);
	*ret = r;
	return 0;
}

/* Under the lock: true if artifact_read_next would not return ARTIFACT_WAIT. */
static bool is_read_ready(const struct artifact_read *r)
{
	return r->have_at < r->have_bytes || !r->busy;
}

int artifact_read_next(struct artifact_read *r, struct buf *to, struct err *err)
{
	size_t n;
	int rc;

	pthread_mutex_lock(&r->lock);
	if (r->have_at == r->have_bytes && !r->busy && !r->rc && r->come_bytes)
		swap_read_pieces(r);
	n = r->have_bytes - r->have_at < HAND_ON ? r->have_bytes - r->have_at : HAND_ON;
	if (n) {
		buf_add(to, r->have + r->have_at, n);
		r->have_at += n;
		rc = r->have_at == r->have_bytes && r->at == r->end && !r->busy && !r->come_bytes ? ARTIFACT_END
												  : ARTIFACT_MORE;
	} else if (r->busy) {
		rc = ARTIFACT_WAIT;
	} else {
		rc = r->rc ? r->rc : ARTIFACT_END;
	}
	if (rc < 0)
		*err = r->err;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

void artifact_read_wait(struct artifact_read *r, void (*wake)(void *arg), void *arg)
{
	pthread_mutex_lock(&r->lock);
	if (is_read_ready(r)) {
		wake(arg);
	} else {
		r->wake = wake;
		r->wake_arg = arg;
	}
	pthread_mutex_unlock(&r->lock);
}

int artifact_read_result(struct artifact_read *r, struct err *err)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = r->rc;
	if (rc)
		*err = r->err;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

void artifact_read_end(struct artifact_read *r)
{
	bool busy;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	busy = r->busy;
	r->ended = true;
	r->wake = NULL;
	pthread_mutex_unlock(&r->lock);
	if (!busy)
		drop_object_read(r);
}
