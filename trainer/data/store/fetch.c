/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c: objects and readers. A reader that needs an unannounced block puts it at the head of the queue. */
#include "trainer/data/store/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "trainer/data/store/fetch_inside.h"

#define ROOM_BYTES ((size_t)1 << 30)
#define LOOK_S 0.2 /* interval of the checks that end a wait */
#define CACHE_TRIES 3

bool fetch_is_remote(const char *address)
{
	return !strncmp(address, "http://", 7) || !strncmp(address, "https://", 8) || object_is_address(address);
}

int fetch_new(struct fetch **ret, const struct fetch_opts *o, struct err *err)
{
	struct fetch *f = mem_zalloc(sizeof(*f));
	int rc = curlso_load(&f->so, err);

	if (!rc && !f->so.multi_init)
		rc = err_set(err, ERR_UNSUPPORTED, "data on servers needs libcurl 7.68 or newer (Debian: libcurl4)");
	if (rc) {
		free(f);
		return rc;
	}
	f->o = *o;
	f->o.room_bytes = o->room_bytes ? o->room_bytes : ROOM_BYTES;
	f->o.parts = o->parts > 0 ? o->parts : 1;
	f->requests.most = o->requests > 0 && o->requests < FETCH_SLOTS ? o->requests : FETCH_SLOTS;
	TAILQ_INIT(&f->pool.queue);
	TAILQ_INIT(&f->pool.idle);
	TAILQ_INIT(&f->keeper.queue);
	pthread_mutex_init(&f->lock, NULL);
	cond_init(&f->arrived);
	cond_init(&f->keeper.wake);
	f->requests.multi = f->so.multi_init();
	if (!f->requests.multi) {
		fetch_free(f);
		return err_nomem(err, "libcurl");
	}
	if (f->o.peers && f->o.cache)
		peers_attach(f->o.peers, fetch_serve, f);
	*ret = f;
	return 0;
}

uint64_t fetch_room(const struct fetch *f)
{
	return f->o.room_bytes;
}

void fetch_set_room(struct fetch *f, uint64_t bytes)
{
	f->o.room_bytes = (size_t)bytes;
}

