/* mix.h: maps each position of a mixed set to a part: a pure function of the position and integer weights. Among the
 * first p positions a part of weight w has p w / W, to within one sample. */
#ifndef DPT_DATA_MIX_H
#define DPT_DATA_MIX_H

#include <stdint.h>

#include "tracker/base/err.h"

#define MIX_PERIOD_MAX ((uint32_t)1 << 20)
#define MIX_PARTS_MAX 255

struct mix; /* immutable */

/* n weights > 0 with a sum of at most MIX_PERIOD_MAX. Memory and time are proportional to the sum. */
int mix_new(struct mix **ret, const uint32_t *weight, int n, struct err *err);
void mix_free(struct mix *m); /* NULL is fine */

/* Returns the part of a position (from 0). *ret_before: earlier positions of that part. Constant time. */
int mix_at(const struct mix *m, int64_t place, int64_t *ret_before);

/* Parses "0.7,0.3" or "3,1" to integer weights without a common divisor, exact up to 6 decimals if the period allows
 * it. ERR_USAGE names what is wrong. flag: name of the option. */
int mix_parse(uint32_t ret[MIX_PARTS_MAX], int *ret_n, const char *flag, const char *text, struct err *err);

#endif
