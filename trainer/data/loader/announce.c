/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c: a second walk over the order, ahead of the one that assigns batches. */
#include "trainer/data/loader/slots.h"

#define AHEAD_SAMPLES 4096
#define AHEAD_AT_ONCE 256
#define NEAR_SAMPLES 128 /* local sets: most samples that are announced and not claimed */

void load_position_advance(const struct loader_opts *o, struct load_position *p)
{
	if (++p->micro < sampler_micros(&o->sampler, p->step))
		return;
	p->micro = 0;
	if (++p->step < sampler_steps(&o->sampler))
		return;
	p->step = 0;
	++p->epoch;
}

bool load_position_is_end(const struct loader_opts *o, const struct load_position *p)
{
	return o->epochs && p->epoch >= o->first_epoch + o->epochs;
}

bool load_position_is_past_steps(const struct loader_opts *o, const struct load_position *p)
{
	return o->steps_end && (__int128)p->epoch * sampler_steps(&o->sampler) + p->step >= o->steps_end;
}

void announcer_init(struct announcer *a, const struct loader_opts *o)
{
	a->o = o;
	if (o->dataset->ops->ahead)
		order_init(&a->order, &o->sampler);
}

void announcer_done(struct announcer *a)
{
	order_done(&a->order);
}

void announcer_rewind(struct announcer *a, const struct load_position *to)
{
	a->at = *to;
	a->at.micro = a->place = a->n = 0;
}

/* Moves the announcements forward to the assigned position: samples already assigned are not announced. */
static void catch_up_announcements(struct announcer *a, const struct load_position *next)
{
	int64_t lead = a->at.epoch != next->epoch ? a->at.epoch - next->epoch
		       : a->at.step != next->step ? a->at.step - next->step
						  : a->at.micro - next->micro;

	if (lead >= 0)
		return;
	a->at = *next;
	a->place = 0;
}

/* Returns true if a window of steps is announced: a run that is killed has then fetched at most one window in vain. */
static bool is_far_ahead(const struct announcer *a, const struct load_position *next)
{
	const struct sampler *s = &a->o->sampler;
	int64_t samples = s->order == SAMPLER_WINDOW ? s->window : AHEAD_SAMPLES;
	int64_t ahead = a->at.step - next->step;

	if (a->at.epoch > next->epoch)
		ahead += (a->at.epoch - next->epoch) * sampler_steps(s);
	return ahead > samples / s->global_batch + 2;
}

/* Returns the next sample to announce. False: none at present. */
static bool next_to_announce(struct announcer *a, const struct load_position *next, struct dataset_read *ret)
{
	const struct loader_opts *o = a->o;
	const struct sampler *s = &o->sampler;

	for (; !load_position_is_end(o, &a->at) && !load_position_is_past_steps(o, &a->at) && !is_far_ahead(a, next);
	     a->place = 0, load_position_advance(o, &a->at)) {
		struct range r = sampler_micro(s, a->at.step, o->rank, a->at.micro);

		if (a->place >= r.end - r.begin)
			continue;
		order_make(&a->order, s, a->at.epoch);
		*ret = (struct dataset_read){ .split = o->split,
					      .index = order_at(&a->order, s, r.begin + a->place),
					      .alone = sampler_is_alone(s, o->rank, r.begin + a->place),
					      .epoch = a->at.epoch };
		return true;
	}
	return false;
}

void announce_remote(struct announcer *a, const struct load_position *next)
{
	const struct dataset *d = a->o->dataset;
	struct dataset_read read;

	if (!d->ops->ahead || !d->remote)
		return;
	catch_up_announcements(a, next);
	for (int left = AHEAD_AT_ONCE; left && next_to_announce(a, next, &read) && d->ops->ahead(d, &read); left--)
		a->place++;
}

void announce_choose(struct announcer *a, const struct load_position *next, int64_t n, struct announcements *ret)
{
	const struct dataset *d = a->o->dataset;

	ret->n = 0;
	if (!d->ops->ahead || d->remote)
		return;
	a->n -= n;
	if (a->n < 0) {
		catch_up_announcements(a, next);
		a->n = 0;
	}
	if (a->n > NEAR_SAMPLES - ANNOUNCE_AT_ONCE)
		return;
	for (; ret->n < ANNOUNCE_AT_ONCE && next_to_announce(a, next, &ret->read[ret->n]); ret->n++)
		a->place++;
	a->n += ret->n;
}

void announce_chosen(const struct loader_opts *o, const struct announcements *chosen)
{
	for (int i = 0; i < chosen->n; i++)
		o->dataset->ops->ahead(o->dataset, &chosen->read[i]);
}