static void free_fetch_objects(struct fetch *f)
{
	for (int i = 0; i < f->n; i++) {
		free(f->object[i].url);
		free(f->object[i].shown);
		free(f->object[i].cached);
		free(f->object[i].sum);
	}
	free(f->object);
	for (int i = 0; i < f->buckets.n; i++)
		object_close(f->buckets.at[i].client);
	free(f->buckets.at);
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	if (f->o.peers && f->o.cache)
		peers_detach(f->o.peers);
	fetcher_end(f);
	kept_end(f);
	block_free_all(f);
	free_fetch_objects(f);
	pthread_cond_destroy(&f->arrived);
	pthread_cond_destroy(&f->keeper.wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Copies the URL without user, password and query. */
static char *strip_url_secrets(const char *url)
{
	size_t scheme = (size_t)(strstr(url, "://") + 3 - url), host = strcspn(url + scheme, "/?#");
	const char *at = memrchr(url + scheme, '@', host), *from = at ? at + 1 : url + scheme;

	return mem_printf("%.*s%.*s", (int)scheme, url, (int)strcspn(from, "?#"), from);
}

/* Returns the client of a bucket, created on first use. */
static int find_bucket_client(struct fetch *f, const char *scheme, const char *name, struct object_client **ret,
			      struct err *err)
{
	struct fetch_buckets *b = &f->buckets;
	struct fetch_bucket *more;
	int rc;

	for (int i = 0; i < b->n; i++)
		if (!strcmp(b->at[i].name, name) && !strcmp(b->at[i].scheme, scheme)) {
			*ret = b->at[i].client;
			return 0;
		}
	mem_reserve(&b->at, &b->cap, b->n + 1);
	more = &b->at[b->n];
	rc = object_open(&more->client, name, &(struct object_opts){ .scheme = scheme, .timeout_s = f->o.timeout_s },
			 err);
	if (rc)
		return rc;
	more->scheme = scheme;
	snprintf(more->name, sizeof(more->name), "%s", name);
	b->n++;
	*ret = more->client;
	return 0;
}

static int find_object_client(struct fetch *f, struct fetch_object *o, struct err *err)
{
	char bucket[OBJECT_BUCKET_BYTES];
	int rc;

	if (!object_is_address(o->url))
		return 0;
	rc = object_split(o->url, bucket, &o->key, err);
	return rc ? rc : find_bucket_client(f, object_scheme(o->url), bucket, &o->client, err);
}

int fetch_add(struct fetch *f, const char *url, struct err *err)
{
	int rc;

	mem_reserve(&f->object, &f->cap, f->n + 1);
	f->object[f->n] = (struct fetch_object){ .url = mem_strdup(url), .shown = strip_url_secrets(url) };
	rc = find_object_client(f, &f->object[f->n], err);
	if (rc) {
		free(f->object[f->n].url);
		free(f->object[f->n].shown);
		return rc;
	}
	return f->n++;
}

void fetch_set_known(struct fetch *f, int object, uint64_t bytes, const char *version)
{
	struct fetch_object *o = &f->object[object];
	const char *quote = strrchr(version, '"'), *mark = strrchr(quote ? quote : version, '#');

	f->all_bytes += bytes - o->bytes;
	o->bytes = bytes;
	snprintf(o->etag, sizeof(o->etag), "%.*s", mark ? (int)(mark - version) : (int)strlen(version), version);
	snprintf(o->generation, sizeof(o->generation), "%.23s", mark ? mark + 1 : "");
	o->known = true;
}

void fetch_set_sums(struct fetch *f, int object, const uint32_t *sum, size_t n)
{
	struct fetch_object *o = &f->object[object];
	uint32_t *copy = mem_dup(sum, n * sizeof(*copy));

	pthread_mutex_lock(&f->lock); /* a block may be on its way to another node */
	free(o->sum);
	o->sum = copy;
	o->n_sums = n;
	pthread_mutex_unlock(&f->lock);
}

uint64_t fetch_bytes(const struct fetch *f, int object)
{
	return f->object[object].bytes;
}

const char *fetch_etag(const struct fetch *f, int object)
{
	return f->object[object].etag;
}

const char *fetch_generation(const struct fetch *f, int object)
{
	return f->object[object].generation;
}

const char *fetch_shown(const struct fetch *f, int object)
{
	return f->object[object].shown;
}

/* ---- readers ---- */

/* The overlap of a range with one block. */
struct block_part {
	uint64_t begin; /* of the block */
	size_t n;
	size_t skip, take; /* range of the block's bytes */
	bool direct;	   /* bypasses the cache */
};

static struct block_part locate_block_part(const struct fetch *f, const struct fetch_range *r, size_t done)
{
	uint64_t at = r->at + done, bytes = f->object[r->object].bytes;
	struct block_part p = { .begin = at / FETCH_BLOCK * FETCH_BLOCK };
	size_t left = r->n - done;
	bool alone = r->alone && !kept_can(f, r->object);

	if (alone)
		p.begin = at;
	p.n = (size_t)(bytes - p.begin < FETCH_BLOCK ? bytes - p.begin : FETCH_BLOCK);
	if (alone && left < p.n)
		p.n = left;
	p.skip = (size_t)(at - p.begin);
	p.take = left < p.n - p.skip ? left : p.n - p.skip;
	return p;
}

static bool want_block_part(struct fetch *f, int object, const struct block_part *p, bool *ret_queued)
{
	struct fetched_block *b = block_find(f, object, p->begin, p->n);

	if (!b && kept_has(f, object, p->begin))
		return true;
	if (!b) {
		if (f->pool.due_bytes + p->n > f->o.room_bytes && f->pool.due_bytes)
			return false;
		b = block_queue(f, object, p->begin, p->n);
		*ret_queued = true;
	} else if (b->state == HELD && !b->uses && !b->readers) {
		TAILQ_REMOVE(&f->pool.idle, b, link);
	}
	if (!b->uses++)
		f->pool.due_bytes += b->n;
	return true;
}

bool fetch_want(struct fetch *f, const struct fetch_range *r)
{
	bool more = true, queued = false;

	pthread_mutex_lock(&f->lock);
	for (size_t done = 0; done < r->n && more;) {
		struct block_part p = locate_block_part(f, r, done);

		more = want_block_part(f, r->object, &p, &queued);
		done += p.take;
	}
	if (queued)
		fetcher_start(f, NULL);
	pthread_mutex_unlock(&f->lock);
	return more;
}

/* Waits until the block is held, for the caller to read. ERR_EXISTS: it is in the cache. */
static int wait_for_block(struct fetch *f, struct fetched_block *b, const struct fetch_range *r, struct err *err)
{
	double began = clock_mono_s();

	while (b->state == QUEUED || b->state == GOING) {
		double now = clock_mono_s(), since = f->requests.progress > began ? f->requests.progress : began;

		if (stop_asked(r->stop))
			return err_set(err, ERR_CANCELED, "%.250s: the read was canceled", f->object[b->object].shown);
		if (now - since > f->o.timeout_s + FETCH_STALL_MOST_S)
			return err_set(err, ERR_IO, "%.250s: nothing has arrived for %.0f s",
				       f->object[b->object].shown, now - since);
		cond_wait_until(&f->arrived, &f->lock, now + LOOK_S);
	}
	if (b->state == FAILED)
		return err_set(err, b->err.code, "%s", b->err.text);
	return b->state == CACHED ? ERR_EXISTS : 0;
}

/* Reads the part from the cache, unless the block is in memory or on its way. */
static bool read_part_cached(struct fetch *f, const struct fetch_range *r, const struct block_part *p, char *to)
{
	struct cache_block name;
	bool done;

	pthread_mutex_lock(&f->lock);
	done = !block_find(f, r->object, p->begin, p->n) && kept_has(f, r->object, p->begin);
	pthread_mutex_unlock(&f->lock);
	if (!done)
		return false;
	kept_name(f, r->object, p->begin, &name);
	done = cache_read(f->o.cache, &name, p->skip, to, p->take);
	pthread_mutex_lock(&f->lock);
	if (done)
		f->counts.cache_bytes += p->take;
	else
		kept_set_seen(f, r->object, p->begin, false);
	pthread_mutex_unlock(&f->lock);
	return done;
}

/* Reads the part from the block, and queues the block at the head if needed. */
static int read_part_fetched(struct fetch *f, const struct fetch_range *r, const struct block_part *p, char *to,
			     struct err *err)
{
	struct fetched_block *b;
	int rc = 0;

	pthread_mutex_lock(&f->lock);
	b = block_find(f, r->object, p->begin, p->n);
	if (!b)
		b = block_queue(f, r->object, p->begin, p->n);
	if (b->state == QUEUED && !b->urgent && !b->tries) {
		TAILQ_REMOVE(&f->pool.queue, b, link);
		TAILQ_INSERT_HEAD(&f->pool.queue, b, link);
	}
	if (b->state == HELD && !b->uses && !b->readers)
		TAILQ_REMOVE(&f->pool.idle, b, link);
	b->urgent = true;
	b->direct |= p->direct;
	rc = b->state == QUEUED ? fetcher_start(f, err) : 0;
	if (rc)
		goto out;
	b->readers++;
	rc = wait_for_block(f, b, r, err);
	if (!rc) {
		pthread_mutex_unlock(&f->lock);
		memcpy(to, b->bytes + p->skip, p->take);
		pthread_mutex_lock(&f->lock);
		block_count_read(b, p->take);
	}
	b->readers--;
	if (b->uses && !--b->uses)
		f->pool.due_bytes -= b->n;
	block_rest(f, b);
	if (block_may_have_room(f))
		fetcher_start(f, NULL);
out:
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int read_block_part(struct fetch *f, const struct fetch_range *r, struct block_part *p, char *to,
			   struct err *err)
{
	int rc = ERR_EXISTS;

	for (int tries = 0; rc == ERR_EXISTS; tries++) {
		p->direct = tries >= CACHE_TRIES;
		rc = !p->direct && read_part_cached(f, r, p, to) ? 0 : read_part_fetched(f, r, p, to, err);
	}
	return rc;
}

int fetch_read(struct fetch *f, const struct fetch_range *r, void *to, struct err *err)
{
	int rc = 0;

	for (size_t done = 0; !rc && done < r->n;) {
		struct block_part p = locate_block_part(f, r, done);

		rc = read_block_part(f, r, &p, (char *)to + done, err);
		done += p.take;
	}
	return rc;
}

int fetch_measure(struct fetch *f, struct err *err)
{
	struct fetched_block **probe = mem_array((size_t)f->n, sizeof(*probe));
	int rc;

	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < f->n; i++) {
		if (f->object[i].known)
			continue;
		probe[i] = block_queue(f, i, 0, 1);
		probe[i]->probe = true;
		probe[i]->readers++;
	}
	rc = fetcher_start(f, err);
	for (int i = 0; i < f->n; i++)
		if (probe[i]) {
			int failed = rc ? rc : wait_for_block(f, probe[i], &(struct fetch_range){ .object = i }, err);

			rc = rc ? rc : failed;
			probe[i]->readers--;
			block_rest(f, probe[i]);
		}
	f->measured = !rc;
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
