/* object_put.c: a file on its way to the store. What comes is gathered to a part; the crew sends one part while the
 * next one fills, and whoever writes is told to wait when both are full. A file of one part is one request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/files/files.h"
#include "web/store/files/objects.h"

#define SMALL_PARTS 4	     /* what a part costs beside its bytes counts for large files, which are rare */
#define PARTS_OF_A_SIZE 1000 /* then parts are twice as large: an object has at most 10,000 */

struct part {
	char *bytes;
	size_t n, room;
};

struct object_sending {
	struct objects *o;
	struct artifact_room room;
	char name[OBJECT_NAME_BYTES], key[OBJECT_KEY_MAX + 1];
	pthread_mutex_t lock; /* of all below but `sha` and `bytes`, which are the writer's */
	pthread_cond_t rests;
	struct part filling, sending;
	bool busy;	/* the crew has it: then `sending` and `parts` are the crew's */
	bool waiting;	/* the writer, for room */
	bool last;	/* `sending` is the end of the file */
	bool abandoned; /* nobody but the crew knows of it any more */
	bool begun;	/* a row says so */
	struct object_upload *parts; /* NULL: there was no whole part yet */
	unsigned sent;
	int rc; /* the first failure */
	struct err err;
	struct crew_task task;
	uint64_t bytes;
	struct sha256 sha;
};

static size_t part_bytes(const struct object_sending *u)
{
	return OBJECTS_PART << (u->sent >= SMALL_PARTS) << u->sent / PARTS_OF_A_SIZE;
}

/* --- the crew's side ---------------------------------------------------------------------------------------- */

static int begin_row(struct object_sending *u, struct err *err)
{
	const struct ingest_op op = { .kind = &object_change_begin, .name = u->name };
	struct ingest_result res = { 0 };
	int rc = u->begun ? 0 : ingest_submit(u->o->store, &op, NULL, &res, err);

	u->begun = u->begun || !rc;
	return rc;
}

static int send_part(struct object_sending *u, bool last, struct err *err)
{
	int rc = begin_row(u, err);

	if (rc)
		return rc;
	if (last && !u->parts)
		rc = object_put(u->o->client,
				&(struct object_put){ .key = u->key, .bytes = u->sending.bytes, .n = u->sending.n },
				err);
	else if (!u->parts)
		rc = object_upload_begin(&u->parts, u->o->client, u->key, NULL, err);
	if (!rc && u->parts && u->sending.n)
		rc = object_upload_part(u->parts, u->sending.bytes, u->sending.n, err);
	if (!rc && u->parts && last)
		rc = object_upload_end(u->parts, err);
	return rc ? objects_failed("the object store does not take the file", rc, err) : 0;
}

static void drop(struct object_sending *u)
{
	object_upload_free(u->parts);
	objects_give(u->o, u->filling.room + u->sending.room);
	free(u->filling.bytes);
	free(u->sending.bytes);
	pthread_cond_destroy(&u->rests);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

/* Under the lock: what is full becomes what is sent. */
static void swap(struct object_sending *u)
{
	const struct part empty = u->sending;

	u->sending = u->filling;
	u->filling = empty;
	u->filling.n = 0;
}

static void wake_writer(struct object_sending *u)
{
	bool waiting = u->waiting;

	u->waiting = false;
	if (waiting && !u->abandoned)
		u->room.wake(u->room.arg);
}

static void send_parts(void *arg)
{
	struct object_sending *u = arg;
	struct err err = ERR_INIT;
	bool more;
	int rc;

	pthread_mutex_lock(&u->lock);
	do {
		bool last = u->last;

		if (!u->rc && !u->abandoned) {
			pthread_mutex_unlock(&u->lock);
			rc = send_part(u, last, &err);
			pthread_mutex_lock(&u->lock);
			if (rc) {
				u->rc = rc;
				u->err = err;
			}
		}
		u->sent++;
		u->sending.n = 0;
		more = !u->rc && !last && !u->abandoned && u->filling.n >= part_bytes(u);
		if (more)
			swap(u);
		wake_writer(u);
	} while (more);
	u->busy = false;
	if (u->abandoned) {
		pthread_mutex_unlock(&u->lock);
		drop(u);
		return;
	}
	pthread_cond_broadcast(&u->rests);
	pthread_mutex_unlock(&u->lock);
}

/* Under the lock. */
static void give_to_crew(struct object_sending *u)
{
	swap(u);
	u->busy = true;
	crew_give(u->o->crew, &u->task);
}

/* --- the writer's side -------------------------------------------------------------------------------------- */

int object_sending_begin(struct object_sending **ret, struct objects *o, const struct artifact_room *room,
			 struct err *err)
{
	struct object_sending *u;
	int rc = objects_ready(o, err);

	if (rc)
		return rc;
	u = calloc(1, sizeof *u);
	if (!u)
		return err_set(err, ERR_NOMEM, "out of memory");
	u->o = o;
	u->room = *room;
	u->task = (struct crew_task){ .fn = send_parts, .arg = u };
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->rests, NULL);
	sha256_init(&u->sha);
	rc = files_draw_name(u->name, err);
	objects_key(o, u->name, u->key);
	if (rc)
		drop(u);
	else
		*ret = u;
	return rc;
}

