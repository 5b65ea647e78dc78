/* SPDX-License-Identifier: Apache-2.0 */
/* lr_schedule.h: the learning rate as a pure function of the optimiser step. Independent of graphs or data.
 *
 * With s = step - 1 (0-based), W warm-up steps, T total steps, p = (s - W) / (T - W) clamped to [0, 1]:
 *   s < W        lr * (s + 1) / (W + 1)      torch LinearLR(start_factor = 1/(W+1), total_iters = W)
 *   cosine       min + (lr - min) * (1 + cos(pi p)) / 2          CosineAnnealingLR(T_max = T - W, eta_min = min)
 *   step         lr * gamma ^ floor((s - W) / step_every)        StepLR
 *   linear       min + (lr - min) * (1 - p)                      LinearLR towards min
 *   polynomial   min + (lr - min) * (1 - p) ^ power              PolynomialLR (min = 0)
 *   constant     lr
 *   wsd          lr; min + (lr - min) * (1 - q) with q = (s - (T - D)) / D in the last D steps, at most T - W
 *   dptrain find lr: lr * range ^ ((s + 1) / T - 1), up to lr at the last step
 * Warm-up is followed by the scheduler counting from its own 0, as torch's SequentialLR does. */
#ifndef DPT_CONFIG_LR_SCHEDULE_H
#define DPT_CONFIG_LR_SCHEDULE_H

#include "trainer/config/config.h"

struct lr_schedule {
	enum config_lr_scheduler kind;
	double lr, min_lr, gamma, power;
	int64_t steps_total;  /* T */
	int64_t steps_warmup; /* W */
	int64_t steps_decay;  /* D of `wsd` */
	double step_every;    /* optimiser steps between two decays of `step` */
	double range;	      /* of `dptrain find lr`; 0: other commands */
};

#define LR_SCHEDULE_RANGE 1e7 /* highest by lowest rate of `dptrain find lr` */

/* ERR_USAGE if warm-up or decay is counted in epochs, but the set is endless (steps_per_epoch is INT64_MAX). */
int lr_schedule_check(const struct run_config *cfg, int64_t steps_per_epoch, struct err *err);

/* Makes the schedule from the flags; steps_per_epoch > 0, INT64_MAX for an endless set. T is the smaller of --max-steps
 * and epochs * steps_per_epoch. */
struct lr_schedule lr_schedule_make(const struct run_config *cfg, int64_t steps_per_epoch);

/* Returns the learning rate of a step, counted from 1; after the last step it stays constant. */
double lr_schedule_at(const struct lr_schedule *s, int64_t step);

/* Returns the optimiser steps of the whole run; INT64_MAX if it is endless. */
int64_t lr_schedule_steps_total(const struct run_config *cfg, int64_t steps_per_epoch);

#endif
