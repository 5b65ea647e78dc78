/* fetch.c: blocks, the queue of those that are wanted, and the thread that asks for them.
 *
 * A block waits in the queue, is under way in a slot, is held, or has failed. Readers that come to a block that nobody
 * announced put it at the head. The thread alone touches libcurl; a block that is under way is its own. */
#include "trainer/data/store/fetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tracker/base/clock.h"
#include "tracker/base/cond.h"
#include "tracker/object/object.h"
#include "trainer/data/store/cache.h"
#include "trainer/data/store/transfer.h"

#define BUCKETS 4096
#define SLOTS 64
#define FLIGHT_BLOCKS 16 /* in flight, of whole blocks */
#define ROOM_BYTES ((size_t)1 << 30)
#define QUEUE_LOOK 256 /* blocks from the head of the queue on that may begin before those that are tried again */
#define WRONG_MOST 5
#define STALL_S 3.0    /* of a first try; doubled with each */
#define STALL_MOST_S 60.0
#define BACKOFF_S 0.1
#define BACKOFF_MOST_S 10.0
#define RETRY_AFTER_MOST_S 60.0
#define LOOK_S 0.2 /* between two looks at what ends a wait */
#define OTHERS_LOOK_S 0.05 /* … at whether another process has fetched a block */
#define OTHERS_MOST_S 60.0 /* then it is fetched here too */
#define CACHE_TRIES 3

enum block_state { QUEUED, GOING, HELD, FAILED, CACHED };

struct block {
	TAILQ_ENTRY(block) link; /* in the queue, among those that are held for nobody, or to be kept in the cache */
	struct block *next;	 /* in its bucket */
	int object;
	uint64_t begin;
	size_t n;
	enum block_state state;
	int uses;    /* announced reads to come */
	int readers; /* that wait for it or copy */
	int tries, wrong;
	bool urgent, probe;
	bool claimed;	/* in the cache: other processes leave it to this one */
	bool direct;	/* past the cache */
	double others;	/* since when another process fetches it; 0: none does */
	double not_before, asked;
	char *bytes;
	struct err err;
};

TAILQ_HEAD(blocks, block);

struct object {
	char *url, *shown;
	struct object_client *client; /* of S3; NULL: http */
	const char *key;	      /* … within its bucket */
	char etag[TRANSFER_ETAG_BYTES];
	char modified[64];
	uint64_t bytes; /* 0: not known, or empty */
	bool known;
	uint8_t *cached; /* a bit a block: it was seen in the cache */
	struct err err;
};

struct slot {
	struct transfer transfer;
	struct curl_slist *headers;
	struct object_signed sign; /* of S3; its headers are those above */
	struct block *block; /* NULL: free */
};

/* Buckets of S3, each with a client. */
struct bucket {
	char name[OBJECT_BUCKET_BYTES];
	struct object_client *client;
};

struct fetch {
	struct fetch_opts o;
	struct curlso so;
	void *multi;
	pthread_t thread, keeper;
	bool started, stop, keeps; /* keeps: the keeper was started */
	pthread_mutex_t lock;
	pthread_cond_t arrived, kept;
	struct object *object;
	int n, cap;
	struct block *hashed[BUCKETS];
	struct bucket *bucket;
	int n_buckets;
	struct blocks queue, idle;
	struct blocks to_keep;
	size_t held_bytes; /* of all blocks with memory */
	size_t due_bytes;  /* of those that were announced and not read, and of those in the queue */
	struct slot slot[SLOTS];
	int going, going_most;
	size_t going_bytes;
	uint64_t going_got; /* what had arrived of all that is under way */
	double progress; /* when bytes last arrived */
	uint64_t draws;
	struct fetch_counts counts;
};

bool fetch_is_remote(const char *address)
{
	return !strncmp(address, "http://", 7) || !strncmp(address, "https://", 8) || object_is_address(address);
}

