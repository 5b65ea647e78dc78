/* spike.h: finds points that stand alone far above their neighbourhood. Pure. */
#ifndef DPT_STORE_SPIKE_H
#define DPT_STORE_SPIKE_H

#include <stdbool.h>
#include <stddef.h>

#include "web/store/points/series_summary.h"

#define SPIKE_CONTEXT 40 /* points before the new ones that a search wants to see */

/* Series whose spikes are told: training losses. */
bool spike_watches(const char *key);

/* The worst spike among points in step order: a finite value more than twice both its neighbours and the median of the
 * up to 32 around it, and beyond that by 6 robust deviations (1.4826 * median absolute deviation). Returns its index
 * and in *ret_weight how far it stands above the median; -1 without one. */
long spike_find(const struct sum_point *p, size_t n, double *ret_weight);

#endif
