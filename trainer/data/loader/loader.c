/* loader.c: batch slots, worker threads and the order of delivery.
 *
 * One slot at a time, `current`, is handed out in chunks of samples. Workers claim chunks under the lock and fill
 * them without it. `queue` has the slots in batch order; the caller gets the first one when it is full. A slot is
 * free, queued, or held by the caller. */
#include "trainer/data/loader/loader.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "trainer/data/loader/slots.h"

#define WORKERS_MAX 1024
#define AHEAD_SAMPLES 4096
#define AHEAD_AT_ONCE 256
#define NEAR_SAMPLES 128 /* local sets: most samples that are announced and not claimed */
#define NEAR_AT_ONCE 16
#define LOOK_S 0.1 /* interval of the checks whether the caller must end */

struct loader_slot {
	struct loader_batch batch;
	char *inputs;
	int32_t *targets;
	int64_t *index;	       /* [position in the batch]: sample */
	int64_t first;	       /* position of the first sample in the epoch */
	int64_t claimed, done; /* samples claimed by workers, and samples filled */
	int64_t failed_at;     /* index of the first unreadable sample; -1: none */
	struct err err;	       /* … and its error */
	double ready_at;       /* earliest time of delivery (opts.slow_s) */
	bool held;
};

/* Position up to which samples were announced to the set. */
struct announce_position {
	struct order order;
	int64_t epoch, step, micro, place;
	int64_t n; /* local sets: announced minus claimed samples; below 0: claims are ahead */
};

/* Samples of a local set to announce. */
struct local_announcements {
	struct dataset_read read[NEAR_AT_ONCE];
	int n;
};

struct loader {
	struct loader_opts o;
	struct order order;
	struct fill fill;
	struct slots size;

	pthread_mutex_t lock;
	pthread_cond_t work, ready;
	pthread_t *threads;
	int n_threads;	    /* threads started; only the caller reads it */
	int n_begun;	    /* workers that have taken their scratch */
	int active;	    /* the first `active` workers work ahead */
	bool waiting;	    /* the caller waits in loader_next */
	struct stop stop;   /* `now` is set under the lock */
	struct stop caller; /* … or the caller must end; for its own reads */
	bool blank;	    /* the caller must end: no more work is done */

	struct loader_slot *slots;
	void *memory;		 /* of all slots, if the loader allocated it */
	struct fill_hand *hands; /* one per worker, and the caller's at the end */
	int n_hands;
	int *queue, *free_slots;
	int queue_first, queue_n, n_free;
	int current;		     /* slot with unclaimed samples; -1: none */
	int64_t epoch, step, micro;  /* next batch to assign */
	double spent_s, spent_cpu_s; /* filling samples, since the last loader_spent */
	struct announce_position ahead;
};

/* Advances to the next micro-batch, step or epoch. */
static void advance_position(const struct loader *l, int64_t *epoch, int64_t *step, int64_t *micro)
{
	if (++*micro < sampler_micros(&l->o.sampler, *step))
		return;
	*micro = 0;
	if (++*step < sampler_steps(&l->o.sampler))
		return;
	*step = 0;
	++*epoch;
}

static bool is_past_last_epoch(const struct loader *l, int64_t epoch)
{
	return l->o.epochs && epoch >= l->o.first_epoch + l->o.epochs;
}

static bool is_loader_at_end(const struct loader *l)
{
	return is_past_last_epoch(l, l->epoch);
}

/* Returns true if the step is past opts.steps_end. */
static bool is_past_steps_end(const struct loader *l, int64_t epoch, int64_t step)
{
	return l->o.steps_end && (__int128)epoch * sampler_steps(&l->o.sampler) + step >= l->o.steps_end;
}

/* Moves the announcements forward to the assigned position: samples already assigned are not announced. */
static void catch_up_announcements(struct loader *l)
{
	struct announce_position *a = &l->ahead;
	int64_t lead = a->epoch != l->epoch ? a->epoch - l->epoch
		       : a->step != l->step ? a->step - l->step
					    : a->micro - l->micro;

	if (lead >= 0)
		return;
	a->epoch = l->epoch;
	a->step = l->step;
	a->micro = l->micro;
	a->place = 0;
}