int fetch_new(struct fetch **ret, const struct fetch_opts *o, struct err *err)
{
	struct fetch *f = calloc(1, sizeof(*f));
	int rc = f ? curlso_load(&f->so, err) : err_set(err, ERR_NOMEM, "out of memory");

	if (!rc && !f->so.multi_init)
		rc = err_set(err, ERR_UNSUPPORTED, "data on servers needs libcurl 7.68 or newer (Debian: libcurl4)");
	if (rc) {
		free(f);
		return rc;
	}
	f->o = *o;
	f->o.room_bytes = o->room_bytes ? o->room_bytes : ROOM_BYTES;
	f->going_most = o->requests > 0 && o->requests < SLOTS ? o->requests : SLOTS;
	TAILQ_INIT(&f->queue);
	TAILQ_INIT(&f->idle);
	TAILQ_INIT(&f->to_keep);
	pthread_mutex_init(&f->lock, NULL);
	cond_init(&f->arrived);
	cond_init(&f->kept);
	f->multi = f->so.multi_init();
	if (!f->multi) {
		fetch_free(f);
		return err_set(err, ERR_NOMEM, "out of memory: libcurl");
	}
	*ret = f;
	return 0;
}

static void free_objects(struct fetch *f)
{
	for (int i = 0; i < f->n; i++) {
		free(f->object[i].url);
		free(f->object[i].shown);
		free(f->object[i].cached);
	}
	free(f->object);
	for (int i = 0; i < f->n_buckets; i++)
		object_close(f->bucket[i].client);
	free(f->bucket);
}

static void free_headers(struct fetch *f, struct slot *s)
{
	struct object_client *client = s->block ? f->object[s->block->object].client : NULL;

	if (client) {
		s->sign.headers = s->headers;
		object_signed_done(client, &s->sign);
	} else {
		f->so.slist_free_all(s->headers);
	}
	s->headers = NULL;
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_mutex_unlock(&f->lock);
	if (f->started) {
		f->so.multi_wakeup(f->multi);
		pthread_join(f->thread, NULL);
	}
	if (f->keeps) {
		pthread_cond_signal(&f->kept);
		pthread_join(f->keeper, NULL);
	}
	for (int i = 0; i < SLOTS; i++) {
		if (f->slot[i].block)
			f->so.multi_remove(f->multi, f->slot[i].transfer.easy);
		if (f->slot[i].transfer.easy)
			f->so.easy_cleanup(f->slot[i].transfer.easy);
		free_headers(f, &f->slot[i]);
	}
	if (f->multi)
		f->so.multi_cleanup(f->multi);
	for (int i = 0; i < BUCKETS; i++)
		for (struct block *b = f->hashed[i], *next; b; b = next) {
			next = b->next;
			free(b->bytes);
			free(b);
		}
	free_objects(f);
	pthread_cond_destroy(&f->arrived);
	pthread_cond_destroy(&f->kept);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Without user, password and query. */
static char *shown_of(const char *url)
{
	size_t scheme = (size_t)(strstr(url, "://") + 3 - url), host = strcspn(url + scheme, "/?#");
	const char *at = memrchr(url + scheme, '@', host), *from = at ? at + 1 : url + scheme;
	char *text;

	if (asprintf(&text, "%.*s%.*s", (int)scheme, url, (int)strcspn(from, "?#"), from) < 0)
		return NULL;
	return text;
}

/* The client of a bucket, made when it is first named. */
static int find_bucket(struct fetch *f, const char *name, struct object_client **ret, struct err *err)
{
	struct bucket *more;
	int rc;

	for (int i = 0; i < f->n_buckets; i++)
		if (!strcmp(f->bucket[i].name, name)) {
			*ret = f->bucket[i].client;
			return 0;
		}
	more = realloc(f->bucket, (size_t)(f->n_buckets + 1) * sizeof(*more));
	if (!more)
		return err_set(err, ERR_NOMEM, "out of memory");
	f->bucket = more;
	more += f->n_buckets;
	rc = object_open(&more->client, name, &(struct object_opts){ .timeout_s = f->o.timeout_s }, err);
	if (rc)
		return rc;
	snprintf(more->name, sizeof(more->name), "%s", name);
	f->n_buckets++;
	*ret = more->client;
	return 0;
}

static int find_client(struct fetch *f, struct object *o, struct err *err)
{
	char bucket[OBJECT_BUCKET_BYTES];
	int rc;

	if (!object_is_address(o->url))
		return 0;
	rc = object_split(o->url, bucket, &o->key, err);
	return rc ? rc : find_bucket(f, bucket, &o->client, err);
}

int fetch_add(struct fetch *f, const char *url, struct err *err)
{
	struct object *more = f->object;
	int rc;

	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 64;
		more = realloc(f->object, (size_t)f->cap * sizeof(*more));
		if (!more)
			return err_set(err, ERR_NOMEM, "out of memory: the names of %d objects", f->cap);
		f->object = more;
	}
	f->object[f->n] = (struct object){ .url = strdup(url), .shown = shown_of(url) };
	if (!f->object[f->n].url || !f->object[f->n].shown)
		rc = err_set(err, ERR_NOMEM, "out of memory");
	else
		rc = find_client(f, &f->object[f->n], err);
	if (rc) {
		free(f->object[f->n].url);
		free(f->object[f->n].shown);
		return rc;
	}
	return f->n++;
}

