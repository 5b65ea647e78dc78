/* SPDX-License-Identifier: Apache-2.0 */
/* optimizers.h: the optimisers of optimizers.def, and the options that all of them share; each uses those it has.
 * trainer/ops/update computes their steps. */
#ifndef DPT_OPS_OPTIMIZERS_H
#define DPT_OPS_OPTIMIZERS_H

#include <stdbool.h>

enum optimizer_id {
#define OPTIMIZER(name, ...) OPTIMIZER_##name,
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
	OPTIMIZER_COUNT
};

enum optimizer_option { MOMENTUM = 1, NESTEROV = 2, BETAS = 4 /* beta1, beta2 */, EPS = 8, TRUST = 16 };

struct optimizer_attr {
	double momentum, beta1, beta2, eps, trust;
	double weight_decay; /* for this parameter */
	bool nesterov;
};

#endif
