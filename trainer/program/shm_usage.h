/* shm_usage.h: the footprint of collectives in the shared memory of the other ranks of a machine, from the plan. */
#ifndef DPT_PROGRAM_SHM_USAGE_H
#define DPT_PROGRAM_SHM_USAGE_H

#include "trainer/program/prepare.h"

/* Computes the bytes, in whole pages, of the other ranks' communicator memory that this rank reads or writes. They
 * count in its resident set, but exist once for all ranks. 0 with devices or a single rank. p has programs and a
 * plan. */
int shm_usage_bytes(const struct prepared *p, size_t *ret, struct err *err);

#endif