uint64_t fetch_bytes(const struct fetch *f, int object)
{
	return f->object[object].bytes;
}

const char *fetch_etag(const struct fetch *f, int object)
{
	return f->object[object].etag;
}

const char *fetch_shown(const struct fetch *f, int object)
{
	return f->object[object].shown;
}

/* ---- blocks; all of it under the lock ---- */

static struct block **bucket_of(struct fetch *f, int object, uint64_t begin)
{
	uint64_t x = ((uint64_t)object * 0x9e3779b97f4a7c15u) ^ (begin * 0xbf58476d1ce4e5b9u);

	return &f->hashed[(x ^ x >> 32) % BUCKETS];
}

static struct block *find(struct fetch *f, int object, uint64_t begin, size_t n)
{
	struct block *b = *bucket_of(f, object, begin);

	while (b && (b->object != object || b->begin != begin || b->n != n || b->probe || b->state == CACHED))
		b = b->next;
	return b;
}

static struct block *queue_block(struct fetch *f, int object, uint64_t begin, size_t n)
{
	struct block *b = calloc(1, sizeof(*b)), **at = bucket_of(f, object, begin);

	if (!b)
		return NULL;
	b->object = object;
	b->begin = begin;
	b->n = n;
	b->asked = clock_mono_s();
	b->next = *at;
	*at = b;
	TAILQ_INSERT_TAIL(&f->queue, b, link);
	return b;
}

/* A block that nobody waits for and nobody announced. */
static void drop(struct fetch *f, struct block *b)
{
	struct block **at = bucket_of(f, b->object, b->begin);

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	if (b->bytes)
		f->held_bytes -= b->n;
	free(b->bytes);
	free(b);
}

static void make_room(struct fetch *f, size_t n)
{
	while (f->held_bytes + n > f->o.room_bytes && !TAILQ_EMPTY(&f->idle)) {
		struct block *b = TAILQ_FIRST(&f->idle);

		TAILQ_REMOVE(&f->idle, b, link);
		drop(f, b);
	}
}

/* Held or failed, and of no use to anybody now: the oldest of them go first. */
static void rest(struct fetch *f, struct block *b)
{
	if (b->uses || b->readers || b->state == QUEUED || b->state == GOING)
		return;
	if (b->state == FAILED || b->state == CACHED)
		drop(f, b);
	else
		TAILQ_INSERT_TAIL(&f->idle, b, link);
}

/* ---- the cache ---- */

/* Without a version nobody knows whether what was kept is still the object. */
static bool is_kept(const struct fetch *f, int object)
{
	const struct object *o = &f->object[object];

	return f->o.cache && o->known && (o->etag[0] || o->modified[0]);
}

static void name_block(const struct fetch *f, int object, uint64_t begin, struct cache_block *ret)
{
	const struct object *o = &f->object[object];

	cache_name(&(struct cache_key){ o->shown, o->etag[0] ? o->etag : o->modified, o->bytes, begin }, ret);
}