/* Returns true if a window of steps is announced: a run that is killed has then fetched at most one window in vain. */
static bool is_far_ahead(const struct loader *l)
{
	const struct sampler *s = &l->o.sampler;
	int64_t samples = s->order == SAMPLER_WINDOW ? s->window : AHEAD_SAMPLES;
	int64_t ahead = l->ahead.step - l->step;

	if (l->ahead.epoch > l->epoch)
		ahead += (l->ahead.epoch - l->epoch) * sampler_steps(s);
	return ahead > samples / s->global_batch + 2;
}

/* Returns the next sample to announce. False: none at present. Under the lock. */
static bool next_to_announce(struct loader *l, struct dataset_read *ret)
{
	const struct sampler *s = &l->o.sampler;
	struct announce_position *a = &l->ahead;

	for (; !is_past_last_epoch(l, a->epoch) && !is_past_steps_end(l, a->epoch, a->step) && !is_far_ahead(l);
	     a->place = 0, advance_position(l, &a->epoch, &a->step, &a->micro)) {
		struct range r = sampler_micro(s, a->step, l->o.rank, a->micro);

		if (a->place >= r.end - r.begin)
			continue;
		order_make(&a->order, s, a->epoch);
		*ret = (struct dataset_read){ .split = l->o.split,
					      .index = order_at(&a->order, s, r.begin + a->place),
					      .alone = sampler_is_alone(s, l->o.rank, r.begin + a->place),
					      .epoch = a->epoch };
		return true;
	}
	return false;
}

/* Announces samples of a remote set in reading order until the set has enough. Under the lock. */
static void announce_remote_samples(struct loader *l)
{
	const struct dataset *d = l->o.dataset;
	struct dataset_read read;

	if (!d->ops->ahead || !d->remote || l->stop.now)
		return;
	catch_up_announcements(l);
	for (int left = AHEAD_AT_ONCE; left && next_to_announce(l, &read) && d->ops->ahead(d, &read); left--)
		l->ahead.place++;
}

/* Accounts n claimed samples and chooses the samples of a local set to announce. They are announced without the
 * lock, because that may wait for the disk. Under the lock. */
static void choose_local_announcements(struct loader *l, int64_t n, struct local_announcements *ret)
{
	const struct dataset *d = l->o.dataset;

	ret->n = 0;
	if (!d->ops->ahead || d->remote || l->stop.now)
		return;
	l->ahead.n -= n;
	if (l->ahead.n < 0) {
		catch_up_announcements(l);
		l->ahead.n = 0;
	}
	if (l->ahead.n > NEAR_SAMPLES - NEAR_AT_ONCE)
		return;
	for (; ret->n < NEAR_AT_ONCE && next_to_announce(l, &ret->read[ret->n]); ret->n++)
		l->ahead.place++;
	l->ahead.n += ret->n;
}

static void announce_local_samples(const struct loader *l, const struct local_announcements *near)
{
	for (int i = 0; i < near->n; i++)
		l->o.dataset->ops->ahead(l->o.dataset, &near->read[i]);
}

/* The weight over which a step's mean is taken. */
static int64_t sum_global_weight(const struct loader *l, struct range global)
{
	const struct dataset *d = l->o.dataset;
	int64_t sum = 0;

	if (!d->ops->weight)
		return (global.end - global.begin) * (int64_t)fill_targets(d);
	for (int64_t i = global.begin; i < global.end; i++)
		sum += dataset_weight(d, l->o.split, order_at(&l->order, &l->o.sampler, i));
	return sum;
}

/* Queues a free slot for the next batch and lists its samples. Under the lock. */
static void assign_free_slot(struct loader *l)
{
	const struct sampler *s = &l->o.sampler;
	struct range global = sampler_global(s, l->step), r = sampler_micro(s, l->step, l->o.rank, l->micro);
	int n = l->free_slots[--l->n_free];
	struct loader_slot *slot = &l->slots[n];

	announce_remote_samples(l);
	order_make(&l->order, s, l->epoch);
	slot->batch = (struct loader_batch){ .epoch = l->epoch,
					     .step = l->step,
					     .micro = l->micro,
					     .n_micro = sampler_micros(s, l->step),
					     .count = r.end - r.begin,
					     .global_count = global.end - global.begin,
					     .global_weight = sum_global_weight(l, global),
					     .inputs = slot->inputs,
					     .targets = slot->targets,
					     .slot = n };
	for (int64_t i = 0; i < slot->batch.count; i++)
		slot->index[i] = order_at(&l->order, s, r.begin + i);
	slot->first = r.begin;
	slot->claimed = slot->done = 0;
	slot->failed_at = -1;
	slot->ready_at = l->o.slow_s > 0 ? clock_mono_s() + l->o.slow_s : 0;
	l->queue[(l->queue_first + l->queue_n++) % l->size.n] = n;
	l->current = slot->batch.count ? n : -1;
	advance_position(l, &l->epoch, &l->step, &l->micro);
}

