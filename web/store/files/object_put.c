/* SPDX-License-Identifier: Apache-2.0 */
/* object_put.c: uploads a file. Incoming bytes fill a part while the thread pool sends previous parts, at most
 * UNDER_WAY at once. The writer waits when all are full. A file of one part is one request. Each byte is hashed once
 * on arrival, for the digest of the file and of the part, which signs its request. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/files/files.h"
#include "web/store/files/objects.h"

#define UNDER_WAY 2 /* parts sent at once: the store processes one while another is in transfer */
#define BUFFERS 2   /* parts in memory: one fills while one is sent, or two are sent */
#define PART ((size_t)21 << 20) /* each part costs the store a fixed time: so few parts, and about 64 MiB of memory
				 * per upload */
#define PARTS_OF_A_SIZE 1000	/* then parts double in size: an object has at most 10,000 */

struct upload_part {
	char *bytes;	/* mapped pages, which use memory once written */
	size_t mapped;	/* bytes mapped */
	size_t n, room; /* room: reserved from the memory of all transfers */
	char sha256[65];
};

/* A part in transfer. */
struct upload_lane {
	struct object_sending *u;
	struct upload_part part;
	int number; /* from 1 */
	bool busy;  /* the pool sends it and owns `part` */
	struct thread_pool_task task;
};

struct object_sending {
	struct objects *o;
	struct artifact_room room;
	char name[OBJECT_NAME_BYTES], key[OBJECT_KEY_MAX + 1];
	pthread_mutex_t lock; /* guards all below except what the writer owns */
	pthread_cond_t rests;
	struct upload_part filling; /* has no pages until a lane can spare some; the writer owns it until it is full */
	struct upload_lane lane[UNDER_WAY];
	int given;		     /* parts passed to the pool */
	bool waiting;		     /* the writer waits for room */
	bool complete;		     /* `filling` gets no more bytes */
	bool last;		     /* and was passed to the pool */
	bool ended;		     /* the object is complete */
	bool abandoned;		     /* only the pool still refers to it */
	struct object_upload *parts; /* NULL: no full part yet, or it is beginning */
	int rc;			     /* first error */
	struct err err;
	/* owned by the writer */
	uint64_t bytes;
	size_t taken; /* bytes already taken from those that must wait */
	struct sha256 sha, part_sha;
};

static size_t part_bytes(const struct object_sending *u)
{
	return PART << u->given / PARTS_OF_A_SIZE;
}

/* --- pool side ------------------------------------------------------------------------------------------------ */

static int begin_object_row(struct object_sending *u, struct err *err)
{
	const struct ingest_op op = { .kind = &object_change_begin, .name = u->name };
	struct ingest_result res = { 0 };

	return ingest_submit(u->o->store, &op, NULL, &res, err);
}

static int convert_upload_error(int rc, struct err *err)
{
	return rc ? objects_failed("cannot write the file to the object store", rc, err) : 0;
}

/* Runs before the first part, while no other is in transfer. *ret stays NULL if it is the only part. */
static int begin_object_upload(struct object_sending *u, const struct upload_part *p, bool last,
			       struct object_upload **ret, struct err *err)
{
	const struct object_put whole = { .key = u->key, .bytes = p->bytes, .n = p->n, .sha256 = p->sha256 };
	int rc = begin_object_row(u, err);

	if (rc)
		return rc;
	return convert_upload_error(last ? object_put(u->o->client, &whole, err)
					 : object_upload_begin(ret, u->o->client, u->key, NULL, err),
				    err);
}

/* but NULL: considers all lanes. */
static bool has_busy_lane(const struct object_sending *u, const struct upload_lane *but)
{
	bool any = false;

	for (int i = 0; i < UNDER_WAY; i++)
		any = any || (u->lane[i].busy && &u->lane[i] != but);
	return any;
}

static void free_upload_part(struct object_sending *u, struct upload_part *p)
{
	objects_give(u->o, p->room);
	if (p->bytes)
		munmap(p->bytes, p->mapped);
	*p = (struct upload_part){ .bytes = NULL };
}

/* Frees all parts; no lane may be busy. */
static void free_upload_parts(struct object_sending *u)
{
	free_upload_part(u, &u->filling);
	for (int i = 0; i < UNDER_WAY; i++)
		free_upload_part(u, &u->lane[i].part);
}

