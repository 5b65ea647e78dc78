/* shm_usage.h: what collectives between the ranks of one machine touch of each other's memory, known from the plan. */
#ifndef DPT_PROGRAM_SHM_USAGE_H
#define DPT_PROGRAM_SHM_USAGE_H

#include "trainer/program/prepare.h"

/* Bytes, in whole pages, of the other ranks' communicator memory that this rank reads or writes: they count for its
 * resident set too, but are there once. 0 where devices meet, or nobody. p has programs and a plan. */
int shm_usage_bytes(const struct prepared *p, size_t *ret, struct err *err);

#endif
