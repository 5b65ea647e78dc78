/* SPDX-License-Identifier: Apache-2.0 */
/* bn_math.h: formulas that every backend's batch norm shares, so that results agree to the last bit. */
#ifndef DPT_OPS_BN_MATH_H
#define DPT_OPS_BN_MATH_H

#include <math.h>
#include <stdint.h>

#include "trainer/graph/host_device.h"

struct bn_channel {
	double mean, rstd; /* rstd = 1 / sqrt(var + eps) */
};

/* Mean and rstd of channel c from stat [2C+1]. Without samples, mean and variance are 0: unused, but never NaN. */
HOST_DEVICE_INLINE struct bn_channel bn_channel_of(const double *stat, int64_t channels, int64_t c, double eps)
{
	double count = stat[2 * channels], mean, var;

	if (count <= 0)
		return (struct bn_channel){ 0, 1 / sqrt(eps) };
	mean = stat[c] / count;
	var = stat[channels + c] / count - mean * mean;
	return (struct bn_channel){ mean, 1 / sqrt((var > 0 ? var : 0) + eps) };
}

/* Running statistics of one channel. */
struct bn_running {
	double mean, var;
};

#define BN_FIXED_COUNT 0x1p100

/* Writes the entries of stat [2C+1] from which bn_channel_of reads the given running statistics of channel c. */
HOST_DEVICE_INLINE void bn_fix(double *stat, int64_t channels, int64_t c, double mean, double var)
{
	stat[c] = mean * BN_FIXED_COUNT;
	stat[channels + c] = (var + mean * mean) * BN_FIXED_COUNT;
	stat[2 * channels] = BN_FIXED_COUNT;
}

/* Updates the running statistics of channel c; a batch without samples leaves them unchanged. */
HOST_DEVICE_INLINE void bn_running_update(struct bn_running *r, const double *stat, int64_t channels, int64_t c,
					  double momentum)
{
	double count = stat[2 * channels], batch_mean, batch_var;

	if (count <= 0)
		return;
	batch_mean = stat[c] / count;
	batch_var = stat[channels + c] / count - batch_mean * batch_mean;
	if (batch_var < 0)
		batch_var = 0;
	if (count > 1)
		batch_var *= count / (count - 1);
	r->mean = (1 - momentum) * r->mean + momentum * batch_mean;
	r->var = (1 - momentum) * r->var + momentum * batch_var;
}

#endif
