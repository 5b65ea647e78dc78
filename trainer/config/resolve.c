/* resolve.c: values that follow from others, and combinations that cannot be meant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/arena.h"
#include "trainer/config/flags.h"
#include "trainer/config/series.h"

struct label {
	char text[300];
};

static const char *say(const struct run_config *cfg, enum flag_id id, struct label *l)
{
	return flag_label(cfg, id, l->text, sizeof(l->text));
}

static void derive(struct run_config *cfg, enum flag_id id)
{
	cfg->origin[id] = ORIGIN_DERIVED;
}

static bool has(const struct run_config *cfg, enum flag_id id)
{
	return flag_known_to(id, cfg->command);
}

static bool given(const struct run_config *cfg, enum flag_id id)
{
	return has(cfg, id) && config_given(cfg, id);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int resolve_precision(struct run_config *cfg, struct err *err)
{
	struct label l, o;
	bool f64;

	if (given(cfg, FLAG_opt_level) && given(cfg, FLAG_precision))
		return err_set(err, ERR_USAGE, "%s and %s contradict: one says it all", say(cfg, FLAG_opt_level, &o),
			       say(cfg, FLAG_precision, &l));
	if (given(cfg, FLAG_opt_level)) {
		cfg->precision = cfg->opt_level == CONFIG_LEVEL_O0 ? CONFIG_PRECISION_FP32 : CONFIG_PRECISION_FP16;
		cfg->origin[FLAG_precision] = cfg->origin[FLAG_opt_level];
	}
	if (!given(cfg, FLAG_precision) && cfg->backend == CONFIG_BACKEND_REF) {
		cfg->precision = CONFIG_PRECISION_FP64;
		derive(cfg, FLAG_precision);
	}
	f64 = cfg->precision == CONFIG_PRECISION_FP64;
	if (f64 && cfg->backend == CONFIG_BACKEND_AUTO) {
		cfg->backend = CONFIG_BACKEND_REF;
		derive(cfg, FLAG_backend);
	}
	if (f64 && cfg->backend == CONFIG_BACKEND_CPU)
		return err_set(err, ERR_USAGE, "%s: only the backends ref and cuda compute in fp64",
			       say(cfg, FLAG_precision, &l));
	if (!f64 && cfg->backend == CONFIG_BACKEND_REF)
		return err_set(err, ERR_USAGE, "%s: the backend ref computes in fp64 only",
			       say(cfg, FLAG_precision, &l));
	return 0;
}

enum strategy_number {
#define BYTES_MAX 1e15
#define NODES_MOST 65536
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

/* The strategy of a run that names none. */
static int usual_strategy(int world)
{
	int best = 0;

	for (int i = 0; i < (int)(sizeof(strategies) / sizeof(strategies[0])); i++)
		if (strategies[i].from && strategies[i].from <= world && strategies[i].from > strategies[best].from)
			best = i;
	return best;
}

static int resolve_strategy(struct run_config *cfg, struct err *err)
{
	const int usual = usual_strategy(cfg->world);
	struct label l;
	int most;

	if (!given(cfg, FLAG_strategy)) {
		cfg->strategy = usual;
		derive(cfg, FLAG_strategy);
	}
	most = strategies[cfg->strategy].most;
	if (most == 1 && cfg->world > 1)
		return err_set(err, ERR_USAGE, "%s %s: needs one rank, but there are %d; use %s",
			       say(cfg, FLAG_strategy, &l), strategies[cfg->strategy].name, cfg->world,
			       strategies[usual].name);
	if (most && cfg->world > most)
		return err_set(err, ERR_USAGE, "%s %s: takes %d ranks at most, but there are %d; use %s",
			       say(cfg, FLAG_strategy, &l), strategies[cfg->strategy].name, most, cfg->world,
			       strategies[usual].name);
	return 0;
}

static int check_stage(const struct run_config *cfg, enum flag_id id, int least, struct err *err)
{
	struct label l;

	if (!given(cfg, id))
		return 0;
	if (cfg->strategy == STRATEGY_pdp && id == FLAG_zero_stage && cfg->zero_stage == 1)
		return 0;
	if (cfg->strategy == STRATEGY_pdp && id == FLAG_zero_stage)
		return err_set(err, ERR_USAGE, "%s %lld: pipelines share out moments alone; --zero-stage 1",
			       say(cfg, id, &l), (long long)cfg->zero_stage);
	if (cfg->strategy != STRATEGY_fsdp)
		return err_set(err, ERR_USAGE, "%s: only --strategy fsdp shares parameters out", say(cfg, id, &l));
	if (cfg->zero_stage < least)
		return err_set(err, ERR_USAGE, "%s: stage %lld of ZeRO has no use for it; --zero-stage %d%s has",
			       say(cfg, id, &l), (long long)cfg->zero_stage, least, least < 3 ? " or 3" : "");
	return 0;
}

