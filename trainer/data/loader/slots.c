/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c: sizes, assigns and fills the batch slots. */
#include "trainer/data/loader/slots.h"

#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"

#define CHUNK_NUMBERS 65536

/* Returns what fill.c needs, without its table. */
static struct fill slots_fill(const struct loader_opts *o)
{
	return (struct fill){ .dataset = o->dataset,
			      .norm = o->norm ? *o->norm : dataset_norm(o->dataset),
			      .split = o->split,
			      .sized = fill_sized(o->dataset, o->split),
			      .dtype = o->dtype,
			      .marks = o->marks,
			      .augment = o->augment,
			      .auto_augment = o->auto_augment,
			      .random_erase = o->random_erase,
			      .seed = o->sampler.seed,
			      .raw_bytes = o->raw_bytes };
}

/* One batch at the caller, one ready, and enough to give every worker a chunk. */
static int count_needed_slots(const struct loader_opts *o, const struct slots_size *s)
{
	int64_t claims = s->capacity > s->chunk ? (s->capacity + s->chunk - 1) / s->chunk : 1; /* chunks per batch */
	int64_t n = 3 + (o->workers - 1) / claims;

	return o->slots > 0 ? o->slots : n > 4 ? (int)n : 4;
}

/* Computes the sizes; negative when they overflow. */
static int slots_measure(struct slots_size *ret, const struct loader_opts *o)
{
	const struct range first = sampler_part(&o->sampler, 0, 0);
	const struct fill f = slots_fill(o);
	struct slots_size s = { .capacity = first.end - first.begin, .sample_bytes = fill_input_bytes(&f) };
	size_t inputs, targets;

	if (o->sampler.micro && o->sampler.micro < s.capacity)
		s.capacity = o->sampler.micro;
	s.capacity += mixup_is_on(&o->mixup);
	s.labels = mixup_is_on(&o->mixup) ? 2 : (int)fill_targets(o->dataset);
	s.chunk = CHUNK_NUMBERS / (int64_t)(s.sample_bytes / sizeof(int32_t) + 1);
	s.chunk = s.chunk ? s.chunk : 1;
	s.n = count_needed_slots(o, &s);
	if (__builtin_mul_overflow((size_t)s.capacity, s.sample_bytes, &inputs) ||
	    __builtin_mul_overflow((size_t)s.capacity, (size_t)s.labels * sizeof(int32_t), &targets) ||
	    inputs > PTRDIFF_MAX / 4 || targets > PTRDIFF_MAX / 4)
		return -1;
	s.input_bytes = round_up_bytes(inputs, SLOTS_ALIGN_BYTES);
	s.bytes = round_up_bytes(inputs, SLOTS_ALIGN_BYTES) + round_up_bytes(targets, SLOTS_ALIGN_BYTES);
	*ret = s;
	return 0;
}

size_t loader_bytes(const struct loader_opts *o)
{
	struct slots_size s;
	size_t total;

	return slots_measure(&s, o) || __builtin_mul_overflow(s.bytes, (size_t)s.n, &total) ? 0 : total;
}

/* Allocates the memory of the slots and the queue. */
static int allocate_slots(struct slots *s, struct err *err)
{
	size_t n = (size_t)s->size.n, each = s->size.bytes;
	char *at = s->o->memory;

	if (!at && posix_memalign(&s->memory, SLOTS_ALIGN_BYTES, n * each))
		s->memory = NULL;
	if (!at)
		at = s->memory;
	if (!at)
		return err_set(err, ERR_NOMEM, "out of memory: %zu batches of %zu bytes: use a smaller batch", n, each);
	s->slot = mem_array(n, sizeof(*s->slot));
	s->queue = mem_array(n, sizeof(*s->queue));
	s->free_slots = mem_array(n, sizeof(*s->free_slots));
	for (size_t i = 0; i < n; i++, at += each) {
		s->slot[i].inputs = at;
		s->slot[i].targets = (int32_t *)(void *)(at + s->size.input_bytes);
		s->slot[i].index = mem_array((size_t)s->size.capacity, sizeof(int64_t));
		s->free_slots[s->n_free++] = (int)(n - 1 - i);
	}
	return 0;
}

