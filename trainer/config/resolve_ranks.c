/* SPDX-License-Identifier: Apache-2.0 */
/* resolve_ranks.c: strategies, what they shard and over how many ranks, and the batch. */
#include "tracker/base/round.h"
#include "trainer/config/flags.h"

#define TUNING_BATCH 32

enum strategy_number {
#define STRATEGY(name, ...) STRATEGY_##name,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
};

static const struct {
	const char *name;
	int most, from;
} strategies[] = {
#define STRATEGY(name_, most_, from_) { .name = #name_, .most = most_, .from = from_ },
#include "trainer/strategies/strategies.def"
#undef STRATEGY
};

/* Returns the strategy of a run without --strategy. */
static int default_strategy(int world)
{
	int best = 0;

	for (int i = 0; i < (int)(sizeof(strategies) / sizeof(strategies[0])); i++)
		if (strategies[i].from && strategies[i].from <= world && strategies[i].from > strategies[best].from)
			best = i;
	return best;
}

int resolve_strategy(struct run_config *cfg, struct err *err)
{
	const int usual = default_strategy(cfg->world);
	struct label l;
	int most;

	if (!is_given(cfg, FLAG_strategy)) {
		cfg->strategy = usual;
		mark_derived(cfg, FLAG_strategy);
	}
	most = strategies[cfg->strategy].most;
	if (most == 1 && cfg->world > 1)
		return err_set(err, ERR_USAGE, "%s %s: needs one rank, but there are %d; use %s",
			       label_flag(cfg, FLAG_strategy, &l), strategies[cfg->strategy].name, cfg->world,
			       strategies[usual].name);
	if (most && cfg->world > most)
		return err_set(err, ERR_USAGE, "%s %s: supports at most %d ranks, but there are %d; use %s",
			       label_flag(cfg, FLAG_strategy, &l), strategies[cfg->strategy].name, most, cfg->world,
			       strategies[usual].name);
	return 0;
}

static int check_zero_stage(const struct run_config *cfg, enum flag_id id, int least, struct err *err)
{
	struct label l;

	if (!is_given(cfg, id))
		return 0;
	if (cfg->strategy == STRATEGY_pdp && id == FLAG_zero_stage && cfg->zero_stage == 1)
		return 0;
	if (cfg->strategy == STRATEGY_pdp && id == FLAG_zero_stage)
		return err_set(err, ERR_USAGE, "%s %lld: pipelines shard only moments: use --zero-stage 1",
			       label_flag(cfg, id, &l), (long long)cfg->zero_stage);
	if (cfg->strategy != STRATEGY_fsdp)
		return err_set(err, ERR_USAGE, "%s: only --strategy fsdp shards parameters", label_flag(cfg, id, &l));
	if (cfg->zero_stage < least)
		return err_set(err, ERR_USAGE, "%s: has no effect in stage %lld of ZeRO: use --zero-stage %d%s",
			       label_flag(cfg, id, &l), (long long)cfg->zero_stage, least, least < 3 ? " or 3" : "");
	return 0;
}

int resolve_sharing(struct run_config *cfg, struct err *err)
{
	static const struct {
		enum flag_id id;
		int least; /* stage */
	} flags[] = {
		{ FLAG_zero_stage, 1 },	     { FLAG_fsdp_unit, 1 },	  { FLAG_reshard_after_forward, 3 },
		{ FLAG_gather_prefetch, 3 }, { FLAG_sync_each_batch, 2 }, { FLAG_shard_degree, 1 },
	};
	struct label l;
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(flags) / sizeof(flags[0]); i++)
		rc = check_zero_stage(cfg, flags[i].id, flags[i].least, err);
	if (!rc && !is_given(cfg, FLAG_shard_degree)) {
		cfg->shard_degree = cfg->world;
		mark_derived(cfg, FLAG_shard_degree);
	}
	if (!rc && cfg->world % cfg->shard_degree)
		return err_set(err, ERR_USAGE, "%s %lld: expected a divisor of the %d ranks",
			       label_flag(cfg, FLAG_shard_degree, &l), (long long)cfg->shard_degree, cfg->world);
	if (!rc && !is_given(cfg, FLAG_sync_each_batch)) {
		cfg->sync_each_batch = cfg->strategy == STRATEGY_fsdp && cfg->zero_stage >= 2;
		mark_derived(cfg, FLAG_sync_each_batch);
	}
	return rc;
}