static int resolve_sharing(struct run_config *cfg, struct err *err)
{
	static const struct {
		enum flag_id id;
		int least; /* stage */
	} flags[] = {
		{ FLAG_zero_stage, 1 },	     { FLAG_fsdp_unit, 1 },	 { FLAG_reshard_after_forward, 3 },
		{ FLAG_gather_prefetch, 3 }, { FLAG_sync_each_batch, 2 },     { FLAG_shard_degree, 1 },
	};
	struct label l;
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(flags) / sizeof(flags[0]); i++)
		rc = check_stage(cfg, flags[i].id, flags[i].least, err);
	if (!rc && !given(cfg, FLAG_shard_degree)) {
		cfg->shard_degree = cfg->world;
		derive(cfg, FLAG_shard_degree);
	}
	if (!rc && cfg->world % cfg->shard_degree)
		return err_set(err, ERR_USAGE, "%s %lld: %d ranks are no multiple of it",
			       say(cfg, FLAG_shard_degree, &l), (long long)cfg->shard_degree, cfg->world);
	if (!rc && !given(cfg, FLAG_sync_each_batch)) {
		cfg->sync_each_batch = cfg->strategy == STRATEGY_fsdp && cfg->zero_stage >= 2;
		derive(cfg, FLAG_sync_each_batch);
	}
	return rc;
}

/* What is offloaded, and where to. */
static int check_offload(const struct run_config *cfg, struct err *err)
{
	const bool shares = cfg->strategy == STRATEGY_fsdp ||
			    (cfg->strategy == STRATEGY_pdp && given(cfg, FLAG_zero_stage));
	struct label l;

	if (cfg->offload_dir && !cfg->activation_offload && !cfg->param_offload && !cfg->optim_offload)
		return err_set(err, ERR_USAGE, "%s: nothing is offloaded; --activation-offload, --param-offload or "
			       "--optim-offload says what", say(cfg, FLAG_offload_dir, &l));
	if (cfg->param_offload && cfg->world > 1 && shares && cfg->zero_stage < 3)
		return err_set(err, ERR_USAGE, "%s: stage %lld of ZeRO keeps whole parameters for the step; "
			       "--strategy fsdp --zero-stage 3 does not", say(cfg, FLAG_param_offload, &l),
			       (long long)cfg->zero_stage);
	return 0;
}

int64_t config_stages(const struct run_config *cfg)
{
	return cfg->strategy == STRATEGY_pdp && cfg->pp_stages > 0 ? cfg->pp_stages : 1;
}

/* The batch is known too. */
static int check_devices(const struct run_config *cfg, struct err *err)
{
	struct label l;

	if (cfg->strategy != STRATEGY_dp)
		return given(cfg, FLAG_dp_devices) ? err_set(err, ERR_USAGE, "%s: only --strategy dp has devices in "
							     "one process", say(cfg, FLAG_dp_devices, &l)) : 0;
	if (cfg->dp_devices > cfg->batch_size)
		return err_set(err, ERR_USAGE, "%s %lld: the batch has %lld samples", say(cfg, FLAG_dp_devices, &l),
			       (long long)cfg->dp_devices, (long long)cfg->batch_size);
	if (cfg->grad_accum_steps > 1)
		return err_set(err, ERR_USAGE, "%s %lld: --strategy dp makes one pass a step, cut up for its devices",
			       say(cfg, FLAG_grad_accum_steps, &l), (long long)cfg->grad_accum_steps);
	if (cfg->sync_bn)
		return err_set(err, ERR_USAGE, "%s: devices of dp have no batch norm in common; leave it away",
			       say(cfg, FLAG_sync_bn, &l));
	return 0;
}

