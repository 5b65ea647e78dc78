/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_thread.c: the fetch thread. A block in transfer belongs to it. */
#include "trainer/data/store/fetch_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"

#define FLIGHT_BLOCKS 16 /* whole blocks in flight */
#define QUEUE_LOOK 256	 /* only the first blocks of the queue may start */
#define WRONG_MOST 5
#define STALL_S 3.0 /* for the first try; doubled for each retry */
#define LOOK_S 0.05 /* interval of the checks for blocks that another process fetches */

static void free_slot_headers(struct fetch *f, struct fetch_slot *s)
{
	const bool store = s->block && s->block->peer < 0;
	struct object_client *client = store ? f->object[s->block->object].client : NULL;

	if (client) {
		s->sign.headers = s->headers;
		object_signed_done(client, &s->sign);
	} else {
		f->so.slist_free_all(s->headers);
	}
	s->headers = NULL;
}

static struct fetch_slot *find_free_slot(struct fetch *f)
{
	for (int i = 0; i < FETCH_SLOTS; i++)
		if (!f->requests.slot[i].block)
			return &f->requests.slot[i];
	return NULL;
}

/* Builds the headers of a request for the object; in a bucket also the signed address. */
static int make_request_headers(struct fetch *f, struct fetch_slot *s, const struct fetch_object *o, struct err *err)
{
	int rc = 0;

	s->sign = (struct object_signed){ .url = NULL };
	if (o->client)
		rc = object_sign(o->client, &(struct object_ask){ .method = "GET", .key = o->key }, &s->sign, err);
	if (rc)
		return rc;
	s->headers = s->sign.headers;
	if (o->etag[0] && strncmp(o->etag, "W/", 2) != 0)
		curl_add_header(&f->so, &s->headers, "If-Match: %s", o->etag);
	return 0;
}

static void fail_fetch_block(struct fetch *f, struct fetched_block *b, const char *why)
{
	kept_release(f, b);
	b->state = FAILED;
	err_set(&b->err, ERR_IO, "%.250s: %.245s", f->object[b->object].shown, why);
	pthread_cond_broadcast(&f->arrived);
}

/* Returns true if the object's index has a checksum for exactly this block. */
static bool has_block_sum(const struct fetch_object *o, const struct fetched_block *b)
{
	uint64_t left = o->bytes - b->begin;

	return !b->probe && o->n_sums == (o->bytes + FETCH_BLOCK - 1) / FETCH_BLOCK && b->begin % FETCH_BLOCK == 0 &&
	       b->n == (left < FETCH_BLOCK ? left : FETCH_BLOCK);
}

/* Seconds until the block fails unless something arrives; may be negative. */
static double time_to_deadline(const struct fetch *f, const struct fetched_block *b)
{
	const double since = f->requests.progress > b->asked ? f->requests.progress : b->asked;

	return since + f->o.timeout_s - clock_mono_s();
}

/* Makes the request for a block to the store. */
static int begin_store_transfer(struct fetch *f, struct fetch_slot *s, struct fetched_block *b, struct err *err)
{
	struct fetch_object *o = &f->object[b->object];
	double stall = fmin(ldexp(STALL_S, b->tries < 10 ? b->tries : 10), FETCH_STALL_MOST_S);
	double left = time_to_deadline(f, b);
	int rc = make_request_headers(f, s, o, err);

	if (rc)
		return rc;
	f->counts.requests++;
	f->counts.retries += b->tries > 0;
	transfer_begin(&s->transfer, &f->so,
		       &(struct transfer_want){ .url = s->sign.url ? s->sign.url : o->url,
						.etag = o->etag,
						.begin = b->begin,
						.n = b->n,
						.total = o->bytes,
						.stall_s = stall < left ? stall : left,
						.left_s = left,
						.headers = s->headers,
						.follows = !o->client,
						.ca = s->sign.ca,
						.to = b->bytes,
						.sums = has_block_sum(o, b) });
	return 0;
}

/* Starts the transfer of a queued block. Returns false without memory for it. */
static bool begin_block_transfer(struct fetch *f, struct fetch_slot *s, struct fetched_block *b)
{
	struct err err = ERR_INIT;

	if (!b->bytes && !block_take_memory(f, b))
		return false;
	if (!b->tries)
		b->asked = clock_mono_s(); /* it may have waited for memory until now */
	if (!s->transfer.easy)
		s->transfer.easy = f->so.easy_init();
	if (!s->transfer.easy)
		return false;
	TAILQ_REMOVE(&f->pool.queue, b, link);
	b->peer = fetch_peer_pick(f, s, b);
	if (b->peer >= 0 && !fetch_peer_begin(f, s, b))
		b->peer = -1;
	if (b->peer < 0 && begin_store_transfer(f, s, b, &err)) {
		fail_fetch_block(f, b, err.text);
		block_rest(f, b);
		return true;
	}
	b->state = GOING;
	s->block = b;
	f->requests.n++;
	f->requests.bytes += b->n;
	s->transfer.user = s;
	f->so.multi_add_handle(f->requests.multi, s->transfer.easy);
	return true;
}