/* Returns another sample for a position of the slot's epoch. l->order may already be the next epoch's. */
static int64_t find_other_sample(struct loader *l, const struct loader_slot *slot, int64_t position, int64_t skip)
{
	const struct sampler *s = &l->o.sampler;
	struct order other;
	int64_t sample = -1;

	pthread_mutex_lock(&l->lock);
	if (l->order.epoch == slot->batch.epoch)
		sample = order_other(&l->order, s, position, skip);
	pthread_mutex_unlock(&l->lock);
	if (sample < 0 && !order_init(&other, s, NULL)) {
		order_make(&other, s, slot->batch.epoch);
		sample = order_other(&other, s, position, skip);
		order_done(&other);
	}
	return sample;
}

/* Replaces an unreadable training sample by the next readable one in the epoch's order. */
static int replace_unreadable_sample(struct loader *l, struct loader_slot *slot, struct fill_place *p,
				     struct fill_hand *hand, struct err *err)
{
	int64_t n = l->o.sampler.n_samples, others;
	int64_t position = slot->first + (p->target - slot->targets) / (int64_t)fill_targets(l->o.dataset);
	int rc = ERR_CORRUPT;

	pthread_mutex_lock(&l->lock);
	others = order_others(&l->order, &l->o.sampler, position);
	pthread_mutex_unlock(&l->lock);
	for (int64_t k = 1; rc == ERR_CORRUPT && k <= others && !l->stop.now; k++) {
		p->index = find_other_sample(l, slot, position, k);
		if (p->index < 0)
			return err_set(err, ERR_NOMEM, "out of memory: the order of %lld samples", (long long)n);
		rc = fill_sample(&l->fill, hand, p, err);
	}
	if (rc != ERR_CORRUPT)
		return rc;
	return l->stop.now ? err_set(err, ERR_CANCELED, "%.300s: the read was canceled", l->o.dataset->path)
			   : err_set(err, ERR_USAGE, "%.300s: no image can be read", l->o.dataset->path);
}

static int fill_slot_sample(struct loader *l, struct loader_slot *slot, int64_t i, struct fill_hand *hand,
			    struct err *err)
{
	struct fill_place p = { .index = slot->index[i],
				.epoch = slot->batch.epoch,
				.alone = sampler_is_alone(&l->o.sampler, l->o.rank, slot->first + i),
				.input = slot->inputs + (size_t)i * l->size.sample_bytes,
				.target = slot->targets + (size_t)i * fill_targets(l->o.dataset) };
	int rc = fill_sample(&l->fill, hand, &p, err);

	if (rc != ERR_CORRUPT)
		return rc;
	if (l->o.split == SPLIT_TRAIN)
		return replace_unreadable_sample(l, slot, &p, hand, err);
	fill_nothing(&l->fill, &p);
	return 0;
}

/* Delays a full slot (opts.slow_s), unless the loader stops. Under the lock. */
static void wait_for_slow_slot(struct loader *l, double until)
{
	while (until > 0 && !l->stop.now && cond_wait_until(&l->work, &l->lock, until))
		;
}

/* Claims a chunk of the current slot and fills it. Called and returns with the lock held. */
static void fill_slot_chunk(struct loader *l, struct fill_hand *hand)
{
	struct loader_slot *slot = &l->slots[l->current];
	int64_t reset_loader_position = slot->claimed, end = reset_loader_position + l->size.chunk, failed = -1;
	double start_s = clock_mono_s(), start_cpu_s = clock_thread_s(), end_s;
	struct err err = ERR_INIT;
	struct local_announcements near;

	if (end > slot->batch.count)
		end = slot->batch.count;
	slot->claimed = end;
	if (end == slot->batch.count)
		l->current = -1;
	choose_local_announcements(l, end - reset_loader_position, &near);
	pthread_mutex_unlock(&l->lock);
	announce_local_samples(l, &near);
	for (int64_t i = reset_loader_position; i < end && failed < 0; i++)
		if (fill_slot_sample(l, slot, i, hand, &err))
			failed = i;
	pthread_mutex_lock(&l->lock);
	if (failed >= 0 && (slot->failed_at < 0 || failed < slot->failed_at)) {
		slot->failed_at = failed;
		slot->err = err;
	}
	if (slot->done + end - reset_loader_position == slot->batch.count)
		wait_for_slow_slot(l, slot->ready_at);
	end_s = clock_mono_s();
	l->spent_s += end_s - start_s;
	if (l->o.worked && hand < &l->hands[l->n_threads]) /* the caller's own work is part of its wait */
		l->o.worked(l->o.worked_user, (int)(hand - l->hands), start_s, end_s);
	l->spent_cpu_s += clock_thread_s() - start_cpu_s;
	slot->done += end - reset_loader_position;
	if (slot->done == slot->batch.count)
		pthread_cond_signal(&l->ready);
	announce_remote_samples(l);
}