static int check_pipeline(const struct run_config *cfg, struct err *err)
{
	static const enum flag_id flags[] = { FLAG_pp_stages, FLAG_pp_schedule, FLAG_pp_partition, FLAG_microbatches };
	struct label l;

	for (size_t i = 0; cfg->strategy != STRATEGY_pdp && i < sizeof(flags) / sizeof(flags[0]); i++)
		if (given(cfg, flags[i]))
			return err_set(err, ERR_USAGE, "%s: only --strategy pdp has pipelines", say(cfg, flags[i], &l));
	return 0;
}

/* The batch is known too. */
static int resolve_pipeline(struct run_config *cfg, struct err *err)
{
	int64_t samples;
	struct label l;

	if (cfg->strategy != STRATEGY_pdp)
		return check_pipeline(cfg, err);
	if (!given(cfg, FLAG_pp_stages)) {
		cfg->pp_stages = cfg->world;
		derive(cfg, FLAG_pp_stages);
	}
	if (cfg->pp_stages > 64 || cfg->world % cfg->pp_stages)
		return err_set(err, ERR_USAGE, "%s %lld: %d ranks are no multiple of it, or it is above 64",
			       say(cfg, FLAG_pp_stages, &l), (long long)cfg->pp_stages, cfg->world);
	samples = cfg->batch_size * cfg->pp_stages;
	if (!given(cfg, FLAG_microbatches)) {
		cfg->microbatches = 4 * cfg->pp_stages < samples ? 4 * cfg->pp_stages : samples;
		derive(cfg, FLAG_microbatches);
	}
	if (cfg->microbatches > samples)
		return err_set(err, ERR_USAGE,
			       "%s %lld: a pipeline has %lld samples a step (%lld stages x --batch-size)",
			       say(cfg, FLAG_microbatches, &l), (long long)cfg->microbatches, (long long)samples,
			       (long long)cfg->pp_stages);
	if (cfg->grad_accum_steps > 1)
		return err_set(err, ERR_USAGE, "%s %lld: --strategy pdp makes its passes by --microbatches",
			       say(cfg, FLAG_grad_accum_steps, &l), (long long)cfg->grad_accum_steps);
	if (cfg->sync_bn)
		return err_set(err, ERR_USAGE, "%s: stages have no batch norm in common; leave it away with pdp",
			       say(cfg, FLAG_sync_bn, &l));
	return 0;
}

/* The global batch is known: what a rank does of it, in how many passes. */
static int split_global(struct run_config *cfg, struct err *err)
{
	int64_t part = ceil_div(cfg->global_batch_size, cfg->world); /* of the rank that gets most */
	struct label l;

	if (!given(cfg, FLAG_batch_size)) {
		cfg->batch_size = ceil_div(part, cfg->grad_accum_steps);
		derive(cfg, FLAG_batch_size);
		if (ceil_div(part, cfg->batch_size) != cfg->grad_accum_steps)
			return err_set(err, ERR_USAGE,
				       "%s %lld: the %lld samples of a rank cannot be split so; %lld passes of %lld "
				       "would do", say(cfg, FLAG_grad_accum_steps, &l),
					       (long long)cfg->grad_accum_steps,
				       (long long)part, (long long)ceil_div(part, cfg->batch_size),
				       (long long)cfg->batch_size);
		return 0;
	}
	if (!given(cfg, FLAG_grad_accum_steps)) {
		cfg->grad_accum_steps = ceil_div(part, cfg->batch_size);
		derive(cfg, FLAG_grad_accum_steps);
		return 0;
	}
	if (ceil_div(part, cfg->batch_size) != cfg->grad_accum_steps)
		return err_set(err, ERR_USAGE,
			       "%s %lld contradicts batch size %lld x %lld passes x %d ranks; leave one of the three "
			       "away", say(cfg, FLAG_global_batch_size, &l), (long long)cfg->global_batch_size,
			       (long long)cfg->batch_size, (long long)cfg->grad_accum_steps, cfg->world);
	return 0;
}

/* Fewer ranks than before make the same global batch in more passes. */
static void keep_batch(struct run_config *cfg, const struct run_config *before)
{
	cfg->global_batch_size = before->global_batch_size;
	cfg->batch_size = before->batch_size;
	cfg->grad_accum_steps = ceil_div(ceil_div(cfg->global_batch_size, cfg->world), cfg->batch_size);
	derive(cfg, FLAG_global_batch_size);
	derive(cfg, FLAG_batch_size);
	derive(cfg, FLAG_grad_accum_steps);
}