/* Checks what is offloaded, and where to. */
int resolve_offload(const struct run_config *cfg, struct err *err)
{
	const bool shares =
		cfg->strategy == STRATEGY_fsdp || (cfg->strategy == STRATEGY_pdp && is_given(cfg, FLAG_zero_stage));
	struct label l;

	if (cfg->offload_dir && !cfg->activation_offload && !cfg->param_offload && !cfg->optim_offload)
		return err_set(err, ERR_USAGE, "%s: nothing is offloaded: add --activation-offload, --param-offload or "
			       "--optim-offload", label_flag(cfg, FLAG_offload_dir, &l));
	if (cfg->param_offload && cfg->world > 1 && shares && cfg->zero_stage < 3)
		return err_set(err, ERR_USAGE, "%s: stage %lld of ZeRO keeps whole parameters for the step: use "
			       "--strategy fsdp --zero-stage 3", label_flag(cfg, FLAG_param_offload, &l),
			       (long long)cfg->zero_stage);
	return 0;
}

int64_t config_stages(const struct run_config *cfg)
{
	return cfg->strategy == STRATEGY_pdp && cfg->pp_stages > 0 ? cfg->pp_stages : 1;
}

/* Needs the batch. */
int resolve_devices(const struct run_config *cfg, struct err *err)
{
	struct label l;

	if (cfg->strategy != STRATEGY_dp)
		return is_given(cfg, FLAG_dp_devices) ? err_set(err, ERR_USAGE, "%s: only --strategy dp has devices in "
								"one process",
								label_flag(cfg, FLAG_dp_devices, &l)) : 0;
	if (cfg->dp_devices > cfg->batch_size)
		return err_set(err, ERR_USAGE,
			       "%s %lld: the batch has only %lld samples: raise --batch-size",
			       label_flag(cfg, FLAG_dp_devices, &l),
			       (long long)cfg->dp_devices, (long long)cfg->batch_size);
	if (cfg->grad_accum_steps > 1)
		return err_set(err, ERR_USAGE, "%s %lld: --strategy dp makes one pass per step, split over its devices",
			       label_flag(cfg, FLAG_grad_accum_steps, &l), (long long)cfg->grad_accum_steps);
	if (cfg->sync_bn)
		return err_set(err, ERR_USAGE, "%s: devices of dp cannot share batch norm: omit it",
			       label_flag(cfg, FLAG_sync_bn, &l));
	return 0;
}

static int refuse_pipeline_flags(const struct run_config *cfg, struct err *err)
{
	static const enum flag_id flags[] = { FLAG_pp_stages, FLAG_pp_schedule, FLAG_pp_partition, FLAG_microbatches };
	struct label l;

	for (size_t i = 0; cfg->strategy != STRATEGY_pdp && i < sizeof(flags) / sizeof(flags[0]); i++)
		if (is_given(cfg, flags[i]))
			return err_set(err, ERR_USAGE, "%s: only --strategy pdp has pipelines",
				       label_flag(cfg, flags[i], &l));
	return 0;
}

