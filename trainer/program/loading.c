/* SPDX-License-Identifier: Apache-2.0 */
/* loading.c: turns flags into options of the loader; raises its number of threads while steps become faster. */
#include "trainer/program/loading.h"

#include "tracker/base/log.h"

#define WORKERS_LEAST 4 /* least upper limit of --workers auto, on one core too */
#define WORKERS_MOST 256
#define AUTO_SLOTS 4 /* fixed, so that a plan does not depend on the number of cores */

/* Threads that wait for a disk need no core: there may be two for each core. */
int loading_workers(const struct run_config *cfg)
{
	int cores = cfg->cores, most = 2 * cores;

	if (cfg->workers >= 0)
		return (int)cfg->workers;
	return most < WORKERS_LEAST ? WORKERS_LEAST : most < WORKERS_MOST ? most : WORKERS_MOST;
}

/* The calling thread fills batches too: without --workers there are no more threads than cores. */
static int helper_threads(const struct run_config *cfg)
{
	return cfg->workers < 0 ? cfg->cores - 1 : loading_workers(cfg);
}

static bool rank_is_to_end(void *rank)
{
	return rank_context_stop(((const struct rank *)rank)->context) != 0;
}

/* Makes the options of the loader, except where it begins. */
static struct loader_opts make_loader_opts(const struct loading_opts *o)
{
	const struct run_config *cfg = o->rank->cfg;
	bool training = o->split == SPLIT_TRAIN;

	return (struct loader_opts){ .dataset = o->workload->data,
				     .norm = &o->workload->norm,
				     .split = o->split,
				     .sampler = training ? o->train_schedule->train : o->train_schedule->eval,
				     .rank = rank_share(o->rank),
				     .dtype = rank_precision(o->rank).master,
				     .workers = loading_workers(cfg),
				     .helpers = helper_threads(cfg),
				     .fewer = cfg->workers < 0,
				     .slots = cfg->workers < 0 ? AUTO_SLOTS : 0,
				     .marks = o->workload->config.documents,
				     .augment = training ? cfg->augment : 0,
				     .auto_augment = training ? (enum augment_policy)cfg->auto_augment : AUGMENT_NONE,
				     .random_erase = training ? cfg->random_erase : 0,
				     .mixup = { training ? cfg->mixup_alpha : 0, training ? cfg->cutmix_alpha : 0 },
				     .epochs = training ? 0 : 1,
				     .resting = o->resting,
				     .ends = rank_is_to_end,
				     .ends_user = (void *)(uintptr_t)o->rank,
				     .worked = o->worked,
				     .worked_user = o->worked_user,
				     .raw_bytes = o->raw_bytes,
				     .memory = o->memory };
}

size_t loading_bytes(const struct loading_opts *o)
{
	const struct loader_opts l = make_loader_opts(o);

	return loader_bytes(&l);
}

static void warn_crowded_workers(const struct rank *r)
{
	const struct run_config *cfg = r->cfg;
	int cores = cfg->cores;

	if (rank_is_root(r) && cfg->workers > cores && cfg->local_world > 1)
		log_warn("--workers %lld on each of %d ranks: there %s %d core%s for each rank; their threads will "
			 "compete for the cores",
			 (long long)cfg->workers, cfg->local_world, cores > 1 ? "are" : "is", cores,
			 cores > 1 ? "s" : "");
}

int loading_open(struct loader **ret, const struct loading_opts *o, struct err *err)
{
	struct loader_opts l = make_loader_opts(o);
	int rc;

	if (o->split == SPLIT_TRAIN) {
		warn_crowded_workers(o->rank);
		l.steps_end = o->train_schedule->steps_end < INT64_MAX ? o->train_schedule->steps_end : 0;
		l.first_epoch = o->step / o->train_schedule->steps_per_epoch;
		l.first_step = o->step % o->train_schedule->steps_per_epoch;
	}
	rc = loader_open(ret, &l, err);
	if (!rc && o->rank->cfg->workers < 0)
		loader_set_active(*ret, o->active);
	return rc;
}

/* ---- the number of threads ---- */

#define LITTLE 0.02 /* share of time: less waiting is not worth a thread */
#define GAIN 0.03   /* share of time that a number must win to be kept, or lose to end the search */
/* the search ends after that many numbers in a row without gain: the first of many threads gains little */
#define IN_VAIN 3

void workers_init(struct workers *s, int most)
{
	*s = (struct workers){ .most = most, .done = most < 1 };
}

static void begin_window(struct workers *s, int n)
{
	s->n = n;
	s->seen = 0;
	s->wait_s = s->all_s = s->longest_s = 0;
}

static int next_worker_count(const struct workers *s)
{
	int n = s->n ? 2 * s->n : 1;

	return n < s->most ? n : s->most;
}

static void judge_worker_count(struct workers *s, double batch_s, double wait_share)
{
	bool better = !s->any || batch_s < s->best_s * (1 - GAIN), worse = s->any && batch_s > s->best_s * (1 + GAIN);

	if (better) {
		s->any = true;
		s->best = s->n;
		s->best_s = batch_s;
		s->wait_share = wait_share;
	}
	s->in_vain = better ? 0 : s->in_vain + 1;
	s->done = worse || s->in_vain == IN_VAIN || wait_share < LITTLE || s->n == s->most;
	begin_window(s, s->done ? s->best : next_worker_count(s));
}

/* Ignores the longest batch of a window: something else may have delayed it (a checkpoint, another program). */
bool workers_batch(struct workers *s, double wait_s, double all_s)
{
	if (s->done || ++s->seen <= WORKERS_SKIPPED)
		return false;
	s->wait_s += wait_s;
	s->all_s += all_s;
	s->longest_s = all_s > s->longest_s ? all_s : s->longest_s;
	if (s->seen < WORKERS_SKIPPED + WORKERS_WINDOW)
		return false;
	judge_worker_count(s, (s->all_s - s->longest_s) / (WORKERS_WINDOW - 1),
			   s->all_s > 0 ? s->wait_s / s->all_s : 0);
	return true;
}