static int resolve_batch(struct run_config *cfg, const struct config_world *w, struct err *err)
{
	const double most = flag_get(FLAG_global_batch_size)->greatest;
	const int64_t from_file = w->batch_from_samples;
	struct label l;

	if (w->before) {
		keep_batch(cfg, w->before);
		return 0;
	}
	if (from_file && given(cfg, FLAG_global_batch_size) && cfg->global_batch_size != from_file)
		return err_set(err, ERR_USAGE, "%s %lld: the batch of %.200s has %lld samples",
			       say(cfg, FLAG_global_batch_size, &l), (long long)cfg->global_batch_size, cfg->batch_from,
			       (long long)from_file);
	if (from_file && !given(cfg, FLAG_global_batch_size)) {
		cfg->global_batch_size = from_file;
		derive(cfg, FLAG_global_batch_size);
	}
	if (given(cfg, FLAG_global_batch_size) || from_file)
		return split_global(cfg, err);
	if ((double)cfg->batch_size * (double)cfg->grad_accum_steps * cfg->world > most)
		return err_set(err, ERR_USAGE, "%s %lld: a global batch of more than %.0f samples",
			       say(cfg, FLAG_batch_size, &l), (long long)cfg->batch_size, most);
	cfg->global_batch_size = cfg->batch_size * cfg->grad_accum_steps * cfg->world;
	derive(cfg, FLAG_global_batch_size);
	return 0;
}

/* Leaves of several passes are added along a tree, in which those of one pass of all ranks are no neighbours: gradients
 * stay whole until all are there. */
static int resolve_leaves(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (!cfg->deterministic || cfg->grad_accum_steps == 1 || !cfg->sync_each_batch)
		return 0;
	if (given(cfg, FLAG_sync_each_batch))
		return err_set(err, ERR_USAGE, "%s: with --deterministic the gradients of %lld passes stay whole until "
			       "the last; leave one of the two away", say(cfg, FLAG_sync_each_batch, &l),
			       (long long)cfg->grad_accum_steps);
	cfg->sync_each_batch = false;
	derive(cfg, FLAG_sync_each_batch);
	return 0;
}

static int resolve_data(struct run_config *cfg, struct err *err)
{
	static const enum flag_id sources[] = { FLAG_data_path, FLAG_synthetic, FLAG_batch_from };
	const bool used[] = { cfg->data_path, cfg->synthetic, cfg->batch_from };
	struct label a, b;
	int first = -1;

	for (int i = 0; i < 3; i++) {
		if (!used[i])
			continue;
		if (first >= 0)
			return err_set(err, ERR_USAGE, "%s and %s contradict: one source of data",
				       say(cfg, sources[first], &a), say(cfg, sources[i], &b));
		first = i;
	}
	if (first < 0 && (cfg->command == COMMAND_TRAIN || cfg->command == COMMAND_DOCTOR ||
			  cfg->command == COMMAND_FIND) && cfg->dump == CONFIG_DUMP_NONE)
		return err_set(err, ERR_USAGE, "--data-path DIR is needed (or --synthetic, or --batch-from FILE)");
	if (cfg->test_only && cfg->synthetic)
		return err_set(err, ERR_USAGE, "%s and %s contradict: random inputs have no evaluation",
			       say(cfg, FLAG_test_only, &a), say(cfg, FLAG_synthetic, &b));
	if (cfg->augment && cfg->batch_from)
		return err_set(err, ERR_USAGE, "%s and %s contradict: the batch is used as it is",
			       say(cfg, FLAG_augment, &a), say(cfg, FLAG_batch_from, &b));
	return 0;
}

/* What says something to a loader alone would be silently without meaning where steps are timed on random inputs. */
static int check_bench(const struct run_config *cfg, struct err *err)
{
	static const enum flag_id of_loader[] = {
		FLAG_data_path, FLAG_val_path,	    FLAG_image_field,  FLAG_label_field, FLAG_tokenizer,
		FLAG_shuffle,	FLAG_shuffle_window, FLAG_pack,	       FLAG_mix,	 FLAG_epoch_samples,
		FLAG_augment,	FLAG_val_split,	    FLAG_strict,       FLAG_read_ahead,	 FLAG_cache,
		FLAG_cache_size, FLAG_cache_decoded, FLAG_data_timeout, FLAG_max_broken, FLAG_epochs,
		FLAG_eval_transform, FLAG_eval_resize, FLAG_undecoded,  FLAG_take
	};
	struct label l;

	for (size_t i = 0; !cfg->loader && i < sizeof(of_loader) / sizeof(*of_loader); i++)
		if (cfg->origin[of_loader[i]] == ORIGIN_FLAG)
			return err_set(err, ERR_USAGE,
				       "%s: goes with --loader; without it steps are timed on random inputs",
				       say(cfg, of_loader[i], &l));
	return 0;
}