int slots_init(struct slots *s, const struct loader_opts *o, const struct stop *stop, struct err *err)
{
	*s = (struct slots){ .o = o, .stop = stop, .current = -1, .fill = slots_fill(o) };
	slots_measure(&s->size, o); /* the caller has checked that it succeeds */
	fill_init(&s->fill);
	pthread_mutex_init(&s->lock, NULL);
	cond_init(&s->work);
	cond_init(&s->ready);
	order_init(&s->order, &o->sampler);
	announcer_init(&s->ahead, o);
	slots_rewind(s);
	return allocate_slots(s, err);
}

void slots_done(struct slots *s)
{
	for (int i = 0; s->slot && i < s->size.n; i++)
		free(s->slot[i].index);
	order_done(&s->order);
	announcer_done(&s->ahead);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->ready);
	pthread_mutex_destroy(&s->lock);
	free(s->slot);
	free(s->queue);
	free(s->free_slots);
	free(s->memory);
}

void slots_rewind(struct slots *s)
{
	s->next = (struct load_position){ s->o->first_epoch, s->o->first_step, 0 };
	announcer_rewind(&s->ahead, &s->next);
}

bool slots_at_end(const struct slots *s)
{
	return load_position_is_end(s->o, &s->next);
}

static void announce_remote_samples(struct slots *s)
{
	if (!s->stop->now)
		announce_remote(&s->ahead, &s->next);
}

/* The weight over which a step's mean is taken. */
static int64_t sum_global_weight(const struct slots *s, struct range global)
{
	const struct dataset *d = s->o->dataset;
	int64_t sum = 0;

	if (!d->ops->weight)
		return (global.end - global.begin) * (int64_t)fill_targets(d);
	for (int64_t i = global.begin; i < global.end; i++)
		sum += dataset_weight(d, s->o->split, order_at(&s->order, &s->o->sampler, i));
	return sum;
}

static struct mixup_size mixup_size_of(const struct loader_opts *o)
{
	const struct dataset *d = o->dataset;

	return (struct mixup_size){ dataset_height(d, o->split), dataset_width(d, o->split), d->channels, o->dtype };
}

/* Lists the samples of a slot: those of the batch, then the one that the first is mixed with. */
static void list_slot_samples(struct slots *s, struct loader_slot *slot, struct range global, struct range r)
{
	const struct sampler *p = &s->o->sampler;
	const int64_t n = slot->batch.count;
	const struct mixup_size size = mixup_size_of(s->o);

	for (int64_t i = 0; i < n; i++)
		slot->index[i] = order_at(&s->order, p, r.begin + i);
	slot->first = r.begin;
	slot->places = n;
	slot->batch.label_weight = 1;
	if (!mixup_is_on(&s->o->mixup) || !n)
		return;
	slot->before = r.begin > global.begin ? r.begin - 1 : global.end - 1;
	slot->index[n] = order_at(&s->order, p, slot->before);
	slot->places = n + 1;
	slot->mixup = mixup_draw(&s->o->mixup, p->seed, slot->batch.epoch, slot->batch.step, &size);
	slot->batch.label_weight = slot->mixup.weight;
}

