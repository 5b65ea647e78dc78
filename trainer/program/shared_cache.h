/* SPDX-License-Identifier: Apache-2.0 */
/* shared_cache.h: the nodes of a job share their caches (--cache-shared): the ranks tell each other where each node's
 * cache is served. Knows neither sets nor blocks. */
#ifndef DPT_PROGRAM_SHARED_CACHE_H
#define DPT_PROGRAM_SHARED_CACHE_H

#include "trainer/data/store/peers.h"
#include "trainer/program/rank.h"

struct shared_cache;

/* Collective over all ranks, after rank_meet and before the set is opened. Each node's first rank serves its cache.
 * *ret is NULL without the flag, or with one machine. r must outlive the call only. */
int shared_cache_open(struct shared_cache **ret, const struct rank *r, struct err *err);
void shared_cache_close(struct shared_cache *s); /* after the set; NULL is fine */

struct peers *shared_cache_peers(const struct shared_cache *s); /* for struct dataset_opts; s NULL: NULL */

#endif