static int resolve_length(struct run_config *cfg, struct err *err)
{
	bool endless = cfg->synthetic || cfg->batch_from;
	struct label l;

	if (endless && cfg->eval_steps)
		return err_set(err, ERR_USAGE, "%s: the data has no evaluation set", say(cfg, FLAG_eval_steps, &l));

	if (endless && given(cfg, FLAG_epochs))
		return err_set(err, ERR_USAGE, "%s: the data has no epochs; use --max-steps",
			       say(cfg, FLAG_epochs, &l));
	if (endless && !cfg->max_steps && !cfg->test_only && cfg->command == COMMAND_TRAIN &&
	    cfg->dump == CONFIG_DUMP_NONE)
		return err_set(err, ERR_USAGE, "%s is endless: --max-steps N is needed",
			       say(cfg, cfg->synthetic ? FLAG_synthetic : FLAG_batch_from, &l));
	if (endless || (cfg->max_steps && !given(cfg, FLAG_epochs))) {
		cfg->epochs = 0;
		derive(cfg, FLAG_epochs);
	}
	return 0;
}

enum { MOMENTUM = 1, NESTEROV = 2, BETAS = 4, TRUST = 8 }; /* what an optimiser takes */

static const struct optimizer {
	const char *name;
	unsigned takes;
	double lr, wd, beta1, beta2, eps;
} optimizers[] = {
#define OPTIMIZER(name, takes, ...) { #name, takes, __VA_ARGS__ },
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
};

#define FIND_LR 10 /* the highest rate that `dptrain find lr` tries */

static void fill_in(struct run_config *cfg, enum flag_id id, double *value, double fallback)
{
	if (config_given(cfg, id))
		return;
	*value = fallback;
	derive(cfg, id);
}

static int only_others(const struct run_config *cfg, enum flag_id id, unsigned what, struct err *err)
{
	char names[160] = "";
	struct label l;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]) && n < sizeof(names); i++)
		if (optimizers[i].takes & what)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", optimizers[i].name);
	return err_set(err, ERR_USAGE, "%s: only --opt %s has %s", say(cfg, id, &l), names,
		       what == NESTEROV ? "it" : "one");
}

/* A flag that the optimiser does not have. */
static int check_opt_flags(const struct run_config *cfg, const struct optimizer *o, struct err *err)
{
	static const struct {
		unsigned what;
		enum flag_id id;
	} flags[] = {
		{ MOMENTUM, FLAG_momentum }, { MOMENTUM, FLAG_nesterov }, { BETAS, FLAG_beta1 },
		{ BETAS, FLAG_beta2 },	     { BETAS, FLAG_eps },
	};
	struct label l;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!(o->takes & flags[i].what) && given(cfg, flags[i].id))
			return err_set(err, ERR_USAGE, "%s: --opt %s has none", say(cfg, flags[i].id, &l), o->name);
	if (given(cfg, FLAG_nesterov) && cfg->nesterov && !(o->takes & NESTEROV))
		return only_others(cfg, FLAG_nesterov, NESTEROV, err);
	if (given(cfg, FLAG_trust_coef) && !(o->takes & TRUST))
		return only_others(cfg, FLAG_trust_coef, TRUST, err);
	return 0;
}