/* Needs the batch. */
int resolve_pipeline(struct run_config *cfg, struct err *err)
{
	int64_t samples;
	struct label l;

	if (cfg->strategy != STRATEGY_pdp)
		return refuse_pipeline_flags(cfg, err);
	if (!is_given(cfg, FLAG_pp_stages)) {
		cfg->pp_stages = cfg->world;
		mark_derived(cfg, FLAG_pp_stages);
	}
	if (cfg->pp_stages > 64 || cfg->world % cfg->pp_stages)
		return err_set(err, ERR_USAGE, "%s %lld: expected a divisor of the %d ranks, at most 64",
			       label_flag(cfg, FLAG_pp_stages, &l), (long long)cfg->pp_stages, cfg->world);
	samples = cfg->batch_size * cfg->pp_stages;
	if (!is_given(cfg, FLAG_microbatches)) {
		cfg->microbatches = 4 * cfg->pp_stages < samples ? 4 * cfg->pp_stages : samples;
		mark_derived(cfg, FLAG_microbatches);
	}
	if (cfg->microbatches > samples)
		return err_set(err, ERR_USAGE,
			       "%s %lld: expected at most %lld, the samples of a step (%lld stages x --batch-size)",
			       label_flag(cfg, FLAG_microbatches, &l), (long long)cfg->microbatches, (long long)samples,
			       (long long)cfg->pp_stages);
	if (cfg->grad_accum_steps > 1)
		return err_set(err, ERR_USAGE, "%s %lld: --strategy pdp splits its batch with --microbatches instead",
			       label_flag(cfg, FLAG_grad_accum_steps, &l), (long long)cfg->grad_accum_steps);
	if (cfg->sync_bn)
		return err_set(err, ERR_USAGE, "%s: stages of pdp cannot share batch norm: omit it",
			       label_flag(cfg, FLAG_sync_bn, &l));
	return 0;
}

/* Derives the micro-batch of a rank and its passes from the global batch. */
static int split_global_batch(struct run_config *cfg, struct err *err)
{
	int64_t part = divide_up(cfg->global_batch_size, cfg->world); /* samples of the rank that has most */
	struct label l;

	if (!is_given(cfg, FLAG_batch_size)) {
		cfg->batch_size = divide_up(part, cfg->grad_accum_steps);
		mark_derived(cfg, FLAG_batch_size);
		if (divide_up(part, cfg->batch_size) != cfg->grad_accum_steps)
			return err_set(err, ERR_USAGE,
				       "%s %lld: cannot split the %lld samples of a rank: use %lld passes of %lld",
				       label_flag(cfg, FLAG_grad_accum_steps, &l), (long long)cfg->grad_accum_steps,
				       (long long)part, (long long)divide_up(part, cfg->batch_size),
				       (long long)cfg->batch_size);
		return 0;
	}
	if (!is_given(cfg, FLAG_grad_accum_steps)) {
		cfg->grad_accum_steps = divide_up(part, cfg->batch_size);
		mark_derived(cfg, FLAG_grad_accum_steps);
		return 0;
	}
	if (divide_up(part, cfg->batch_size) != cfg->grad_accum_steps)
		return err_set(err, ERR_USAGE,
			       "%s %lld contradicts batch size %lld x %lld passes x %d ranks: omit one of the three",
			       label_flag(cfg, FLAG_global_batch_size, &l), (long long)cfg->global_batch_size,
			       (long long)cfg->batch_size, (long long)cfg->grad_accum_steps, cfg->world);
	return 0;
}

/* Keeps the global batch: fewer ranks make it in more passes. */
static void keep_global_batch(struct run_config *cfg, const struct run_config *before)
{
	cfg->global_batch_size = before->global_batch_size;
	cfg->batch_size = before->batch_size;
	cfg->grad_accum_steps = divide_up(divide_up(cfg->global_batch_size, cfg->world), cfg->batch_size);
	mark_derived(cfg, FLAG_global_batch_size);
	mark_derived(cfg, FLAG_batch_size);
	mark_derived(cfg, FLAG_grad_accum_steps);
}

/* Fine-tuning a decoder: TUNING_BATCH samples a step, whatever the number of ranks. */
static bool has_tuning_batch(const struct run_config *cfg)
{
	return cfg->decoder && !cfg->batch_from && !is_given(cfg, FLAG_batch_size) &&
	       !is_given(cfg, FLAG_global_batch_size);
}

