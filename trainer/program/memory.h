/* memory.h: what a run's plan takes of the machine: whether it fits, told before anything is allocated, and what was
 * used in the end beside what was planned. */
#ifndef DPT_PROGRAM_MEMORY_H
#define DPT_PROGRAM_MEMORY_H

#include "tracker/base/buf.h"
#include "trainer/graph/plan.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

/* Bytes that a rank will have touched: its slabs, and the other ranks' shared memory that its collectives read. */
int64_t memory_planned(const struct plan *p);

/* … of what is offloaded: all of it, or what copies keep of a file. */
size_t memory_offloaded(const struct plan *p);

/* Fails with ERR_USAGE, naming settings that would fit, when the ranks of this machine together need more than it has
 * (a container's limit counts). p is the plan of r->cfg; others are made here for other settings. Not collective. */
int memory_check(const struct plan *p, const struct rank *r, const struct workload *s, struct err *err);

/* The largest batch size of a rank, up to `most`, with which r's run would fit by its plan, and what the ranks of this
 * machine would need together; 0: none does. The whole batch grows with it. */
int64_t memory_largest_batch(const struct rank *r, const struct workload *s, int64_t most, int64_t *ret_bytes);

/* What the process holds now beyond what it held at memory_begin (which says how much), when the data set was open:
 * what memory_planned foresaw, while nothing of it has been given back. Pages of mapped files do not count. 0 when the
 * system does not tell. */
int64_t memory_begin(void);
int64_t memory_used(int64_t before);

/* Bytes of its device's memory that were taken since the rank opened it: slabs, and what NCCL, graphs and libraries
 * took (and other processes). 0 on hosts. */
int64_t memory_on_device(const struct rank *r);

/* "  parameters  12.3 MiB" and so on, one line a category. */
void memory_table(const struct plan *p, struct buf *out);

#endif