/* Under the lock: room for n more bytes of the part. */
static int make_room(struct object_sending *u, size_t n, struct err *err)
{
	struct part *p = &u->filling;
	size_t room = p->room ? p->room : 4096, most = part_bytes(u) + n;
	char *grown;

	if (p->n + n <= p->room)
		return 0;
	while (room < p->n + n)
		room *= 2;
	room = room > most && most >= p->n + n ? most : room;
	if (!objects_hold(u->o, room - p->room))
		return err_set(err, ERR_BUSY, "too many large files are on their way at once");
	grown = realloc(p->bytes, room);
	if (!grown) {
		objects_give(u->o, room - p->room);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	p->bytes = grown;
	p->room = room;
	return 0;
}

int object_sending_write(struct object_sending *u, const void *bytes, size_t n, struct err *err)
{
	int rc;

	pthread_mutex_lock(&u->lock);
	rc = u->rc;
	if (rc)
		*err = u->err;
	else if (u->busy && u->filling.n >= part_bytes(u))
		rc = ARTIFACT_WAIT;
	else
		rc = make_room(u, n, err);
	u->waiting = rc == ARTIFACT_WAIT;
	if (!rc) {
		memcpy(u->filling.bytes + u->filling.n, bytes, n);
		u->filling.n += n;
		if (!u->busy && u->filling.n >= part_bytes(u))
			give_to_crew(u);
	}
	pthread_mutex_unlock(&u->lock);
	if (!rc) {
		sha256_add(&u->sha, bytes, n);
		u->bytes += n;
	}
	return rc;
}

static void wait_for_crew(struct object_sending *u)
{
	while (u->busy)
		pthread_cond_wait(&u->rests, &u->lock);
}

int object_sending_commit(struct object_sending *u, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1, .bytes = u->bytes, .time_ns = clock_wall_ms() * 1000000 };
	int rc;

	pthread_mutex_lock(&u->lock);
	wait_for_crew(u);
	while (!u->rc && u->filling.n >= part_bytes(u)) { /* filled while the part before was sent */
		give_to_crew(u);
		wait_for_crew(u);
	}
	if (!u->rc) {
		u->last = true;
		give_to_crew(u);
		wait_for_crew(u);
	}
	rc = u->rc;
	if (rc)
		*err = u->err;
	pthread_mutex_unlock(&u->lock);
	if (rc)
		return rc;
	sha256_end(&u->sha, f.sha256);
	memcpy(f.object, u->name, sizeof u->name);
	*ret = f;
	return 0;
}

void object_sending_end(struct object_sending *u)
{
	bool crews;

	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	crews = u->busy || u->parts; /* it takes parts back, which asks the store */
	u->abandoned = true;
	if (crews && !u->busy)
		give_to_crew(u);
	pthread_mutex_unlock(&u->lock);
	if (!crews)
		drop(u);
}