static bool was_seen(const struct object *o, uint64_t begin)
{
	uint64_t number = begin / FETCH_BLOCK;

	return o->cached && o->cached[number / 8] & 1 << number % 8;
}

/* Under the lock. */
static void set_seen(struct fetch *f, int object, uint64_t begin, bool seen)
{
	struct object *o = &f->object[object];
	uint64_t number = begin / FETCH_BLOCK;

	if (!o->cached)
		o->cached = calloc(o->bytes / FETCH_BLOCK / 8 + 1, 1);
	if (o->cached && seen)
		o->cached[number / 8] |= (uint8_t)(1 << number % 8);
	else if (o->cached)
		o->cached[number / 8] &= (uint8_t) ~(1 << number % 8);
}

/* Whether the block is in the cache, as far as one can tell without reading it. Under the lock. */
static bool in_cache(struct fetch *f, int object, uint64_t begin)
{
	struct cache_block name;

	if (!is_kept(f, object))
		return false;
	if (was_seen(&f->object[object], begin))
		return true;
	name_block(f, object, begin, &name);
	if (!cache_has(f->o.cache, &name))
		return false;
	set_seen(f, object, begin, true);
	return true;
}

static void release(struct fetch *f, struct block *b)
{
	struct cache_block name;

	if (!b->claimed)
		return;
	name_block(f, b->object, b->begin, &name);
	cache_release(f->o.cache, &name);
	b->claimed = false;
}

/* A block of the queue is in the cache by now: whoever waits for it reads it there. */
static void leave_to_cache(struct fetch *f, struct block *b)
{
	TAILQ_REMOVE(&f->queue, b, link);
	release(f, b);
	if (b->uses)
		f->due_bytes -= b->n;
	b->uses = 0;
	b->state = CACHED;
	pthread_cond_broadcast(&f->arrived);
	rest(f, b);
}

/* Whether the block need not be asked for, or not yet: it is in the cache, or another process fetches it. */
static bool is_elsewhere(struct fetch *f, struct block *b)
{
	double now = clock_mono_s();
	struct cache_block name;

	if (b->probe || b->direct || b->claimed || !is_kept(f, b->object))
		return false;
	if (in_cache(f, b->object, b->begin)) {
		leave_to_cache(f, b);
		return true;
	}
	name_block(f, b->object, b->begin, &name);
	b->claimed = cache_claim(f->o.cache, &name);
	if (b->claimed && in_cache(f, b->object, b->begin)) { /* since the look before */
		leave_to_cache(f, b);
		return true;
	}
	b->others = b->claimed ? 0 : b->others > 0 ? b->others : now;
	b->direct = b->others > 0 && now - b->others > OTHERS_MOST_S;
	b->not_before = now + OTHERS_LOOK_S;
	return !b->claimed && !b->direct;
}

