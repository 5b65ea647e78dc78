/* SPDX-License-Identifier: Apache-2.0 */
/* loader.c: the worker threads and the delivery of batches, in order. The caller works on the batch it waits for. */
#include "trainer/data/loader/loader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "trainer/data/loader/slots.h"

#define WORKERS_MAX 1024
#define LOOK_S 0.1 /* interval of the checks whether the caller must end */

struct load_workers {
	pthread_t *thread;
	int n;			/* threads started; only the caller reads it */
	int n_begun;		/* workers that have taken their scratch */
	int active;		/* the first `active` workers work ahead */
	struct fill_hand *hand; /* scratch: one per worker, and the caller's at the end */
	int n_hands;
};

struct loader {
	struct loader_opts o;
	struct slots slots; /* and the lock of everything here */
	struct load_workers workers;
	bool waiting;	    /* the caller waits in loader_next */
	struct stop stop;   /* `now` is set under the lock */
	struct stop caller; /* … or the caller must end; for its own reads */
	bool blank;	    /* the caller must end: no more work is done */
};

static bool may_work_ahead(const struct loader *l, int number)
{
	return number < l->workers.active &&
	       (l->slots.current >= 0 || !load_position_is_past_steps(&l->o, &l->slots.next));
}

static bool may_help_caller(const struct loader *l, int number)
{
	return number < l->o.helpers && l->waiting && slots_first_is_open(&l->slots);
}