/* Starts transfers as far as limits allow. Returns the time of the next retry. */
static double begin_queued_transfers(struct fetch *f)
{
	double now = clock_mono_s(), next = now + 1;
	struct fetched_block *b = TAILQ_FIRST(&f->pool.queue), *following;

	for (int i = 0; b && i < QUEUE_LOOK; i++, b = following) {
		struct fetch_slot *s = find_free_slot(f);

		following = TAILQ_NEXT(b, link);
		if (!s || f->requests.n >= f->requests.most ||
		    (f->requests.n && f->requests.bytes + b->n > FLIGHT_BLOCKS * FETCH_BLOCK))
			break;
		if (b->not_before > now) {
			next = b->not_before < next ? b->not_before : next;
			continue;
		}
		if (kept_elsewhere(f, b)) /* b may be freed */
			next = now + LOOK_S;
		else if (!begin_block_transfer(f, s, b))
			break;
	}
	return next;
}

static void retry_fetch_block(struct fetch *f, struct fetched_block *b, const struct transfer *t, const char *why)
{
	double left = time_to_deadline(f, b);
	double wait = curl_backoff_s(++b->tries, t->curl.answer.retry_after_s,
				     ++f->requests.draws + (uint64_t)(uintptr_t)f);
	char text[360];

	if (left <= 0) {
		snprintf(text, sizeof(text), "nothing has arrived for %.0f s: %s", f->o.timeout_s - left, why);
		fail_fetch_block(f, b, text);
		return;
	}
	if (wait > left) /* the last try */
		wait = left;
	b->state = QUEUED;
	b->not_before = clock_mono_s() + wait;
	TAILQ_INSERT_HEAD(&f->pool.queue, b, link);
}

/* Stores what the first answer states of its object, and holds the block for its readers and for the cache. */
static void store_arrived_block(struct fetch *f, struct fetched_block *b, const struct curl_answer *a)
{
	const int most = f->o.requests > 0 && f->o.requests < FETCH_SLOTS ? f->o.requests : FETCH_SLOTS;
	struct fetch_object *o = &f->object[b->object];

	f->requests.progress = clock_mono_s();
	f->requests.most += f->requests.most < most;
	if (!o->etag[0])
		snprintf(o->etag, sizeof(o->etag), "%s", a->etag);
	if (!o->generation[0])
		memcpy(o->generation, a->generation, sizeof(o->generation));
	if (b->probe) {
		f->all_bytes += a->total - o->bytes;
		o->bytes = a->total;
		o->known = true;
		memcpy(o->modified, a->modified, sizeof(o->modified));
	}
	b->state = HELD;
	if (b->claimed) {
		kept_count_again(f, b);
		kept_write(f, b);
	}
}

/* Returns true if another signature may succeed: expired keys or token, or a bucket in another region. Otherwise
 * appends to the cause what the user can do. */
static bool may_sign_again(const struct fetch_object *o, struct fetch_slot *s, char why[300])
{
	const struct transfer *t = &s->transfer;
	char code[OBJECT_CODE_BYTES];
	const struct curl_answer *a = &t->curl.answer;
	const struct object_refusal r = { a->status, code, a->region, s->sign.identity, s->block->renewed };

	if (!o->client)
		return false;
	object_code(t->text, t->text_n, code);
	if (object_learn(o->client, &r)) {
		s->block->renewed++;
		return true;
	}
	object_advise(o->client, &r, why, 300);
	return false;
}

/* Returns true if a complete block differs from the index's checksum: it was changed in transit or in the store. */
static bool is_block_altered(const struct fetch_object *o, const struct fetched_block *b, const struct transfer *t)
{
	return t->want.sums && t->sum != o->sum[b->begin / FETCH_BLOCK];
}

static void release_fetch_slot(struct fetch *f, struct fetch_slot *s)
{
	f->so.multi_remove_handle(f->requests.multi, s->transfer.easy);
	free_slot_headers(f, s);
	f->requests.n--;
	f->requests.bytes -= s->block->n;
	s->block = NULL;
}

/* Ends a transfer from another node: stores the block, or queues it again. */
static void finish_peer_transfer(struct fetch *f, struct fetch_slot *s, int code)
{
	struct fetched_block *b = s->block;
	const struct fetch_object *o = &f->object[b->object];
	bool done = fetch_peer_end(f, s, code);

	if (done && has_block_sum(o, b) && s->transfer.sum != o->sum[b->begin / FETCH_BLOCK]) {
		b->store_only = true; /* the other node's cache has other bytes than the index promises */
		done = false;
	}
	release_fetch_slot(f, s);
	if (done) {
		f->requests.progress = clock_mono_s();
		b->state = HELD;
		kept_write(f, b);
	} else {
		b->state = QUEUED;
		TAILQ_INSERT_HEAD(&f->pool.queue, b, link);
	}
	pthread_cond_broadcast(&f->arrived);
	block_rest(f, b);
}

