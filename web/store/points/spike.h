/* spike.h: finds single points far above their neighbourhood. Pure functions. */
#ifndef DPT_STORE_SPIKE_H
#define DPT_STORE_SPIKE_H

#include <stdbool.h>
#include <stddef.h>

#include "web/store/points/series_summary.h"

#define SPIKE_CONTEXT 40 /* points before the new ones that a search needs */

/* Returns true for series whose spikes are reported: training losses. */
bool spike_watches(const char *key);

/* Finds the worst spike among points in step order. A spike is finite and more than twice both neighbours and the
 * median of up to 32 points around it. It exceeds that median by 6 robust deviations (1.4826 * median absolute
 * deviation). Returns its index and in *ret_weight its distance to the median; -1: none. */
long spike_find(const struct sum_point *p, size_t n, double *ret_weight);

#endif