static int resolve_optimiser(struct run_config *cfg, struct err *err)
{
	bool falls = cfg->lr_scheduler != CONFIG_LR_CONSTANT && cfg->lr_scheduler != CONFIG_LR_STEP;
	const struct optimizer *d = &optimizers[cfg->opt];
	struct label l;
	int rc = check_opt_flags(cfg, d, err);

	if (rc)
		return rc;
	fill_in(cfg, FLAG_lr, &cfg->lr, config_finds(cfg, "lr") ? FIND_LR : d->lr);
	fill_in(cfg, FLAG_wd, &cfg->wd, d->wd);
	if (d->takes & BETAS) {
		fill_in(cfg, FLAG_beta1, &cfg->beta1, d->beta1);
		fill_in(cfg, FLAG_beta2, &cfg->beta2, d->beta2);
		fill_in(cfg, FLAG_eps, &cfg->eps, d->eps);
	}
	if (cfg->nesterov && cfg->momentum == 0)
		return err_set(err, ERR_USAGE, "%s needs a --momentum above 0", say(cfg, FLAG_nesterov, &l));
	if (cfg->warmup_steps > 0 && cfg->lr_warmup_epochs > 0)
		return err_set(err, ERR_USAGE,
			       "%s: the warm-up is already --lr-warmup-epochs %g long; give one of them",
			       say(cfg, FLAG_warmup_steps, &l), cfg->lr_warmup_epochs);
	if (has(cfg, FLAG_min_lr) && falls && cfg->min_lr > cfg->lr)
		return err_set(err, ERR_USAGE, "%s %g is above --lr %g", say(cfg, FLAG_min_lr, &l), cfg->min_lr,
			       cfg->lr);
	return 0;
}

static void resolve_threads(struct run_config *cfg)
{
	if (given(cfg, FLAG_threads))
		return;
	cfg->threads = config_cores(cfg);
	derive(cfg, FLAG_threads);
}

static int resolve_weights(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (cfg->reset_head && !cfg->init_from)
		return err_set(err, ERR_USAGE, "%s: there are no weights to take the rest from; add --init-from FILE",
			       say(cfg, FLAG_reset_head, &l));
	return 0;
}

static int no_such_series(struct run_config *cfg, struct err *err)
{
	const char *keys[SERIES_COUNT], *near;
	struct label l;
	size_t n = 0;

	for (int i = 0; i < SERIES_COUNT; i++)
		if (series_get((enum series_id)i)->best != SERIES_BEST_NONE)
			keys[n++] = series_get((enum series_id)i)->key;
	near = config_nearest(cfg->save_best, keys, n);
	return err_set(err, ERR_USAGE, "%s %.60s: no series to choose by; %s%s%s", say(cfg, FLAG_save_best, &l),
		       cfg->save_best, near ? "did you mean " : "epoch/val_loss is one", near ? near : "",
		       near ? "?" : "");
}

static int resolve_checkpoints(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (cfg->save_best && !series_best(cfg->save_best))
		return no_such_series(cfg, err);
	if (cfg->resume && !strcmp(cfg->resume, "auto") && !cfg->run_name)
		return err_set(err, ERR_USAGE, "%s: needs the run's name; add --run-name NAME",
			       say(cfg, FLAG_resume, &l));
	return 0;
}

static int resolve_report(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (!cfg->report_to)
		return 0;
	if (!strcmp(cfg->report_to, "none"))
		return 0;
	if (strncmp(cfg->report_to, "http://", 7) && strncmp(cfg->report_to, "https://", 8))
		return err_set(err, ERR_USAGE, "%s '%.100s': must be an http:// or https:// address, or none",
			       say(cfg, FLAG_report_to, &l), cfg->report_to);
	return 0;
}

/* "3:7", or "7" alone: from 1 on, the second not below the first. */
static bool read_range(const char *text, int64_t *ret_first, int64_t *ret_last)
{
	char *end;
	long long first = strtoll(text, &end, 10), last = first;
	bool good = end != text && first > 0;

	if (good && *end == ':') {
		const char *second = end + 1;

		last = strtoll(second, &end, 10);
		good = end != second && last >= first;
	}
	if (!good || *end)
		return false;
	*ret_first = first;
	*ret_last = last;
	return true;
}

bool config_trace_steps(const struct run_config *cfg, int64_t *ret_first, int64_t *ret_last)
{
	return read_range(cfg->trace_steps ? cfg->trace_steps : "", ret_first, ret_last);
}

bool config_nodes(const struct run_config *cfg, int *ret_least, int *ret_all)
{
	int64_t least, all;

	if (!read_range(cfg->nnodes ? cfg->nnodes : "1", &least, &all) || all > NODES_MOST)
		return false;
	*ret_least = (int)least;
	*ret_all = (int)all;
	return true;
}