/* Fills a chunk, of a newly assigned slot if needed. Returns false if there is no work. Under the lock. */
static bool fill_next_chunk(struct loader *l, struct fill_hand *hand)
{
	if (l->current < 0 && (is_loader_at_end(l) || !l->n_free))
		return false;
	if (l->current < 0) {
		assign_free_slot(l);
		if (l->current < 0) {
			pthread_cond_signal(&l->ready); /* an empty part is full at once */
			return true;
		}
		pthread_cond_broadcast(&l->work);
	}
	fill_slot_chunk(l, hand);
	return true;
}

/* Returns true if the batch that loader_next returns next has unclaimed samples. */
static bool is_first_open(const struct loader *l)
{
	return l->queue_n ? l->current == l->queue[l->queue_first] : !is_loader_at_end(l) && l->n_free;
}

static bool may_work_ahead(const struct loader *l, int number)
{
	return number < l->active && (l->current >= 0 || !is_past_steps_end(l, l->epoch, l->step));
}

static bool may_help_caller(const struct loader *l, int number)
{
	return number < l->o.helpers && l->waiting && is_first_open(l);
}

static void *run_load_worker(void *arg)
{
	struct loader *l = arg;
	struct fill_hand *hand;
	int number;

	pthread_setname_np(pthread_self(), "dptrain-load");
	pthread_mutex_lock(&l->lock);
	number = l->n_begun++;
	hand = &l->hands[number];
	while (!l->stop.now)
		if (!(may_work_ahead(l, number) || may_help_caller(l, number)) || !fill_next_chunk(l, hand))
			pthread_cond_wait(&l->work, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static bool is_first_full(const struct loader *l)
{
	const struct loader_slot *s = l->queue_n ? &l->slots[l->queue[l->queue_first]] : NULL;

	return s && s->done == s->batch.count;
}

/* Returns true if a read of the first batch was canceled. */
static bool is_first_canceled(const struct loader *l)
{
	const struct loader_slot *s = l->queue_n ? &l->slots[l->queue[l->queue_first]] : NULL;

	return s && s->failed_at >= 0 && s->err.code == ERR_CANCELED;
}

static int count_full_slots(const struct loader *l)
{
	int n = 0;

	for (int i = 0; i < l->queue_n; i++) {
		const struct loader_slot *s = &l->slots[l->queue[(l->queue_first + i) % l->size.n]];

		n += s->done == s->batch.count;
	}
	return n;
}

static int deliver_first_slot(struct loader *l, struct loader_batch *ret, double began, struct err *err)
{
	struct loader_slot *s = &l->slots[l->queue[l->queue_first]];

	if (s->failed_at >= 0) {
		if (err)
			*err = s->err;
		return s->err.code;
	}
	l->queue_first = (l->queue_first + 1) % l->size.n;
	l->queue_n--;
	s->held = true;
	*ret = s->batch;
	ret->wait_s = clock_mono_s() - began;
	return 1;
}

static void join_load_workers(struct loader *l)
{
	for (int i = 0; i < l->n_threads; i++)
		pthread_join(l->threads[i], NULL);
	l->n_threads = 0;
}

/* Stops and joins the workers, because the caller must end. Called and returns with the lock held. */
static void stop_load_workers(struct loader *l)
{
	l->stop.now = true;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	join_load_workers(l);
	pthread_mutex_lock(&l->lock);
	l->blank = true;
}

/* Blanks the first batch. Under the lock, after stop_load_workers. */
static void blank_first_slot(struct loader *l)
{
	struct loader_slot *s;

	if (!l->queue_n)
		assign_free_slot(l);
	s = &l->slots[l->queue[l->queue_first]];
	memset(s->inputs, 0, l->size.bytes);
	s->claimed = s->done = s->batch.count;
	s->failed_at = -1;
	s->batch.blank = true;
	l->current = -1;
}

static bool caller_must_end(void *loader)
{
	const struct loader *l = loader;

	return l->stop.now || (l->o.ends && l->o.ends(l->o.ends_user));
}

/* Does the next thing that completes the first batch. Called and returns with the lock held. */
static void advance_first_slot(struct loader *l)
{
	if (!l->blank && (is_first_canceled(l) || caller_must_end(l)))
		stop_load_workers(l);
	if (l->blank)
		blank_first_slot(l);
	else if (is_first_open(l))
		fill_next_chunk(l, &l->hands[l->n_hands - 1]);
	else
		cond_wait_until(&l->ready, &l->lock, l->o.ends ? clock_mono_s() + LOOK_S : INFINITY);
}

int loader_next(struct loader *l, struct loader_batch *ret, struct err *err)
{
	double began = clock_mono_s();
	int rc = 0, ready;

	pthread_mutex_lock(&l->lock);
	ready = count_full_slots(l);
	l->waiting = !is_first_full(l);
	if (l->waiting && l->active < l->n_threads)
		pthread_cond_broadcast(&l->work);
	while (!is_first_full(l) || is_first_canceled(l)) {
		if (!l->queue_n && is_loader_at_end(l))
			goto out;
		if (!l->queue_n && !l->n_free) {
			rc = err_set(err, ERR_BUSY, "all %d batches of the loader are held: release one first",
				     l->size.n);
			goto out;
		}
		advance_first_slot(l);
	}
	rc = deliver_first_slot(l, ret, began, err);
	ret->ready = ready;
out:
	l->waiting = false;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void loader_release(struct loader *l, const struct loader_batch *b)
{
	pthread_mutex_lock(&l->lock);
	if (l->slots[b->slot].held) {
		l->slots[b->slot].held = false;
		l->free_slots[l->n_free++] = b->slot;
		pthread_cond_broadcast(&l->work);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Under the lock, or before the workers start. */
static void reset_loader_position(struct loader *l)
{
	l->epoch = l->o.first_epoch;
	l->step = l->o.first_step;
	l->micro = 0;
	l->ahead.epoch = l->epoch;
	l->ahead.step = l->step;
	l->ahead.micro = l->ahead.place = l->ahead.n = 0;
}

void loader_rewind(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	reset_loader_position(l);
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
}

void loader_spent(struct loader *l, double *ret_s, double *ret_cpu_s)
{
	pthread_mutex_lock(&l->lock);
	*ret_s = l->spent_s;
	*ret_cpu_s = l->spent_cpu_s;
	l->spent_s = l->spent_cpu_s = 0;
	pthread_mutex_unlock(&l->lock);
}

void loader_set_active(struct loader *l, int n)
{
	pthread_mutex_lock(&l->lock);
	l->active = n < l->n_threads ? n : l->n_threads;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
}

static int check_loader_opts(const struct loader_opts *o, struct err *err)
{
	const struct dataset *d = o->dataset;

	if ((!o->sampler.part && o->sampler.n_samples != d->n_samples[o->split]) || o->sampler.n_samples < 1)
		return err_set(err, ERR_USAGE, "%.200s: has %lld samples in the %s split: expected %lld", d->path,
			       (long long)d->n_samples[o->split], split_name(o->split),
			       (long long)o->sampler.n_samples);
	if (d->kind == SAMPLE_IMAGE && o->dtype != DTYPE_F32 && o->dtype != DTYPE_F64)
		return err_set(err, ERR_UNSUPPORTED, "loader: %s: expected f32 or f64", dtype_name(o->dtype));
	if (o->augment && (d->dtype != DTYPE_U8 || d->kind != SAMPLE_IMAGE))
		return err_set(err, ERR_USAGE, "%.200s: is used unchanged: omit augmentation", d->path);
	if (o->workers < 0 || o->workers > WORKERS_MAX || o->slots > 1 << 16 || o->sampler.global_batch < 1 ||
	    o->rank < 0 || o->rank >= o->sampler.world)
		return err_set(err, ERR_USAGE,
			       "loader: %d workers, %d slots, global batch %lld, rank %d of %d: out of range",
			       o->workers, o->slots, (long long)o->sampler.global_batch, o->rank, o->sampler.world);
	if (!loader_bytes(o))
		return err_set(err, ERR_USAGE, "batches of %lld samples exceed the address space: use a smaller batch",
			       (long long)o->sampler.global_batch);
	return 0;
}

/* Allocates the slots, the worker scratch and the queue. */
static int allocate_slots(struct loader *l, struct err *err)
{
	size_t n = (size_t)l->size.n, each = l->size.bytes;
	char *at = l->o.memory;

	if (!at && posix_memalign(&l->memory, SLOTS_ALIGN_BYTES, n * each))
		l->memory = NULL;
	if (!at)
		at = l->memory;
	l->slots = calloc(n, sizeof(*l->slots));
	l->queue = calloc(n, sizeof(*l->queue));
	l->free_slots = calloc(n, sizeof(*l->free_slots));
	l->threads = calloc((size_t)l->o.workers + 1, sizeof(*l->threads));
	l->hands = calloc((size_t)l->o.workers + 1, sizeof(*l->hands));
	if (!at || !l->slots || !l->queue || !l->free_slots || !l->threads || !l->hands)
		return err_set(err, ERR_NOMEM, "out of memory: %zu batches of %zu bytes: use a smaller batch", n, each);
	for (int rc; l->n_hands <= l->o.workers; l->n_hands++) {
		rc = fill_hand_init(&l->fill, &l->hands[l->n_hands], err);
		if (rc)
			return rc;
		l->hands[l->n_hands].stop = l->n_hands < l->o.workers ? &l->stop : &l->caller;
	}
	for (size_t i = 0; i < n; i++, at += each) {
		l->slots[i].inputs = at;
		l->slots[i].targets = (int32_t *)(void *)(at + l->size.input_bytes);
		l->slots[i].index = calloc((size_t)l->size.capacity, sizeof(int64_t));
		l->free_slots[l->n_free++] = (int)(n - 1 - i);
		if (!l->slots[i].index)
			return err_set(err, ERR_NOMEM, "out of memory: a batch of %lld samples",
				       (long long)l->size.capacity);
	}
	return 0;
}

static int start_load_workers(struct loader *l, struct err *err)
{
	const int wanted = l->o.workers;
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (!rc && l->n_threads < wanted) {
		rc = pthread_create(&l->threads[l->n_threads], NULL, run_load_worker, l);
		l->n_threads += !rc;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc || l->o.fewer)
		return 0;
	return err_set_errno(
		err, rc, "loader: cannot start thread %d of %d: use fewer --workers, or larger limits (ulimit -u, -v)",
		l->n_threads + 1, wanted);
}

int loader_open(struct loader **ret, const struct loader_opts *o, struct err *err)
{
	struct loader *l;
	int rc = check_loader_opts(o, err);

	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(err, ERR_NOMEM, "out of memory");
	l->o = *o;
	l->current = -1;
	reset_loader_position(l);
	if (o->resting)
		l->epoch += o->epochs;
	slots_measure(&l->size, o); /* cannot fail after check_loader_opts */
	l->fill = slots_fill(o);
	fill_init(&l->fill);
	l->active = o->workers;
	pthread_mutex_init(&l->lock, NULL);
	cond_init(&l->work);
	cond_init(&l->ready);
	l->caller = (struct stop){ .asked = caller_must_end, .user = l };
	rc = order_init(&l->order, &o->sampler, err);
	if (!rc && o->dataset->ops->ahead)
		rc = order_init(&l->ahead.order, &o->sampler, err);
	if (!rc)
		rc = allocate_slots(l, err);
	if (!rc)
		rc = start_load_workers(l, err);
	if (rc) {
		loader_close(l);
		return rc;
	}
	*ret = l;
	return 0;
}

void loader_close(struct loader *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop.now = true;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	join_load_workers(l);
	for (int i = 0; i < l->n_hands; i++)
		fill_hand_done(&l->fill, &l->hands[i]);
	for (int i = 0; l->slots && i < l->size.n; i++)
		free(l->slots[i].index);
	order_done(&l->order);
	order_done(&l->ahead.order);
	pthread_cond_destroy(&l->work);
	pthread_cond_destroy(&l->ready);
	pthread_mutex_destroy(&l->lock);
	free(l->slots);
	free(l->queue);
	free(l->free_slots);
	free(l->threads);
	free(l->hands);
	free(l->memory);
	free(l);
}
