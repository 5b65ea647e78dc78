/* loading.c: the flags' wishes as a loader's options. */
#include "trainer/program/loading.h"

#include "tracker/base/log.h"

#define WORKERS_LEAST 4 /* that --workers auto may come to, on one core too */
#define WORKERS_MOST 256
#define AUTO_SLOTS 4 /* a plan does not depend on the cores of the machine */

/* A thread that waits for a disk needs no core: there may be twice as many. */
int loading_workers(const struct engine *e)
{
	int cores = config_cores(e->cfg), most = 2 * cores;

	if (e->cfg->workers >= 0)
		return (int)e->cfg->workers;
	return most < WORKERS_LEAST ? WORKERS_LEAST : most < WORKERS_MOST ? most : WORKERS_MOST;
}

static struct loader_opts opts_of(const struct engine *e, enum split split)
{
	const struct run_config *cfg = e->cfg;
	bool training = split == SPLIT_TRAIN;

	return (struct loader_opts){ .dataset = e->data,
				     .norm = &e->norm,
				     .split = split,
				     .sampler = training ? e->train : e->eval,
				     .rank = e->seat->rank,
				     .dtype = engine_precision(cfg).master,
				     .workers = loading_workers(e),
				     .fewer = cfg->workers < 0,
				     .slots = cfg->workers < 0 ? AUTO_SLOTS : 0,
				     .augment = training ? cfg->augment : 0,
				     .epochs = training ? 0 : 1,
				     .slow_s = training ? e->hooks.slow_batch_s : 0 };
}

size_t loading_bytes(const struct engine *e, enum split split)
{
	const struct loader_opts o = opts_of(e, split);

	return loader_bytes(&o);
}

static void warn_of_crowding(const struct engine *e)
{
	int cores = config_cores(e->cfg);

	if (engine_is_root(e) && e->cfg->workers > cores && e->cfg->local_world > 1)
		log_warn("--workers %lld on each of %d ranks: there %s %d core%s for each; the ranks' threads will take time "
			 "from each other", (long long)e->cfg->workers, e->cfg->local_world, cores > 1 ? "are" : "is", cores,
			 cores > 1 ? "s" : "");
}

int loading_open(struct loader **ret, struct engine *e, enum split split, struct err *err)
{
	struct loader_opts o = opts_of(e, split);
	int rc;

	if (split == SPLIT_TRAIN) {
		warn_of_crowding(e);
		o.first_epoch = e->step / e->steps_per_epoch;
		o.first_step = e->step % e->steps_per_epoch;
	}
	o.memory = prepared_loader(&e->prepared, split);
	rc = loader_open(ret, &o, err);
	if (!rc && e->cfg->workers < 0)
		loader_set_active(*ret, e->loading[split].n);
	return rc;
}
