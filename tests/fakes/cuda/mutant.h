/* mutant.h: one thing that is left out, chosen by $DPTRAIN_FAKE_MUTANT, to see whether somebody notices:
 *   "barrier FILE:LINE"  a barrier of a kernel
 *   "bounds FILE:LINE"   a test whether an access lies inside its array: it says yes
 *   "wait N", "event N"  of each graph that is recorded, the wait or the record of that number, from 1; records that
 *                        only take the time do not count
 *   "wait around N", "event around N"  each wait for, or record of, the event that was made as the Nth, around graphs
 *                        that are launched
 *   "list"               nothing; each place that is come to is printed once, as a line "mutant: " and one of these */
#ifndef DPT_TESTS_FAKES_CUDA_MUTANT_H
#define DPT_TESTS_FAKES_CUDA_MUTANT_H

extern bool mutant_chosen; /* there is one, or they are listed */

bool mutant_at(const char *kind, const char *file, unsigned line); /* whether it is this one */
bool mutant_numbered(const char *kind, int number);

#endif
