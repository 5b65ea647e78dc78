/* object_put.c: a file on its way to the store. What comes is gathered to a part; the crew sends the parts before it,
 * at most UNDER_WAY at once; whoever writes is told to wait when all are full. A file of one part is one request. Bytes
 * are looked at once: as they come, for the file's digest and for the part's, which signs its request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tracker/base/clock.h"
#include "web/store/base/no_memory.h"
#include "web/store/files/files.h"
#include "web/store/files/objects.h"

#define UNDER_WAY 2 /* parts that are sent at once: the store works at one while another one travels */
#define BUFFERS 2   /* parts in memory: the next one is gathered while one is sent, or two are sent */
#define PART ((size_t)21 << 20) /* each costs the store some time beside its bytes: so few, and 64 MiB for a server */
#define PARTS_OF_A_SIZE 1000	/* then parts are twice as large: an object has at most 10,000 */

struct upload_part {
	char *bytes;   /* pages of its own, which are memory when they are written to */
	size_t mapped; /* how many bytes of them there are */
	size_t n, room; /* room: what is held of all transfers' memory */
	char sha256[65];
};

/* A part that is sent. */
struct upload_lane {
	struct object_sending *u;
	struct upload_part part;
	int number; /* 1 and up */
	bool busy;  /* the crew has it: then `part` is the crew's */
	struct thread_pool_task task;
};

struct object_sending {
	struct objects *o;
	struct artifact_room room;
	char name[OBJECT_NAME_BYTES], key[OBJECT_KEY_MAX + 1];
	pthread_mutex_t lock; /* of all below but what is the writer's */
	pthread_cond_t rests;
	struct upload_part filling; /* without pages until a lane has some to spare; the writer's until it is full */
	struct upload_lane lane[UNDER_WAY];
	int given;	/* parts, to the crew */
	bool waiting;	/* the writer, for room */
	bool complete;	/* nothing is added to `filling` any more */
	bool last;	/* it was given to the crew, too */
	bool ended;	/* the object is there */
	bool abandoned; /* nobody but the crew knows of it any more */
	struct object_upload *parts; /* NULL: there was no whole part yet, or it begins */
	int rc; /* the first failure */
	struct err err;
	/* the writer's */
	uint64_t bytes;
	size_t taken; /* of bytes that have to wait */
	struct sha256 sha, part_sha;
};

static size_t part_bytes(const struct object_sending *u)
{
	return PART << u->given / PARTS_OF_A_SIZE;
}

/* --- the crew's side ---------------------------------------------------------------------------------------- */

static int begin_object_row(struct object_sending *u, struct err *err)
{
	const struct ingest_op op = { .kind = &object_change_begin, .name = u->name };
	struct ingest_result res = { 0 };

	return ingest_submit(u->o->store, &op, NULL, &res, err);
}

static int fix_upload_error(int rc, struct err *err)
{
	return rc ? objects_failed("the object store does not take the file", rc, err) : 0;
}

/* What stands before the first part: no other one is under way yet. *ret stays NULL where it is the only one. */
static int begin_object_upload(struct object_sending *u, const struct upload_part *p, bool last,
			       struct object_upload **ret, struct err *err)
{
	const struct object_put whole = { .key = u->key, .bytes = p->bytes, .n = p->n, .sha256 = p->sha256 };
	int rc = begin_object_row(u, err);

	if (rc)
		return rc;
	return fix_upload_error(last ? object_put(u->o->client, &whole, err)
				     : object_upload_begin(ret, u->o->client, u->key, NULL, err),
				err);
}

/* NULL: none is left out. */
static bool is_busy(const struct object_sending *u, const struct upload_lane *but)
{
	bool any = false;

	for (int i = 0; i < UNDER_WAY; i++)
		any = any || (u->lane[i].busy && &u->lane[i] != but);
	return any;
}

static void drop_part(struct object_sending *u, struct upload_part *p)
{
	objects_give(u->o, p->room);
	if (p->bytes)
		munmap(p->bytes, p->mapped);
	*p = (struct upload_part){ .bytes = NULL };
}

/* Nothing of them is needed any more, nor busy. */
static void drop_parts(struct object_sending *u)
{
	drop_part(u, &u->filling);
	for (int i = 0; i < UNDER_WAY; i++)
		drop_part(u, &u->lane[i].part);
}