static void drop_object_sending(struct object_sending *u)
{
	object_upload_free(u->parts);
	free_upload_parts(u);
	pthread_cond_destroy(&u->rests);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

/* Under the lock. */
static void give_lane_to_pool(struct object_sending *u, struct upload_lane *l)
{
	const struct upload_part spare = l->part;

	l->part = u->filling;
	l->number = ++u->given;
	l->busy = true;
	u->filling = spare;
	u->filling.n = 0;
	u->last = u->complete;
	thread_pool_give(u->o->crew, &l->task);
}

/* Under the lock: passes a full part to a free lane; the second part only after the first has begun. */
static void pass_full_part(struct object_sending *u)
{
	for (int i = 0; i < UNDER_WAY; i++) {
		bool due = u->complete ? !u->last : u->filling.n >= part_bytes(u);

		if (due && !u->lane[i].busy && !u->rc && !u->abandoned && (u->parts || !u->given))
			give_lane_to_pool(u, &u->lane[i]);
	}
}

static void wake_upload_writer(struct object_sending *u)
{
	bool waiting = u->waiting;

	u->waiting = false;
	if (waiting && !u->abandoned)
		u->room.wake(u->room.arg);
}

static int send_upload_part(struct object_upload *parts, const struct upload_lane *l, struct err *err)
{
	const struct upload_part *p = &l->part;

	return convert_upload_error(
		object_upload_numbered(parts, &(struct object_part){ l->number, p->bytes, p->n, p->sha256 }, err), err);
}

/* Under the lock, which is released during requests. */
static int send_lane_part(struct object_sending *u, struct upload_lane *l, struct err *err)
{
	struct object_upload *parts = u->parts;
	bool last = u->last;
	int rc;

	pthread_mutex_unlock(&u->lock);
	rc = parts ? 0 : begin_object_upload(u, &l->part, last, &parts, err);
	pthread_mutex_lock(&u->lock);
	u->parts = parts;
	if (rc || !parts || u->abandoned)
		return rc;
	pass_full_part(u);
	wake_upload_writer(u);
	pthread_mutex_unlock(&u->lock);
	if (l->part.n)
		rc = send_upload_part(parts, l, err);
	pthread_mutex_lock(&u->lock);
	return rc;
}

/* Under the lock, which is released during the request: this lane sent the last of all parts. */
static int finish_upload(struct object_sending *u, struct err *err)
{
	int rc = 0;

	if (u->parts) {
		pthread_mutex_unlock(&u->lock);
		rc = convert_upload_error(object_upload_end(u->parts, err), err);
		pthread_mutex_lock(&u->lock);
	}
	u->ended = !rc;
	return rc;
}

/* Task of the pool: sends the part of a lane, ends the upload after the last, and starts the next part. */
static void send_part_in_background(void *arg)
{
	struct upload_lane *l = arg;
	struct object_sending *u = l->u;
	struct err err = ERR_INIT;
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	if (!u->rc && !u->abandoned)
		rc = send_lane_part(u, l, &err);
	if (!rc && !u->rc && !u->abandoned && u->last && !has_busy_lane(u, l))
		rc = finish_upload(u, &err);
	if (rc && !u->rc) {
		u->rc = rc;
		u->err = err;
	}
	l->part.n = 0;
	l->busy = false;
	pass_full_part(u);
	wake_upload_writer(u);
	if (u->abandoned && !has_busy_lane(u, NULL)) {
		pthread_mutex_unlock(&u->lock);
		drop_object_sending(u);
		return;
	}
	pthread_cond_broadcast(&u->rests);
	pthread_mutex_unlock(&u->lock);
}

/* --- writer side ---------------------------------------------------------------------------------------------- */

int object_sending_begin(struct object_sending **ret, struct objects *o, const struct artifact_room *room,
			 struct err *err)
{
	struct object_sending *u;
	int rc = objects_ready(o, err);

	if (rc)
		return rc;
	u = mem_zalloc(sizeof(*u));
	u->o = o;
	u->room = *room;
	for (int i = 0; i < UNDER_WAY; i++)
		u->lane[i] =
			(struct upload_lane){ .u = u, .task = { .fn = send_part_in_background, .arg = &u->lane[i] } };
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->rests, NULL);
	sha256_init(&u->sha);
	sha256_init(&u->part_sha);
	rc = files_draw_name(u->name, err);
	objects_key(o, u->name, u->key);
	if (rc)
		drop_object_sending(u);
	else
		*ret = u;
	return rc;
}

/* Maps pages for a whole part and keeps what was written. */
static bool map_part(struct upload_part *p, size_t bytes)
{
	void *at = p->bytes ? mremap(p->bytes, p->mapped, bytes, MREMAP_MAYMOVE)
			    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return false;
	p->bytes = at;
	p->mapped = bytes;
	return true;
}