static int resolve_trace(struct run_config *cfg, struct err *err)
{
	int64_t first, last;
	struct label l;

	if (!cfg->trace_steps)
		return 0;
	if (config_trace_steps(cfg, &first, &last))
		return !cfg->max_steps || first <= cfg->max_steps ? 0 :
		       err_set(err, ERR_USAGE, "%s %.60s: the run ends behind step %lld (--max-steps), before any of "
			       "them", say(cfg, FLAG_trace_steps, &l), cfg->trace_steps, (long long)cfg->max_steps);
	return err_set(err, ERR_USAGE, "%s %.60s: steps are needed, as in 10:13 (both are traced)",
		       say(cfg, FLAG_trace_steps, &l), cfg->trace_steps);
}

static int check_link(const struct run_config *cfg, struct err *err)
{
	double latency_s, bytes_per_s;

	if (given(cfg, FLAG_link) && cfg->backend == CONFIG_BACKEND_CUDA)
		return err_set(err, ERR_USAGE, "--link holds back collectives between hosts' memories, not a GPU's: "
			       "use --backend cpu");
	return config_link(cfg, &latency_s, &bytes_per_s, err);
}

static int resolve_doctor(struct run_config *cfg, struct err *err)
{
	if (given(cfg, FLAG_experiment))
		return 0;
	return config_put(cfg, FLAG_experiment, "doctor", "doctor", err);
}

#define FIND_STEPS "100" /* of `dptrain find` */
#define FIND_STEPS_LEAST 20
#define FIND_STEPS_MOST 1000

static int refuse_given(const struct run_config *cfg, const enum flag_id *flags, size_t n, const char *why,
			struct err *err)
{
	struct label l;

	for (size_t i = 0; i < n; i++)
		if (given(cfg, flags[i]))
			return err_set(err, ERR_USAGE, "%s: dptrain find %s: leave it away", say(cfg, flags[i], &l),
				       why);
	return 0;
}

/* What such a run cannot have. */
static int check_find(const struct run_config *cfg, struct err *err)
{
	static const enum flag_id any[] = { FLAG_resume, FLAG_test_only, FLAG_eval_steps, FLAG_epochs };
	static const enum flag_id lr[] = { FLAG_min_lr, FLAG_lr_scheduler, FLAG_warmup_steps, FLAG_lr_warmup_epochs };
	static const enum flag_id batch[] = { FLAG_global_batch_size, FLAG_grad_accum_steps, FLAG_batch_from };
	int rc;

	if (!config_finds(cfg, "lr") && !config_finds(cfg, "batch"))
		return err_set(err, ERR_USAGE, "dptrain find %.60s%slr and batch are what can be found: dptrain find "
			       "lr --data-path DIR", cfg->word ? cfg->word : "", cfg->word ? ": " : "");
	rc = refuse_given(cfg, any, sizeof(any) / sizeof(*any), "makes runs from step 1, without evaluation", err);
	if (!rc && config_finds(cfg, "lr"))
		return refuse_given(cfg, lr, sizeof(lr) / sizeof(*lr), "lr sets the rate itself", err);
	return rc ? rc : refuse_given(cfg, batch, sizeof(batch) / sizeof(*batch), "batch sets the batch itself", err);
}

/* Two batch sizes tell the noise: those of several ranks, else of two micro-batches. */
static int resolve_noise(struct run_config *cfg, struct err *err)
{
	int rc = given(cfg, FLAG_watch_steps) ? 0 : config_put(cfg, FLAG_watch_steps, "find", "2", err);

	return rc || cfg->world > 1 ? rc : config_put(cfg, FLAG_grad_accum_steps, "find", "2", err);
}

static int resolve_find(struct run_config *cfg, struct err *err)
{
	struct label l;
	int rc = check_find(cfg, err);

	if (!rc && !given(cfg, FLAG_experiment))
		rc = config_put(cfg, FLAG_experiment, "find", "find", err);
	if (!rc && !given(cfg, FLAG_max_steps))
		rc = config_put(cfg, FLAG_max_steps, "find", FIND_STEPS, err);
	if (!rc && config_finds(cfg, "batch"))
		rc = resolve_noise(cfg, err);
	if (rc)
		return rc;
	if (given(cfg, FLAG_lr) && !(cfg->lr > 0))
		return err_set(err, ERR_USAGE, "%s 0: the highest rate to try must be above 0", say(cfg, FLAG_lr, &l));
	if (cfg->max_steps < FIND_STEPS_LEAST || cfg->max_steps > FIND_STEPS_MOST)
		return err_set(err, ERR_USAGE, "%s %lld: dptrain find takes %d to %d steps",
			       say(cfg, FLAG_max_steps, &l), (long long)cfg->max_steps, FIND_STEPS_LEAST,
			       FIND_STEPS_MOST);
	return 0;
}