void slots_assign(struct slots *s)
{
	const struct sampler *p = &s->o->sampler;
	const struct load_position at = s->next;
	struct range global = sampler_global(p, at.step), r = sampler_micro(p, at.step, s->o->rank, at.micro);
	int n = s->free_slots[--s->n_free];
	struct loader_slot *slot = &s->slot[n];

	announce_remote_samples(s);
	order_make(&s->order, p, at.epoch);
	slot->batch = (struct loader_batch){ .epoch = at.epoch,
					     .step = at.step,
					     .micro = at.micro,
					     .n_micro = sampler_micros(p, at.step),
					     .count = r.end - r.begin,
					     .global_count = global.end - global.begin,
					     .global_weight = sum_global_weight(s, global),
					     .inputs = slot->inputs,
					     .targets = slot->targets,
					     .slot = n };
	list_slot_samples(s, slot, global, r);
	slot->claimed = slot->done = 0;
	slot->failed_at = -1;
	s->queue[(s->first + s->n++) % s->size.n] = n;
	s->current = slot->batch.count ? n : -1;
	load_position_advance(s->o, &s->next);
}

/* Returns another sample for a position of the slot's epoch. s->order may already be the next epoch's. */
static int64_t find_other_sample(struct slots *s, const struct loader_slot *slot, int64_t position, int64_t skip)
{
	struct order other;
	int64_t sample = -1;

	pthread_mutex_lock(&s->lock);
	if (s->order.epoch == slot->batch.epoch)
		sample = order_other(&s->order, &s->o->sampler, position, skip);
	pthread_mutex_unlock(&s->lock);
	if (sample < 0) {
		order_init(&other, &s->o->sampler);
		order_make(&other, &s->o->sampler, slot->batch.epoch);
		sample = order_other(&other, &s->o->sampler, position, skip);
		order_done(&other);
	}
	return sample;
}

/* The position in the epoch of a slot's place. */
static int64_t slot_position(const struct loader_slot *slot, int64_t place)
{
	return place < slot->batch.count ? slot->first + place : slot->before;
}

/* Replaces an unreadable training sample by the next readable one in the epoch's order. */
static int replace_unreadable_sample(struct slots *s, struct loader_slot *slot, struct fill_place *p,
				     struct fill_hand *hand, struct err *err)
{
	const struct dataset *d = s->o->dataset;
	int64_t position = slot_position(slot, (p->target - slot->targets) / (int64_t)fill_targets(d)), others;
	int rc = ERR_CORRUPT;

	pthread_mutex_lock(&s->lock);
	others = order_others(&s->order, &s->o->sampler, position);
	pthread_mutex_unlock(&s->lock);
	for (int64_t k = 1; rc == ERR_CORRUPT && k <= others && !s->stop->now; k++) {
		p->index = find_other_sample(s, slot, position, k);
		rc = fill_sample(&s->fill, hand, p, err);
	}
	if (rc != ERR_CORRUPT)
		return rc;
	return s->stop->now ? err_set(err, ERR_CANCELED, "%.300s: the read was canceled", d->path)
			    : err_set(err, ERR_USAGE, "%.300s: no image can be read", d->path);
}

static int fill_slot_sample(struct slots *s, struct loader_slot *slot, int64_t i, struct fill_hand *hand,
			    struct err *err)
{
	struct fill_place p = { .index = slot->index[i],
				.epoch = slot->batch.epoch,
				.repeat = sampler_repeat(&s->o->sampler, slot_position(slot, i)),
				.alone = i == slot->batch.count ||
					 sampler_is_alone(&s->o->sampler, s->o->rank, slot->first + i),
				.input = slot->inputs + (size_t)i * s->size.sample_bytes,
				.target = slot->targets + (size_t)i * fill_targets(s->o->dataset) };
	int rc = fill_sample(&s->fill, hand, &p, err);

	if (rc != ERR_CORRUPT)
		return rc;
	if (s->o->split == SPLIT_TRAIN)
		return replace_unreadable_sample(s, slot, &p, hand, err);
	fill_nothing(&s->fill, &p);
	return 0;
}

/* Mixes each sample of a slot with the one before it, from the last one on, so that the one before is still unmixed;
 * the labels become pairs. */