/* Ends a transfer from the store: stores the block, retries it or fails it. */
static void finish_store_transfer(struct fetch *f, struct fetch_slot *s, int code)
{
	struct fetched_block *b = s->block;
	struct transfer *t = &s->transfer;
	const struct curl_answer *a = &t->curl.answer;
	char why[300] = "";
	enum transfer_end end = transfer_end(t, &f->so, code, why);

	if (end == TRANSFER_REFUSED && may_sign_again(&f->object[b->object], s, why))
		end = TRANSFER_AGAIN;
	if (end == TRANSFER_DONE && is_block_altered(&f->object[b->object], b, t)) {
		snprintf(why, sizeof(why), "bytes %llu-%llu have another CRC-32C than the index",
			 (unsigned long long)b->begin, (unsigned long long)(b->begin + b->n - 1));
		end = TRANSFER_WRONG;
	}
	release_fetch_slot(f, s);
	f->counts.bytes += t->got;
	if (end == TRANSFER_BUSY)
		f->requests.most = f->requests.most > 1 ? f->requests.most / 2 : 1;
	if (b->probe && (a->status == 416 || (a->status == 200 && !a->total && !t->got))) {
		f->object[b->object].known = true; /* empty */
		b->state = HELD;
	} else if (end == TRANSFER_DONE) {
		store_arrived_block(f, b, a);
	} else if (end == TRANSFER_REFUSED || (end == TRANSFER_WRONG && ++b->wrong >= WRONG_MOST)) {
		fail_fetch_block(f, b, why);
	} else {
		retry_fetch_block(f, b, t, why);
	}
	pthread_cond_broadcast(&f->arrived);
	block_rest(f, b);
}

/* Handles finished transfers. Returns true if new ones may start. */
static bool finish_arrived_transfers(struct fetch *f)
{
	uint64_t got = 0;
	const struct curlso_message *m;
	bool any = false;
	int left;

	for (int i = 0; i < FETCH_SLOTS; i++)
		got += f->requests.slot[i].block ? f->requests.slot[i].transfer.got : 0;
	if (got != f->requests.got)
		f->requests.progress = clock_mono_s();
	while ((m = f->so.multi_info_read(f->requests.multi, &left)))
		for (int i = 0; i < FETCH_SLOTS; i++)
			if (f->requests.slot[i].block && f->requests.slot[i].transfer.easy == m->easy) {
				got -= f->requests.slot[i].transfer.got;
				if (f->requests.slot[i].block->peer >= 0)
					finish_peer_transfer(f, &f->requests.slot[i], m->result.code);
				else
					finish_store_transfer(f, &f->requests.slot[i], m->result.code);
				any = true;
				break;
			}
	f->requests.got = got;
	return any;
}

/* Thread: starts transfers, waits for libcurl, handles results, until f->stop. */
static void *run_fetch_thread(void *arg)
{
	struct fetch *f = arg;

	pthread_setname_np(pthread_self(), "dptrain-fetch");
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		double next = begin_queued_transfers(f), wait;
		int running;

		pthread_mutex_unlock(&f->lock);
		f->so.multi_perform(f->requests.multi, &running);
		pthread_mutex_lock(&f->lock);
		if (finish_arrived_transfers(f))
			next = 0;
		wait = next - clock_mono_s();
		pthread_mutex_unlock(&f->lock);
		if (wait > 0)
			f->so.multi_poll(f->requests.multi, NULL, 0, (int)(wait * 1000) + 1, NULL);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int fetcher_start(struct fetch *f, struct err *err)
{
	int rc = 0;

	if (!f->requests.started) {
		rc = thread_start(&f->requests.thread, run_fetch_thread, f);
		f->requests.started = !rc;
	}
	if (!rc && f->requests.n < f->requests.most && f->requests.bytes < FLIGHT_BLOCKS * FETCH_BLOCK)
		f->so.multi_wakeup(f->requests.multi);
	return rc ? err_set_errno(err, rc, "cannot start the thread that fetches") : 0;
}

void fetcher_end(struct fetch *f)
{
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_mutex_unlock(&f->lock);
	if (f->requests.started) {
		f->so.multi_wakeup(f->requests.multi);
		pthread_join(f->requests.thread, NULL);
	}
	for (int i = 0; i < FETCH_SLOTS; i++) {
		if (f->requests.slot[i].block)
			f->so.multi_remove_handle(f->requests.multi, f->requests.slot[i].transfer.easy);
		if (f->requests.slot[i].transfer.easy)
			f->so.easy_cleanup(f->requests.slot[i].transfer.easy);
		free_slot_headers(f, &f->requests.slot[i]);
	}
	if (f->requests.multi)
		f->so.multi_cleanup(f->requests.multi);
}
