/* mix.h: which part of a mixed set each place takes from: a pure function of the place, by whole weights. Among any
 * first p places a part has p w / W of them to within one sample. */
#ifndef DPT_DATA_MIX_H
#define DPT_DATA_MIX_H

#include <stdint.h>

#include "tracker/base/err.h"

#define MIX_PERIOD_MAX ((uint32_t)1 << 20)
#define MIX_PARTS_MAX 255

struct mix; /* immutable */

/* n weights, each above 0, of a sum of at most MIX_PERIOD_MAX. Memory and time go with that sum. */
int mix_new(struct mix **ret, const uint32_t *weight, int n, struct err *err);
void mix_free(struct mix *m); /* NULL is fine */

/* The part of a place (from 0), and how many places before it are of that part. In a constant time. */
int mix_at(const struct mix *m, int64_t place, int64_t *ret_before);

/* "0.7,0.3", "3,1": weights without a common divisor, exact up to 6 decimals as long as the period allows. ERR_USAGE
 * names what is wrong; flag is how the user calls the list. */
int mix_parse(uint32_t ret[MIX_PARTS_MAX], int *ret_n, const char *flag, const char *text, struct err *err);

#endif