int config_resolve(struct run_config *cfg, const struct config_world *w, struct err *err)
{
	int rc = 0;

	cfg->world = w->world < 1 ? 1 : w->world;
	cfg->local_world = w->local_world < 1 ? cfg->world : w->local_world;
	if (cfg->command == COMMAND_BACKENDS || cfg->command == COMMAND_TOKENIZE || cfg->command == COMMAND_SHARD ||
	    cfg->command == COMMAND_SWEEP)
		return 0;
	if (cfg->command == COMMAND_FIND)
		rc = resolve_find(cfg, err);
	if (!rc)
		rc = resolve_precision(cfg, err);
	if (cfg->command == COMMAND_SAMPLE) { /* one rank, no batches */
		resolve_threads(cfg);
		return rc;
	}
	if (!rc)
		rc = resolve_strategy(cfg, err);
	if (!rc)
		rc = resolve_sharing(cfg, err);
	if (!rc)
		rc = check_offload(cfg, err);
	if (!rc)
		rc = resolve_batch(cfg, w, err);
	if (!rc)
		rc = resolve_leaves(cfg, err);
	if (!rc)
		rc = resolve_pipeline(cfg, err);
	if (!rc)
		rc = check_devices(cfg, err);
	if (!rc && has(cfg, FLAG_data_path))
		rc = resolve_data(cfg, err);
	if (!rc && cfg->command == COMMAND_BENCH)
		rc = check_bench(cfg, err);
	if (!rc && has(cfg, FLAG_max_steps))
		rc = resolve_length(cfg, err);
	if (!rc)
		rc = resolve_optimiser(cfg, err);
	if (!rc && has(cfg, FLAG_report_to))
		rc = resolve_report(cfg, err);
	if (!rc && has(cfg, FLAG_resume))
		rc = resolve_checkpoints(cfg, err);
	if (!rc && has(cfg, FLAG_reset_head))
		rc = resolve_weights(cfg, err);
	if (!rc && has(cfg, FLAG_trace_steps))
		rc = resolve_trace(cfg, err);
	if (!rc)
		rc = check_link(cfg, err);
	if (!rc && cfg->command == COMMAND_DOCTOR)
		rc = resolve_doctor(cfg, err);
	if (!rc)
		resolve_threads(cfg);
	return rc;
}

const char *config_label(const struct run_config *cfg, enum flag_id id, char *ret, size_t n)
{
	return flag_label(cfg, id, ret, n);
}

int config_bytes(const struct run_config *cfg, enum flag_id id, const char *text, uint64_t *ret, struct err *err)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1 },	 { "B", 1 },	     { "k", 1e3 },     { "kB", 1e3 },	{ "KiB", 1024 },
		      { "M", 1e6 },	 { "MB", 1e6 },	     { "MiB", 1 << 20 }, { "G", 1e9 },	{ "GB", 1e9 },
		      { "GiB", 1 << 30 },
		      { "T", 1e12 },	 { "TB", 1e12 },     { "TiB", (double)((uint64_t)1 << 40) } };
	char label[200], *end;
	double v = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
		if (!strcasecmp(end, units[i].unit) && v * units[i].factor >= 1 &&
		    v * units[i].factor <= BYTES_MAX) {
			*ret = (uint64_t)(v * units[i].factor);
			return 0;
		}
	return err_set(err, ERR_USAGE, "%s %.60s: must be a number of bytes, such as 256MiB or 1G",
		       config_label(cfg, id, label, sizeof(label)), text);
}

int config_settle(struct run_config *cfg, enum flag_id id, int64_t value, const char *source, struct err *err)
{
	int64_t *at = (int64_t *)((char *)cfg + flag_get(id)->offset);
	struct label l;

	if (config_given(cfg, id) && *at != value)
		return err_set(err, ERR_USAGE, "%s %lld contradicts %.200s, which has %lld", say(cfg, id, &l),
			       (long long)*at, source, (long long)value);
	if (config_given(cfg, id))
		return 0;
	*at = value;
	derive(cfg, id);
	return 0;
}

int config_put(struct run_config *cfg, enum flag_id id, const char *label, const char *text, struct err *err)
{
	int rc = flag_store(cfg, id, label, text, err);

	if (!rc)
		derive(cfg, id);
	return rc;
}
