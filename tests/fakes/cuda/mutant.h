/* SPDX-License-Identifier: Apache-2.0 */
/* mutant.h: one omission, chosen by $DPTRAIN_FAKE_MUTANT, to see whether a test notices it:
 *   "barrier FILE:LINE"  a barrier of a kernel
 *   "bounds FILE:LINE"   a test whether an access is inside its array: it always succeeds
 *   "wait N", "event N"  in each recorded graph, the wait or the record of that number, from 1; records that only take
 *   the
 *                        time do not count
 *   "wait around N", "event around N"  each wait for, or record of, the Nth event that was created, around launched
 *                        graphs
 *   "list"               nothing; each place that is reached is printed once, as a line "mutant: " and one of these */
#ifndef DPT_TESTS_FAKES_CUDA_MUTANT_H
#define DPT_TESTS_FAKES_CUDA_MUTANT_H

extern bool mutant_chosen; /* one is chosen, or they are listed */

bool mutant_at(const char *kind, const char *file, unsigned line); /* whether this one is chosen */
bool mutant_numbered(const char *kind, int number);

#endif