static void mix_slot(const struct slots *s, struct loader_slot *slot)
{
	const int64_t n = slot->batch.count;
	const struct mixup_size size = mixup_size_of(s->o);
	const int32_t label_before = slot->targets[n];

	for (int64_t i = n - 1; i >= 0; i--) {
		const int64_t before = i ? i - 1 : n;
		const int32_t pair[2] = { slot->targets[i], i ? slot->targets[before] : label_before };

		mixup_images(&slot->mixup, &size, slot->inputs + (size_t)i * s->size.sample_bytes,
			     slot->inputs + (size_t)before * s->size.sample_bytes);
		slot->targets[2 * i] = pair[0];
		slot->targets[2 * i + 1] = pair[1];
	}
}

/* Accounts the filled samples [begin, end) of a slot, the first unreadable one of which is `failed` (-1: none); the
 * thread that fills the last ones also mixes the slot. Called and returns with the lock held. */
static void finish_slot_chunk(struct slots *s, struct loader_slot *slot, struct range chunk, int64_t failed,
			      const struct err *err)
{
	if (failed >= 0 && (slot->failed_at < 0 || failed < slot->failed_at)) {
		slot->failed_at = failed;
		slot->err = *err;
	}
	if (slot->done + chunk.end - chunk.begin < slot->places)
		return;
	if (slot->places > slot->batch.count && slot->failed_at < 0) {
		pthread_mutex_unlock(&s->lock);
		mix_slot(s, slot);
		pthread_mutex_lock(&s->lock);
	}
}

/* Claims a chunk of the current slot and fills it. Called and returns with the lock held. */
static void fill_slot_chunk(struct slots *s, const struct slot_worker *w)
{
	struct loader_slot *slot = &s->slot[s->current];
	struct range chunk = { slot->claimed, slot->claimed + s->size.chunk };
	double start_s = clock_mono_s(), start_cpu_s = clock_thread_s(), end_s;
	struct announcements near = { .n = 0 };
	struct err err = ERR_INIT;
	int64_t failed = -1;

	if (chunk.end > slot->places)
		chunk.end = slot->places;
	slot->claimed = chunk.end;
	if (chunk.end == slot->places)
		s->current = -1;
	if (!s->stop->now)
		announce_choose(&s->ahead, &s->next, chunk.end - chunk.begin, &near);
	pthread_mutex_unlock(&s->lock);
	announce_chosen(s->o, &near);
	for (int64_t i = chunk.begin; i < chunk.end && failed < 0; i++)
		if (fill_slot_sample(s, slot, i, w->hand, &err))
			failed = i;
	pthread_mutex_lock(&s->lock);
	finish_slot_chunk(s, slot, chunk, failed, &err);
	end_s = clock_mono_s();
	s->spent_s += end_s - start_s;
	if (s->o->worked && w->number >= 0)
		s->o->worked(s->o->worked_user, w->number, start_s, end_s);
	s->spent_cpu_s += clock_thread_s() - start_cpu_s;
	slot->done += chunk.end - chunk.begin;
	if (slot->done == slot->places)
		pthread_cond_signal(&s->ready);
	announce_remote_samples(s);
}

bool slots_work(struct slots *s, const struct slot_worker *w)
{
	if (s->current < 0 && (slots_at_end(s) || !s->n_free))
		return false;
	if (s->current < 0) {
		slots_assign(s);
		if (s->current < 0) {
			pthread_cond_signal(&s->ready); /* an empty part is full at once */
			return true;
		}
		pthread_cond_broadcast(&s->work);
	}
	fill_slot_chunk(s, w);
	return true;
}

struct loader_slot *slots_first(const struct slots *s)
{
	return s->n ? &s->slot[s->queue[s->first]] : NULL;
}

bool slots_is_full(const struct loader_slot *slot)
{
	return slot && slot->done == slot->places;
}

bool slots_first_is_open(const struct slots *s)
{
	return s->n ? s->current == s->queue[s->first] : !slots_at_end(s) && s->n_free;
}

int slots_count_full(const struct slots *s)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += slots_is_full(&s->slot[s->queue[(s->first + i) % s->size.n]]);
	return n;
}
