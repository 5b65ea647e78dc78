/* SPDX-License-Identifier: Apache-2.0 */
/* train_schedule.c: samplers and numbers of steps. */
#include "trainer/program/workload.h"

#include <string.h>

#include "tracker/base/round.h"
#include "trainer/program/rank.h"

static bool has_evaluation(const struct run_config *cfg, const struct dataset *d)
{
	if (!d->n_samples[SPLIT_VAL] || cfg->command == COMMAND_BENCH || cfg->command == COMMAND_FIND)
		return false;
	return !d->endless || cfg->test_only || cfg->save_outputs;
}

static bool saves_checkpoints(const struct run_config *cfg)
{
	bool none = config_given(cfg, FLAG_save_total_limit) && !cfg->save_total_limit;

	if (cfg->command == COMMAND_DOCTOR) /* its weights are discarded */
		return cfg->save_steps && !none;
	return cfg->command != COMMAND_BENCH && cfg->command != COMMAND_FIND && !cfg->test_only && !none;
}

static enum sampler_order choose_sampler_order(const struct run_config *cfg, const struct dataset *d)
{
	static const enum sampler_order orders[] = { [CONFIG_SHUFFLE_GLOBAL] = SAMPLER_GLOBAL,
						     [CONFIG_SHUFFLE_WINDOW] = SAMPLER_WINDOW,
						     [CONFIG_SHUFFLE_TABLE] = SAMPLER_TABLE,
						     [CONFIG_SHUFFLE_NONE] = SAMPLER_NATURAL };

	return d->part ? SAMPLER_MIX : orders[cfg->shuffle];
}

/* Returns the samples of one leaf of the reduction tree: a batch, or each part into which the strategy cuts it. */
static int64_t leaf_samples(const struct run_config *cfg)
{
	const struct strategy *s = strategies_table[cfg->strategy];
	const struct strategy_opts o = { .devices = (int)cfg->dp_devices, .micros = (int)cfg->microbatches };
	const int64_t batch = cfg->batch_size * config_stages(cfg);

	return s->micro ? s->micro(&o, batch) : batch;
}

int train_schedule_make(struct train_schedule *ret, const struct run_config *cfg, const struct dataset *d,
			struct err *err)
{
	const struct dataset_page_window *pages = &d->page_window;
	struct train_schedule c = { .evaluates = has_evaluation(cfg, d), .saves = saves_checkpoints(cfg) };
	int rc;

	c.train = (struct sampler){ .n_samples = d->part ? d->epoch_samples : d->n_samples[SPLIT_TRAIN],
				    .global_batch = cfg->global_batch_size,
				    .micro = cfg->batch_size * config_stages(cfg),
				    .leaf = cfg->deterministic ? leaf_samples(cfg) : 0,
				    .world = rank_parts(cfg),
				    .seed = (uint64_t)cfg->seed,
				    .order = choose_sampler_order(cfg, d),
				    .window = pages->lanes ? min_int64(cfg->shuffle_window, pages->samples)
							   : cfg->shuffle_window,
				    .lanes = pages->lanes,
				    .piece = d->piece[SPLIT_TRAIN],
				    .n_pieces = d->n_pieces[SPLIT_TRAIN],
				    .part = d->part,
				    .n_parts = d->n_parts,
				    .repeats = cfg->ra_sampler ? cfg->ra_reps : 0,
				    .endless = d->endless,
				    .drop_last = cfg->drop_last };
	c.eval = (struct sampler){ .n_samples = d->n_samples[SPLIT_VAL],
				   .global_batch = cfg->batch_size * cfg->world,
				   .micro = cfg->batch_size * config_stages(cfg),
				   .world = rank_parts(cfg) };
	c.steps_per_epoch = cfg->test_only ? 1 : sampler_steps(&c.train);
	c.lr = lr_schedule_make(cfg, c.steps_per_epoch);
	c.steps_total = lr_schedule_steps_total(cfg, c.steps_per_epoch);
	c.steps_end = c.steps_total;
	if (cfg->stop_epoch && c.steps_per_epoch <= INT64_MAX / cfg->stop_epoch &&
	    cfg->stop_epoch * c.steps_per_epoch < c.steps_total)
		c.steps_end = cfg->stop_epoch * c.steps_per_epoch;
	rc = lr_schedule_check(cfg, c.steps_per_epoch, err);
	if (!rc)
		*ret = c;
	return rc;
}

int train_schedule_check_best(const struct train_schedule *c, const struct run_config *cfg, const struct dataset *d,
			      struct err *err)
{
	const char *series = cfg->save_best;

	if (!series || !strcmp(series, "epoch/train_loss"))
		return 0;
	if (!c->evaluates)
		return err_set(err, ERR_USAGE, "--save-best %s: %.200s has no samples to evaluate", series, d->path);
	if (strstr(series, d->kind == SAMPLE_TOKENS ? "/top" : "/perplexity"))
		return err_set(err, ERR_USAGE, "--save-best %s: not a series of a model of %s: use epoch/val_loss",
			       series, d->kind == SAMPLE_TOKENS ? "tokens" : "images");
	if (!strcmp(series, "epoch/top5") && d->classes <= 5)
		return err_set(err, ERR_USAGE, "--save-best epoch/top5: always 100 %% with %d classes: use epoch/top1",
			       d->classes);
	if (!strncmp(series, "val/", 4) && !cfg->eval_steps)
		return err_set(err, ERR_USAGE, "--save-best %s: is recorded every --eval-steps only: add --eval-steps "
			       "N, or use epoch/val_loss", series);
	return 0;
}

int64_t train_schedule_sample(const struct train_schedule *c, int64_t epoch, int64_t position)
{
	struct order order;
	int64_t number;

	order_init(&order, &c->train);
	order_make(&order, &c->train, epoch);
	number = order_at(&order, &c->train, position);
	order_done(&order);
	return number;
}