int resolve_batch(struct run_config *cfg, const struct config_world *w, struct err *err)
{
	const double most = flag_get(FLAG_global_batch_size)->greatest;
	const int64_t from_file = w->batch_from_samples;
	struct label l;

	if (w->before) {
		keep_global_batch(cfg, w->before);
		return 0;
	}
	if (from_file && is_given(cfg, FLAG_global_batch_size) && cfg->global_batch_size != from_file)
		return err_set(err, ERR_USAGE, "%s %lld contradicts the batch of %.200s, which has %lld samples",
			       label_flag(cfg, FLAG_global_batch_size, &l), (long long)cfg->global_batch_size,
			       cfg->batch_from, (long long)from_file);
	if (from_file && !is_given(cfg, FLAG_global_batch_size)) {
		cfg->global_batch_size = from_file;
		mark_derived(cfg, FLAG_global_batch_size);
	}
	if (has_tuning_batch(cfg)) {
		cfg->global_batch_size = TUNING_BATCH;
		mark_derived(cfg, FLAG_global_batch_size);
	}
	if (is_given(cfg, FLAG_global_batch_size) || from_file || has_tuning_batch(cfg))
		return split_global_batch(cfg, err);
	if ((double)cfg->batch_size * (double)cfg->grad_accum_steps * cfg->world > most)
		return err_set(err, ERR_USAGE, "%s %lld: the global batch exceeds %.0f samples",
			       label_flag(cfg, FLAG_batch_size, &l), (long long)cfg->batch_size, most);
	cfg->global_batch_size = cfg->batch_size * cfg->grad_accum_steps * cfg->world;
	mark_derived(cfg, FLAG_global_batch_size);
	return 0;
}

int config_fit_batch(struct run_config *cfg, int64_t samples, const char *path, struct err *err)
{
	const enum flag_id flag = is_given(cfg, FLAG_global_batch_size) ? FLAG_global_batch_size : FLAG_batch_size;
	struct label l;
	int rc;

	if (cfg->global_batch_size <= samples)
		return 0;
	if (!has_tuning_batch(cfg))
		return err_set(err, ERR_USAGE,
			       "a global batch of %lld samples is larger than the training set of %s (%lld samples); "
			       "lower %s",
			       (long long)cfg->global_batch_size, path, (long long)samples, label_flag(cfg, flag, &l));
	cfg->global_batch_size = samples;
	rc = split_global_batch(cfg, err);
	if (!rc)
		rc = resolve_devices(cfg, err);
	return rc ? rc : resolve_pipeline(cfg, err);
}

/* Partial sums of several passes are added along a tree. In it, those of one pass of all ranks are not neighbours:
 * gradients stay whole until all passes are done. */
int resolve_leaves(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (!cfg->deterministic || cfg->grad_accum_steps == 1 || !cfg->sync_each_batch)
		return 0;
	if (is_given(cfg, FLAG_sync_each_batch))
		return err_set(err, ERR_USAGE, "%s: with --deterministic the gradients of %lld passes stay whole until "
			       "the last one: omit one of the two", label_flag(cfg, FLAG_sync_each_batch, &l),
			       (long long)cfg->grad_accum_steps);
	cfg->sync_each_batch = false;
	mark_derived(cfg, FLAG_sync_each_batch);
	return 0;
}

bool config_split_batch(struct run_config *cfg, int64_t micro)
{
	struct err ignored = ERR_INIT;

	if (!has_tuning_batch(cfg) || is_given(cfg, FLAG_grad_accum_steps) || cfg->strategy == STRATEGY_pdp ||
	    cfg->strategy == STRATEGY_dp || (cfg->deterministic && is_given(cfg, FLAG_sync_each_batch)))
		return false;
	cfg->grad_accum_steps = divide_up(divide_up(cfg->global_batch_size, cfg->world), micro);
	cfg->batch_size = divide_up(divide_up(cfg->global_batch_size, cfg->world), cfg->grad_accum_steps);
	mark_derived(cfg, FLAG_batch_size);
	mark_derived(cfg, FLAG_grad_accum_steps);
	return !resolve_leaves(cfg, &ignored);
}
