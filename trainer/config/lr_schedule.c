/* SPDX-License-Identifier: Apache-2.0 */
/* lr_schedule.c: the learning rate of a step. */
#include "trainer/config/lr_schedule.h"

#include <math.h>

#define PI 3.14159265358979323846

int64_t lr_schedule_steps_total(const struct run_config *cfg, int64_t steps_per_epoch)
{
	int64_t total = INT64_MAX;

	if (cfg->command == COMMAND_BENCH)
		return cfg->steps;
	if (cfg->epochs && steps_per_epoch <= INT64_MAX / cfg->epochs)
		total = cfg->epochs * steps_per_epoch;
	return cfg->max_steps && cfg->max_steps < total ? cfg->max_steps : total;
}

int lr_schedule_check(const struct run_config *cfg, int64_t steps_per_epoch, struct err *err)
{
	if (steps_per_epoch != INT64_MAX || cfg->command == COMMAND_BENCH)
		return 0;
	if (cfg->lr_warmup_epochs > 0)
		return err_set(err, ERR_USAGE,
			       "--lr-warmup-epochs %g: these inputs have no epochs: use --warmup-steps N",
			       cfg->lr_warmup_epochs);
	if (cfg->lr_scheduler == CONFIG_LR_STEP)
		return err_set(err, ERR_USAGE,
			       "--lr-scheduler step: decays every %g epochs, but these inputs have none: use another",
			       cfg->lr_step_size);
	return 0;
}

struct lr_schedule lr_schedule_make(const struct run_config *cfg, int64_t steps_per_epoch)
{
	struct lr_schedule s = { .kind = (enum config_lr_scheduler)cfg->lr_scheduler,
				 .lr = cfg->lr,
				 .min_lr = cfg->min_lr,
				 .gamma = cfg->lr_gamma,
				 .power = cfg->lr_power,
				 .steps_total = lr_schedule_steps_total(cfg, steps_per_epoch),
				 .step_every = cfg->lr_step_size * (double)steps_per_epoch };
	double warmup = nearbyint(cfg->lr_warmup_epochs * (double)steps_per_epoch);

	if (cfg->warmup_steps > 0)
		s.steps_warmup = cfg->warmup_steps;
	else if (steps_per_epoch != INT64_MAX)
		s.steps_warmup = warmup < 9e18 ? (int64_t)warmup : INT64_MAX;
	if (cfg->command == COMMAND_BENCH)
		s.kind = CONFIG_LR_CONSTANT;
	if (s.kind == CONFIG_LR_WSD)
		s.steps_decay = (int64_t)nearbyint(cfg->decay_fraction * (double)s.steps_total);
	if (config_finds(cfg, "lr"))
		s.range = LR_SCHEDULE_RANGE;
	return s;
}

/* Returns the part of the decay of `wsd` that precedes a step. */
static double wsd_progress(const struct lr_schedule *s, int64_t step)
{
	const int64_t most = s->steps_total - s->steps_warmup, n = s->steps_decay < most ? s->steps_decay : most;
	const int64_t at = step - 1 - (s->steps_total - n);

	return n <= 0 || at <= 0 ? 0 : at < n ? (double)at / (double)n : 1;
}

double lr_schedule_at(const struct lr_schedule *s, int64_t step)
{
	double at = (double)(step - 1 - s->steps_warmup);
	double p = at / (double)(s->steps_total - s->steps_warmup);

	if (s->range > 0)
		return s->lr * pow(s->range, (double)step / (double)s->steps_total - 1);
	if (at < 0)
		return s->lr * (double)step / ((double)s->steps_warmup + 1);
	if (s->steps_total <= s->steps_warmup)
		p = 0;
	if (p > 1)
		p = 1;
	switch (s->kind) {
	case CONFIG_LR_COSINE:
		return s->min_lr + (s->lr - s->min_lr) * 0.5 * (1 + cos(PI * p));
	case CONFIG_LR_STEP:
		return s->lr * pow(s->gamma, floor(at / s->step_every));
	case CONFIG_LR_LINEAR:
		return s->min_lr + (s->lr - s->min_lr) * (1 - p);
	case CONFIG_LR_POLYNOMIAL:
		return s->min_lr + (s->lr - s->min_lr) * pow(1 - p, s->power);
	case CONFIG_LR_WSD:
		return s->min_lr + (s->lr - s->min_lr) * (1 - wsd_progress(s, step));
	case CONFIG_LR_CONSTANT:
		break;
	}
	return s->lr;
}
