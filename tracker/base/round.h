/* SPDX-License-Identifier: Apache-2.0 */
/* round.h: the least multiple of a grain that is not below n; n >= 0, grain > 0. */
#ifndef DPT_BASE_ROUND_H
#define DPT_BASE_ROUND_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t round_up(int64_t n, int64_t grain)
{
	return (n + grain - 1) / grain * grain;
}

static inline size_t round_up_bytes(size_t n, size_t grain)
{
	return (n + grain - 1) / grain * grain;
}

#endif