/* Writes what has arrived, so that the thread that asks need not wait for the disk. */
static void *run_keeper(void *arg)
{
	struct fetch *f = arg;
	struct block *b;

	pthread_setname_np(pthread_self(), "dptrain-keep");
	pthread_mutex_lock(&f->lock);
	while ((b = TAILQ_FIRST(&f->to_keep)) || !f->stop) {
		struct cache_block name;

		if (!b) {
			pthread_cond_wait(&f->kept, &f->lock);
			continue;
		}
		TAILQ_REMOVE(&f->to_keep, b, link);
		name_block(f, b->object, b->begin, &name);
		pthread_mutex_unlock(&f->lock);
		cache_keep(f->o.cache, &name, b->bytes, b->n);
		pthread_mutex_lock(&f->lock);
		release(f, b);
		b->readers--;
		rest(f, b);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* The keeper is one of its readers until it is written. */
static void keep(struct fetch *f, struct block *b)
{
	if (!f->keeps)
		f->keeps = !pthread_create(&f->keeper, NULL, run_keeper, f);
	if (!f->keeps) {
		release(f, b);
		return;
	}
	b->readers++;
	TAILQ_INSERT_TAIL(&f->to_keep, b, link);
	pthread_cond_signal(&f->kept);
}

/* ---- the thread ---- */

static struct slot *free_slot(struct fetch *f)
{
	for (int i = 0; i < SLOTS; i++)
		if (!f->slot[i].block)
			return &f->slot[i];
	return NULL;
}

static double doubled(double first, int times, double most)
{
	for (; times > 0 && first < most; times--)
		first *= 2;
	return first < most ? first : most;
}

/* Headers of a request for the object; for S3 the signed address too. */
static int ready_headers(struct fetch *f, struct slot *s, const struct object *o, struct err *err)
{
	char line[TRANSFER_ETAG_BYTES + 16];
	int rc = 0;

	s->sign = (struct object_signed){ .url = NULL };
	if (o->client)
		rc = object_sign(o->client, &(struct object_ask){ .method = "GET", .key = o->key }, &s->sign, err);
	if (rc)
		return rc;
	s->headers = s->sign.headers;
	snprintf(line, sizeof(line), "If-Match: %s", o->etag);
	if (o->etag[0] && strncmp(o->etag, "W/", 2) != 0)
		s->headers = f->so.slist_append(s->headers, line);
	return 0;
}

static void fail(struct fetch *f, struct block *b, const char *why)
{
	release(f, b);
	b->state = FAILED;
	err_set(&b->err, ERR_IO, "%.250s: %.230s", f->object[b->object].shown, why);
	pthread_cond_broadcast(&f->arrived);
}

static bool begin(struct fetch *f, struct slot *s, struct block *b)
{
	struct object *o = &f->object[b->object];
	double stall = doubled(STALL_S, b->tries, STALL_MOST_S);
	struct err err = ERR_INIT;

	if (!b->bytes) {
		make_room(f, b->n);
		if (f->held_bytes && f->held_bytes + b->n > f->o.room_bytes && !b->urgent && !b->probe)
			return false;
		b->bytes = malloc(b->n);
		if (!b->bytes)
			return false;
		f->held_bytes += b->n;
	}
	if (!s->transfer.easy)
		s->transfer.easy = f->so.easy_init();
	if (!s->transfer.easy)
		return false;
	TAILQ_REMOVE(&f->queue, b, link);
	if (ready_headers(f, s, o, &err)) {
		fail(f, b, err.text);
		rest(f, b);
		return true;
	}
	b->state = GOING;
	s->block = b;
	f->going++;
	f->going_bytes += b->n;
	f->counts.requests++;
	f->counts.retries += b->tries > 0;
	transfer_begin(&s->transfer, &f->so,
		       &(struct transfer_want){ .url = s->sign.url ? s->sign.url : o->url,
						.etag = o->etag,
						.begin = b->begin,
						.n = b->n,
						.total = o->bytes,
						.stall_s = stall < f->o.timeout_s ? stall : f->o.timeout_s,
						.headers = s->headers,
						.follows = !o->client,
						.ca = s->sign.ca,
						.to = b->bytes });
	s->transfer.user = s;
	f->so.multi_add(f->multi, s->transfer.easy);
	return true;
}

/* Begins what may begin; returns when something that waits may be tried again. */
static double begin_some(struct fetch *f)
{
	double now = clock_mono_s(), next = now + 1;
	struct block *b = TAILQ_FIRST(&f->queue), *behind;

	for (int i = 0; b && i < QUEUE_LOOK; i++, b = behind) {
		struct slot *s = free_slot(f);

		behind = TAILQ_NEXT(b, link);
		if (!s || f->going >= f->going_most ||
		    (f->going && f->going_bytes + b->n > FLIGHT_BLOCKS * FETCH_BLOCK))
			break;
		if (b->not_before > now) {
			next = b->not_before < next ? b->not_before : next;
			continue;
		}
		if (is_elsewhere(f, b)) /* b may be gone */
			next = now + OTHERS_LOOK_S;
		else if (!begin(f, s, b))
			break;
	}
	return next;
}

/* A second in which the other tries of many ranks do not fall together. */
static double jittered(struct fetch *f, double seconds)
{
	uint64_t x = (++f->draws + (uint64_t)(uintptr_t)f) * 0x9e3779b97f4a7c15u;

	return seconds * (0.5 + 0.5 * (double)(x >> 40) / (double)(1 << 24));
}

static void try_again(struct fetch *f, struct block *b, const struct transfer *t, const char *why)
{
	double now = clock_mono_s(), since = f->progress > b->asked ? f->progress : b->asked;
	double wait = jittered(f, doubled(BACKOFF_S, b->tries++, BACKOFF_MOST_S));
	char text[260];

	if (now - since > f->o.timeout_s) {
		snprintf(text, sizeof(text), "nothing has arrived for %.0f s: %s", now - since, why);
		fail(f, b, text);
		return;
	}
	if (t->retry_after_s > wait)
		wait = t->retry_after_s < RETRY_AFTER_MOST_S ? t->retry_after_s : RETRY_AFTER_MOST_S;
	b->state = QUEUED;
	b->not_before = now + wait;
	TAILQ_INSERT_HEAD(&f->queue, b, link);
}

static void arrive(struct fetch *f, struct block *b, const struct transfer *t)
{
	struct object *o = &f->object[b->object];

	f->progress = clock_mono_s();
	f->going_most += f->going_most < (f->o.requests > 0 && f->o.requests < SLOTS ? f->o.requests : SLOTS);
	if (!o->etag[0])
		snprintf(o->etag, sizeof(o->etag), "%s", t->etag);
	if (b->probe) {
		o->bytes = t->total;
		o->known = true;
		memcpy(o->modified, t->modified, sizeof(o->modified));
	}
	b->state = HELD;
	if (b->claimed)
		keep(f, b);
}

/* Keys that ran out, or a bucket that lies in another region. */
static bool may_sign_anew(const struct object *o, const struct transfer *t)
{
	char code[OBJECT_CODE_BYTES];

	object_code(t->text, t->text_n, code);
	return o->client && object_learn(o->client, &(struct object_refusal){ t->status, code, t->region });
}

static void finish(struct fetch *f, struct slot *s, int code)
{
	struct block *b = s->block;
	struct transfer *t = &s->transfer;
	char why[200] = "";
	enum transfer_end end = transfer_end(t, &f->so, code, why);

	if (end == TRANSFER_REFUSED && may_sign_anew(&f->object[b->object], t))
		end = TRANSFER_AGAIN;

	f->so.multi_remove(f->multi, t->easy);
	free_headers(f, s);
	s->block = NULL;
	f->going--;
	f->going_bytes -= b->n;
	f->counts.bytes += t->got;
	if (end == TRANSFER_BUSY)
		f->going_most = f->going_most > 1 ? f->going_most / 2 : 1;
	if (b->probe && (t->status == 416 || (t->status == 200 && !t->total && !t->got))) {
		f->object[b->object].known = true; /* empty */
		b->state = HELD;
	} else if (end == TRANSFER_DONE) {
		arrive(f, b, t);
	} else if (end == TRANSFER_REFUSED || (end == TRANSFER_WRONG && ++b->wrong >= WRONG_MOST)) {
		fail(f, b, why);
	} else {
		try_again(f, b, t, why);
	}
	pthread_cond_broadcast(&f->arrived);
	rest(f, b);
}

/* Takes what has arrived; true when there is room for the next. */
static bool take_arrived(struct fetch *f)
{
	uint64_t got = 0;
	const struct curlso_message *m;
	bool any = false;
	int left;

	for (int i = 0; i < SLOTS; i++)
		got += f->slot[i].block ? f->slot[i].transfer.got : 0;
	if (got != f->going_got)
		f->progress = clock_mono_s();
	while ((m = f->so.multi_info_read(f->multi, &left)))
		for (int i = 0; i < SLOTS; i++)
			if (f->slot[i].block && f->slot[i].transfer.easy == m->easy) {
				got -= f->slot[i].transfer.got;
				finish(f, &f->slot[i], m->result.code);
				any = true;
				break;
			}
	f->going_got = got;
	return any;
}

static void *run_thread(void *arg)
{
	struct fetch *f = arg;

	pthread_setname_np(pthread_self(), "dptrain-fetch");
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		double next = begin_some(f), wait;
		int running;

		pthread_mutex_unlock(&f->lock);
		f->so.multi_perform(f->multi, &running);
		pthread_mutex_lock(&f->lock);
		if (take_arrived(f))
			next = 0;
		wait = next - clock_mono_s();
		pthread_mutex_unlock(&f->lock);
		if (wait > 0)
			f->so.multi_poll(f->multi, NULL, 0, (int)(wait * 1000) + 1, NULL);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* The thread begins with the first block: a process may fork before. Under the lock. */
static int start(struct fetch *f, struct err *err)
{
	sigset_t all, before;
	int rc = 0;

	if (!f->started) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		rc = pthread_create(&f->thread, NULL, run_thread, f);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		f->started = !rc;
	}
	if (!rc)
		f->so.multi_wakeup(f->multi);
	return rc ? err_set_errno(err, rc, "cannot start the thread that fetches") : 0;
}

/* ---- readers ---- */

/* The part of a range that lies in one block. */
struct part {
	uint64_t begin; /* of the block */
	size_t n;
	size_t skip, take; /* of the block's bytes */
};

static struct part part_at(const struct fetch *f, const struct fetch_range *r, size_t done)
{
	uint64_t at = r->at + done, bytes = f->object[r->object].bytes;
	struct part p = { .begin = at / FETCH_BLOCK * FETCH_BLOCK };
	size_t left = r->n - done;
	bool alone = r->alone && !is_kept(f, r->object);

	if (alone)
		p.begin = at;
	p.n = (size_t)(bytes - p.begin < FETCH_BLOCK ? bytes - p.begin : FETCH_BLOCK);
	if (alone && left < p.n)
		p.n = left;
	p.skip = (size_t)(at - p.begin);
	p.take = left < p.n - p.skip ? left : p.n - p.skip;
	return p;
}

static bool want_part(struct fetch *f, int object, const struct part *p)
{
	struct block *b = find(f, object, p->begin, p->n);

	if (!b && in_cache(f, object, p->begin))
		return true;
	if (!b) {
		if (f->due_bytes + p->n > f->o.room_bytes && f->due_bytes)
			return false;
		b = queue_block(f, object, p->begin, p->n);
	} else if (b->state == HELD && !b->uses && !b->readers) {
		TAILQ_REMOVE(&f->idle, b, link);
	}
	if (b && !b->uses++)
		f->due_bytes += b->n;
	return b != NULL;
}

bool fetch_want(struct fetch *f, const struct fetch_range *r)
{
	bool more = true;

	pthread_mutex_lock(&f->lock);
	for (size_t done = 0; done < r->n && more;) {
		struct part p = part_at(f, r, done);

		more = want_part(f, r->object, &p);
		done += p.take;
	}
	if (more)
		start(f, NULL);
	pthread_mutex_unlock(&f->lock);
	return more;
}

/* Until the block is held; it is the caller's to read. ERR_EXISTS: it is in the cache. */
static int wait_for(struct fetch *f, struct block *b, const struct fetch_range *r, struct err *err)
{
	double began = clock_mono_s();

	while (b->state == QUEUED || b->state == GOING) {
		double now = clock_mono_s(), since = f->progress > began ? f->progress : began;

		if (r->stop && atomic_load(r->stop))
			return err_set(err, ERR_CANCELED, "%.250s: nobody waits for it any more",
				       f->object[b->object].shown);
		if (now - since > f->o.timeout_s + STALL_MOST_S)
			return err_set(err, ERR_IO, "%.250s: nothing has arrived for %.0f s",
				       f->object[b->object].shown, now - since);
		cond_wait_until(&f->arrived, &f->lock, now + LOOK_S);
	}
	if (b->state == FAILED)
		return err_set(err, b->err.code, "%s", b->err.text);
	return b->state == CACHED ? ERR_EXISTS : 0;
}

/* Where the block is neither held nor on its way, but in the cache. */
static bool read_cached(struct fetch *f, const struct fetch_range *r, const struct part *p, char *to)
{
	struct cache_block name;
	bool done;

	pthread_mutex_lock(&f->lock);
	done = !find(f, r->object, p->begin, p->n) && in_cache(f, r->object, p->begin);
	pthread_mutex_unlock(&f->lock);
	if (!done)
		return false;
	name_block(f, r->object, p->begin, &name);
	done = cache_read(f->o.cache, &name, p->skip, to, p->take);
	pthread_mutex_lock(&f->lock);
	if (done)
		f->counts.cache_bytes += p->take;
	else
		set_seen(f, r->object, p->begin, false);
	pthread_mutex_unlock(&f->lock);
	return done;
}

static int read_fetched(struct fetch *f, const struct fetch_range *r, const struct part *p, char *to, bool direct,
			struct err *err)
{
	struct block *b;
	int rc;

	pthread_mutex_lock(&f->lock);
	b = find(f, r->object, p->begin, p->n);
	if (!b)
		b = queue_block(f, r->object, p->begin, p->n);
	rc = b ? start(f, err) : err_set(err, ERR_NOMEM, "out of memory");
	if (rc)
		goto out;
	if (b->state == QUEUED && !b->urgent && !b->tries) {
		TAILQ_REMOVE(&f->queue, b, link);
		TAILQ_INSERT_HEAD(&f->queue, b, link);
		f->so.multi_wakeup(f->multi);
	}
	if (b->state == HELD && !b->uses && !b->readers)
		TAILQ_REMOVE(&f->idle, b, link);
	b->urgent = true;
	b->direct |= direct;
	b->readers++;
	rc = wait_for(f, b, r, err);
	if (!rc) {
		pthread_mutex_unlock(&f->lock);
		memcpy(to, b->bytes + p->skip, p->take);
		pthread_mutex_lock(&f->lock);
	}
	b->readers--;
	if (b->uses && !--b->uses)
		f->due_bytes -= b->n;
	rest(f, b);
out:
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int read_part(struct fetch *f, const struct fetch_range *r, const struct part *p, char *to, struct err *err)
{
	int rc = ERR_EXISTS;

	for (int tries = 0; rc == ERR_EXISTS; tries++)
		rc = tries < CACHE_TRIES && read_cached(f, r, p, to)
			? 0
			: read_fetched(f, r, p, to, tries >= CACHE_TRIES, err);
	return rc;
}

int fetch_read(struct fetch *f, const struct fetch_range *r, void *to, struct err *err)
{
	int rc = 0;

	for (size_t done = 0; !rc && done < r->n;) {
		struct part p = part_at(f, r, done);

		rc = read_part(f, r, &p, (char *)to + done, err);
		done += p.take;
	}
	return rc;
}

int fetch_measure(struct fetch *f, struct err *err)
{
	struct block **probe = calloc((size_t)f->n + 1, sizeof(*probe));
	int rc = probe ? 0 : err_set(err, ERR_NOMEM, "out of memory");

	pthread_mutex_lock(&f->lock);
	for (int i = 0; !rc && i < f->n; i++) {
		if (f->object[i].known)
			continue;
		probe[i] = queue_block(f, i, 0, 1);
		if (!probe[i]) {
			rc = err_set(err, ERR_NOMEM, "out of memory");
			break;
		}
		probe[i]->probe = true;
		probe[i]->readers++;
	}
	if (!rc)
		rc = start(f, err);
	for (int i = 0; probe && i < f->n; i++)
		if (probe[i]) {
			int failed = rc ? rc : wait_for(f, probe[i], &(struct fetch_range){ .object = i }, err);

			rc = rc ? rc : failed;
			probe[i]->readers--;
			rest(f, probe[i]);
		}
	pthread_mutex_unlock(&f->lock);
	free(probe);
	if (rc == ERR_IO && err)
		err->code = ERR_USAGE;
	return rc == ERR_IO ? ERR_USAGE : rc;
}

struct fetch_counts fetch_counts(struct fetch *f)
{
	struct fetch_counts c;

	pthread_mutex_lock(&f->lock);
	c = f->counts;
	pthread_mutex_unlock(&f->lock);
	return c;
}
