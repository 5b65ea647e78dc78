/* SPDX-License-Identifier: Apache-2.0 */
/* round.h: arithmetic on counts: the smaller of two, division that rounds up, and the least multiple of a grain that is
 * not below n; n >= 0, by and grain > 0. */
#ifndef DPT_BASE_ROUND_H
#define DPT_BASE_ROUND_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t min_int64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t divide_up(int64_t n, int64_t by)
{
	return n / by + (n % by != 0);
}

static inline int64_t round_up(int64_t n, int64_t grain)
{
	return divide_up(n, grain) * grain;
}

static inline size_t round_up_bytes(size_t n, size_t grain)
{
	return (n + grain - 1) / grain * grain;
}

#endif