/* Under the lock: takes pages of an idle lane; true if there are pages to fill or may be. */
static bool find_part_pages(struct object_sending *u)
{
	int busy = 0;

	for (int i = 0; i < UNDER_WAY && !u->filling.bytes; i++) {
		busy += u->lane[i].busy;
		if (u->lane[i].busy || !u->lane[i].part.bytes)
			continue;
		u->filling = u->lane[i].part;
		u->lane[i].part = (struct upload_part){ .bytes = NULL };
	}
	return u->filling.bytes || busy < BUFFERS;
}

/* Under the lock: reserves room for n more bytes, which fit into the part. */
static int make_part_room(struct object_sending *u, size_t n, struct err *err)
{
	struct upload_part *p = &u->filling;
	size_t room = p->room ? p->room : 4096;

	if (p->mapped < part_bytes(u) && !map_part(p, part_bytes(u)))
		return err_nomem(err, NULL);
	if (p->n + n <= p->room)
		return 0;
	while (room < p->n + n)
		room *= 2;
	room = room < p->mapped ? room : p->mapped;
	if (!objects_hold(u->o, room - p->room))
		return err_set(err, ERR_BUSY, "too many large files are in transfer: try again later");
	p->room = room;
	return 0;
}

/* Where the next bytes go, and how many of n; ARTIFACT_WAIT if the part is full. */
static int find_part_place(struct object_sending *u, size_t n, char **ret, size_t *ret_n, struct err *err)
{
	size_t left;
	int rc;

	pthread_mutex_lock(&u->lock);
	left = u->filling.n < part_bytes(u) ? part_bytes(u) - u->filling.n : 0;
	*ret_n = n < left ? n : left;
	rc = u->rc;
	if (rc)
		*err = u->err;
	else
		rc = left && find_part_pages(u) ? make_part_room(u, *ret_n, err) : ARTIFACT_WAIT;
	if (!rc)
		*ret = u->filling.bytes + u->filling.n;
	u->waiting = rc == ARTIFACT_WAIT;
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* The part is complete: finishes its digest. */
static void finish_part_digest(struct object_sending *u)
{
	sha256_end(&u->part_sha, u->filling.sha256);
	sha256_init(&u->part_sha);
}

static void add_part_bytes(struct object_sending *u, char *to, const char *bytes, size_t n)
{
	memcpy(to, bytes, n);
	sha256_add_both(&u->sha, &u->part_sha, to, n);
	pthread_mutex_lock(&u->lock);
	if (u->filling.n + n == part_bytes(u))
		finish_part_digest(u);
	u->filling.n += n;
	pass_full_part(u);
	pthread_mutex_unlock(&u->lock);
}

int object_sending_write(struct object_sending *u, const void *bytes, size_t n, struct err *err)
{
	size_t some;
	char *to = NULL;
	int rc = 0;

	while (u->taken < n && !rc) {
		rc = find_part_place(u, n - u->taken, &to, &some, err);
		if (rc)
			break;
		add_part_bytes(u, to, (const char *)bytes + u->taken, some);
		u->taken += some;
	}
	if (rc)
		return rc;
	u->bytes += n;
	u->taken = 0;
	return 0;
}

int object_sending_commit(struct object_sending *u, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1, .bytes = u->bytes, .time_ns = clock_wall_ms() * 1000000 };
	int rc;

	pthread_mutex_lock(&u->lock);
	u->complete = true;
	if (u->filling.n < part_bytes(u))
		finish_part_digest(u);
	pass_full_part(u);
	while (u->rc ? has_busy_lane(u, NULL) : !u->ended)
		pthread_cond_wait(&u->rests, &u->lock);
	free_upload_parts(u);
	rc = u->rc;
	if (rc)
		*err = u->err;
	pthread_mutex_unlock(&u->lock);
	if (rc)
		return rc;
	sha256_end(&u->sha, f.sha256);
	memcpy(f.object, u->name, sizeof(u->name));
	*ret = f;
	return 0;
}

void object_sending_end(struct object_sending *u)
{
	bool crews;

	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	crews = has_busy_lane(u, NULL) || u->parts; /* freeing parts needs a request */
	u->abandoned = true;
	if (crews && !has_busy_lane(u, NULL))
		give_lane_to_pool(u, &u->lane[0]);
	pthread_mutex_unlock(&u->lock);
	if (!crews)
		drop_object_sending(u);
}