static void *run_load_worker(void *arg)
{
	struct loader *l = arg;
	struct slots *s = &l->slots;
	struct slot_worker w;

	pthread_setname_np(pthread_self(), "dptrain-load");
	pthread_mutex_lock(&s->lock);
	w.number = l->workers.n_begun++;
	w.hand = &l->workers.hand[w.number];
	while (!l->stop.now)
		if (!(may_work_ahead(l, w.number) || may_help_caller(l, w.number)) || !slots_work(s, &w))
			pthread_cond_wait(&s->work, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Returns true if a read of the first batch was canceled. */
static bool is_first_canceled(const struct loader *l)
{
	const struct loader_slot *s = slots_first(&l->slots);

	return s && s->failed_at >= 0 && s->err.code == ERR_CANCELED;
}

static int deliver_first_slot(struct loader *l, struct loader_batch *ret, double began, struct err *err)
{
	struct loader_slot *s = slots_first(&l->slots);

	if (s->failed_at >= 0) {
		if (err)
			*err = s->err;
		return s->err.code;
	}
	l->slots.first = (l->slots.first + 1) % l->slots.size.n;
	l->slots.n--;
	s->held = true;
	*ret = s->batch;
	ret->wait_s = clock_mono_s() - began;
	return 1;
}

static void join_load_workers(struct loader *l)
{
	for (int i = 0; i < l->workers.n; i++)
		pthread_join(l->workers.thread[i], NULL);
	l->workers.n = 0;
}

/* Stops and joins the workers, because the caller must end. Called and returns with the lock held. */
static void stop_load_workers(struct loader *l)
{
	l->stop.now = true;
	pthread_cond_broadcast(&l->slots.work);
	pthread_mutex_unlock(&l->slots.lock);
	join_load_workers(l);
	pthread_mutex_lock(&l->slots.lock);
	l->blank = true;
}

/* Blanks the first batch. Under the lock, after stop_load_workers. */
static void blank_first_slot(struct slots *slots)
{
	struct loader_slot *s;

	if (!slots->n)
		slots_assign(slots);
	s = slots_first(slots);
	memset(s->inputs, 0, slots->size.bytes);
	s->claimed = s->done = s->places;
	s->failed_at = -1;
	s->batch.blank = true;
	slots->current = -1;
}

static bool caller_must_end(void *loader)
{
	const struct loader *l = loader;

	return l->stop.now || (l->o.ends && l->o.ends(l->o.ends_user));
}

/* Does the next thing that completes the first batch. Called and returns with the lock held. */
static void advance_first_slot(struct loader *l)
{
	const struct slot_worker own = { &l->workers.hand[l->workers.n_hands - 1], -1 };
	struct slots *s = &l->slots;

	if (!l->blank && (is_first_canceled(l) || caller_must_end(l)))
		stop_load_workers(l);
	if (l->blank)
		blank_first_slot(s);
	else if (slots_first_is_open(s))
		slots_work(s, &own); /* part of the caller's wait */
	else
		cond_wait_until(&s->ready, &s->lock, l->o.ends ? clock_mono_s() + LOOK_S : INFINITY);
}

int loader_next(struct loader *l, struct loader_batch *ret, struct err *err)
{
	struct slots *s = &l->slots;
	double began = clock_mono_s();
	int rc = 0, ready;

	pthread_mutex_lock(&s->lock);
	ready = slots_count_full(s);
	l->waiting = !slots_is_full(slots_first(s));
	if (l->waiting && l->workers.active < l->workers.n)
		pthread_cond_broadcast(&s->work);
	while (!slots_is_full(slots_first(s)) || is_first_canceled(l)) {
		if (!s->n && slots_at_end(s))
			goto out;
		if (!s->n && !s->n_free) {
			rc = err_set(err, ERR_BUSY, "all %d batches of the loader are held: release one first",
				     s->size.n);
			goto out;
		}
		advance_first_slot(l);
	}
	rc = deliver_first_slot(l, ret, began, err);
	ret->ready = ready;
out:
	l->waiting = false;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void loader_release(struct loader *l, const struct loader_batch *b)
{
	struct slots *s = &l->slots;

	pthread_mutex_lock(&s->lock);
	if (s->slot[b->slot].held) {
		s->slot[b->slot].held = false;
		s->free_slots[s->n_free++] = b->slot;
		pthread_cond_broadcast(&s->work);
	}
	pthread_mutex_unlock(&s->lock);
}

void loader_rewind(struct loader *l)
{
	pthread_mutex_lock(&l->slots.lock);
	slots_rewind(&l->slots);
	pthread_cond_broadcast(&l->slots.work);
	pthread_mutex_unlock(&l->slots.lock);
}

void loader_spent(struct loader *l, double *ret_s, double *ret_cpu_s)
{
	struct slots *s = &l->slots;

	pthread_mutex_lock(&s->lock);
	*ret_s = s->spent_s;
	*ret_cpu_s = s->spent_cpu_s;
	s->spent_s = s->spent_cpu_s = 0;
	pthread_mutex_unlock(&s->lock);
}

void loader_set_active(struct loader *l, int n)
{
	pthread_mutex_lock(&l->slots.lock);
	l->workers.active = n < l->workers.n ? n : l->workers.n;
	pthread_cond_broadcast(&l->slots.work);
	pthread_mutex_unlock(&l->slots.lock);
}

/* Refuses options that are out of range or that do not suit the set. */
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
	if ((o->auto_augment || o->random_erase > 0 || mixup_is_on(&o->mixup)) && d->kind != SAMPLE_IMAGE)
		return err_set(err, ERR_USAGE, "%.200s: has %s, which are used unchanged: omit augmentation", d->path,
			       sample_kind_name(d->kind));
	if (o->auto_augment && (d->dtype != DTYPE_U8 || (d->channels != 1 && d->channels != 3)))
		return err_set(err, ERR_USAGE,
			       "--auto-augment: %.200s: expected 8-bit images of 1 or 3 channels: omit it", d->path);
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

/* Allocates the scratch of the workers and of the caller. */
static void allocate_scratch(struct loader *l)
{
	struct load_workers *w = &l->workers;

	w->thread = mem_array((size_t)l->o.workers + 1, sizeof(*w->thread));
	w->hand = mem_array((size_t)l->o.workers + 1, sizeof(*w->hand));
	for (; w->n_hands <= l->o.workers; w->n_hands++) {
		fill_hand_init(&l->slots.fill, &w->hand[w->n_hands]);
		w->hand[w->n_hands].stop = w->n_hands < l->o.workers ? &l->stop : &l->caller;
	}
}

static int start_load_workers(struct loader *l, struct err *err)
{
	const int wanted = l->o.workers;
	int rc = 0;

	while (!rc && l->workers.n < wanted) {
		rc = thread_start(&l->workers.thread[l->workers.n], run_load_worker, l);
		l->workers.n += !rc;
	}
	if (!rc || l->o.fewer)
		return 0;
	return err_set_errno(
		err, rc, "loader: cannot start thread %d of %d: use fewer --workers, or larger limits (ulimit -u, -v)",
		l->workers.n + 1, wanted);
}

int loader_open(struct loader **ret, const struct loader_opts *o, struct err *err)
{
	struct loader *l;
	int rc = check_loader_opts(o, err);

	if (rc)
		return rc;
	l = mem_zalloc(sizeof(*l));
	l->o = *o;
	l->workers.active = o->workers;
	l->caller = (struct stop){ .asked = caller_must_end, .user = l };
	rc = slots_init(&l->slots, &l->o, &l->stop, err);
	if (o->resting)
		l->slots.next.epoch += o->epochs;
	if (!rc) {
		allocate_scratch(l);
		rc = start_load_workers(l, err);
	}
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
	pthread_mutex_lock(&l->slots.lock);
	l->stop.now = true;
	pthread_cond_broadcast(&l->slots.work);
	pthread_mutex_unlock(&l->slots.lock);
	join_load_workers(l);
	for (int i = 0; i < l->workers.n_hands; i++)
		fill_hand_done(&l->slots.fill, &l->workers.hand[i]);
	slots_done(&l->slots);
	free(l->workers.thread);
	free(l->workers.hand);
	free(l);
}
