/* memory.h: what a run's plan takes of the machine: whether it fits, told before anything is allocated, and what was
 * used in the end beside what was planned. */
#ifndef DPT_ENGINE_MEMORY_H
#define DPT_ENGINE_MEMORY_H

#include "trainer/run/engine.h"

/* Bytes that this rank will have touched: its slabs, and the other ranks' shared memory that its collectives read. */
int64_t memory_planned(const struct engine *e);

/* Fails with ERR_USAGE, naming settings that would fit, when the ranks of this machine together need more than it has
 * (a container's limit counts). Needs programs and plan, no tensor memory; not collective. */
int memory_check(const struct engine *e, struct err *err);

/* What the process holds now beyond what it held at memory_begin, when the data set was open: what memory_planned foresaw,
 * while nothing of it has been given back. Pages of mapped files do not count. 0 when the system does not tell. */
void memory_begin(struct engine *e);
int64_t memory_used(const struct engine *e);

/* "  parameters  12.3 MiB" and so on, one line a category. */
void memory_table(const struct engine *e, struct buf *out);

#endif
