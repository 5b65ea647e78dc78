/* SPDX-License-Identifier: Apache-2.0 */
/* best_fit.h: which documents share a sample: best fit decreasing. */
#ifndef DPT_DATA_BEST_FIT_H
#define DPT_DATA_BEST_FIT_H

#include <stdint.h>

/* Assigns n documents to samples of seq_len tokens, each where the least room remains that suffices. length: of each,
 * from 1 to seq_len, the longest first. ret: the sample of each. Returns the number of samples. */
int64_t best_fit(const uint32_t *length, int64_t n, int64_t seq_len, uint32_t *ret);

#endif