static void drop_object_sending(struct object_sending *u)
{
	object_upload_free(u->parts);
	drop_parts(u);
	pthread_cond_destroy(&u->rests);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

/* Under the lock. */
static void give_lane(struct object_sending *u, struct upload_lane *l)
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

/* Under the lock: what is full goes to the crew, as far as it may; the second part when the first one has begun. */
static void pass_full_part(struct object_sending *u)
{
	for (int i = 0; i < UNDER_WAY; i++) {
		bool due = u->complete ? !u->last : u->filling.n >= part_bytes(u);

		if (due && !u->lane[i].busy && !u->rc && !u->abandoned && (u->parts || !u->given))
			give_lane(u, &u->lane[i]);
	}
}

static void wake_writer(struct object_sending *u)
{
	bool waiting = u->waiting;

	u->waiting = false;
	if (waiting && !u->abandoned)
		u->room.wake(u->room.arg);
}

static int send_upload_part(struct object_upload *parts, const struct upload_lane *l, struct err *err)
{
	const struct upload_part *p = &l->part;

	return fix_upload_error(
		object_upload_numbered(parts, &(struct object_part){ l->number, p->bytes, p->n, p->sha256 }, err), err);
}

/* Under the lock, which is let go meanwhile. */
static int send_lane(struct object_sending *u, struct upload_lane *l, struct err *err)
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
	wake_writer(u);
	pthread_mutex_unlock(&u->lock);
	if (l->part.n)
		rc = send_upload_part(parts, l, err);
	pthread_mutex_lock(&u->lock);
	return rc;
}

/* Under the lock, which is let go meanwhile: the last of all parts has been sent by this lane. */
static int end_parts(struct object_sending *u, struct err *err)
{
	int rc = 0;

	if (u->parts) {
		pthread_mutex_unlock(&u->lock);
		rc = fix_upload_error(object_upload_end(u->parts, err), err);
		pthread_mutex_lock(&u->lock);
	}
	u->ended = !rc;
	return rc;
}

static void send_part_in_background(void *arg)
{
	struct upload_lane *l = arg;
	struct object_sending *u = l->u;
	struct err err = ERR_INIT;
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	if (!u->rc && !u->abandoned)
		rc = send_lane(u, l, &err);
	if (!rc && !u->rc && !u->abandoned && u->last && !is_busy(u, l))
		rc = end_parts(u, &err);
	if (rc && !u->rc) {
		u->rc = rc;
		u->err = err;
	}
	l->part.n = 0;
	l->busy = false;
	pass_full_part(u);
	wake_writer(u);
	if (u->abandoned && !is_busy(u, NULL)) {
		pthread_mutex_unlock(&u->lock);
		drop_object_sending(u);
		return;
	}
	pthread_cond_broadcast(&u->rests);
	pthread_mutex_unlock(&u->lock);
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
		return no_memory(err);
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

/* Pages for a whole part; what was written stays. */
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

/* Under the lock: whether there are pages to fill, or may be; a lane that rests gives its own. */
static bool find_pages(struct object_sending *u)
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

/* Under the lock: room for n more bytes, which the part still takes. */
static int make_part_room(struct object_sending *u, size_t n, struct err *err)
{
	struct upload_part *p = &u->filling;
	size_t room = p->room ? p->room : 4096;

	if (p->mapped < part_bytes(u) && !map_part(p, part_bytes(u)))
		return no_memory(err);
	if (p->n + n <= p->room)
		return 0;
	while (room < p->n + n)
		room *= 2;
	room = room < p->mapped ? room : p->mapped;
	if (!objects_hold(u->o, room - p->room))
		return err_set(err, ERR_BUSY, "too many large files are on their way at once");
	p->room = room;
	return 0;
}

/* Where the next bytes go, and how many of n: ARTIFACT_WAIT when the part is full. */
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
		rc = left && find_pages(u) ? make_part_room(u, *ret_n, err) : ARTIFACT_WAIT;
	if (!rc)
		*ret = u->filling.bytes + u->filling.n;
	u->waiting = rc == ARTIFACT_WAIT;
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* No byte of this part comes any more. */
static void end_part(struct object_sending *u)
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
		end_part(u);
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
		end_part(u);
	pass_full_part(u);
	while (u->rc ? is_busy(u, NULL) : !u->ended)
		pthread_cond_wait(&u->rests, &u->lock);
	drop_parts(u);
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
	crews = is_busy(u, NULL) || u->parts; /* it takes parts back, which asks the store */
	u->abandoned = true;
	if (crews && !is_busy(u, NULL))
		give_lane(u, &u->lane[0]);
	pthread_mutex_unlock(&u->lock);
	if (!crews)
		drop_object_sending(u);
}
