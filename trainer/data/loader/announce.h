/* SPDX-License-Identifier: Apache-2.0 */
/* announce.h: announces samples to a set in reading order, before they are read: to a remote set until it has enough
 * in flight, to a local one shortly before they are claimed. Private to the loader, which calls everything but
 * announce_chosen under its lock. */
#ifndef DPT_DATA_ANNOUNCE_H
#define DPT_DATA_ANNOUNCE_H

#include "trainer/data/loader/loader.h"

#define ANNOUNCE_AT_ONCE 16 /* samples of a local set */

/* A micro-batch of the run. */
struct load_position {
	int64_t epoch, step, micro;
};

/* Advances to the next micro-batch, step or epoch. */
void load_position_advance(const struct loader_opts *o, struct load_position *p);
bool load_position_is_end(const struct loader_opts *o, const struct load_position *p); /* past the last epoch */
bool load_position_is_past_steps(const struct loader_opts *o, const struct load_position *p); /* past o->steps_end */

struct announcer {
	const struct loader_opts *o; /* borrowed */
	struct order order;
	struct load_position at; /* position of the next sample to announce */
	int64_t place;		 /* … in its micro-batch */
	int64_t n;		 /* local sets: announced minus claimed samples; below 0: claims are ahead */
};

/* Samples of a local set to announce. */
struct announcements {
	struct dataset_read read[ANNOUNCE_AT_ONCE];
	int n;
};

int announcer_init(struct announcer *a, const struct loader_opts *o, struct err *err); /* ERR_NOMEM */
void announcer_done(struct announcer *a); /* a zeroed one is fine */
void announcer_rewind(struct announcer *a, const struct load_position *to);

/* Announces samples of a remote set until the set has enough. next: the next micro-batch to assign. */
void announce_remote(struct announcer *a, const struct load_position *next);

/* Accounts n claimed samples and chooses the samples of a local set to announce. */
void announce_choose(struct announcer *a, const struct load_position *next, int64_t n, struct announcements *ret);

/* Announces the chosen samples. Without the lock, because it may wait for the disk. */
void announce_chosen(const struct loader_opts *o, const struct announcements *chosen);

#endif
