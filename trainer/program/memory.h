/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: the memory that a run's plan needs: whether it fits, checked before anything is allocated, and how much was
 * used in the end compared with the plan. */
#ifndef DPT_PROGRAM_MEMORY_H
#define DPT_PROGRAM_MEMORY_H

#include "trainer/graph/plan.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

/* Returns the bytes of a rank's plan: its slabs, of an offload file what copies keep resident, and the loader's memory.
 * Memory of the communicator, which other ranks read too, counts in the plan of the rank that allocates it. */
int64_t memory_planned(const struct plan *p);

/* The part of it in a device's memory, where the rank has one. */
int64_t memory_planned_on_device(const struct plan *p);

/* The part of it that is offloaded: all of it, or what copies keep resident of a file. */
size_t memory_offloaded(const struct plan *p);

/* Where fine-tuning chose the batch of cfg, which is r->cfg, halves the micro-batch until the run fits into what rank 0
 * finds free. Collective. */
int memory_fit_batch(struct run_config *cfg, const struct rank *r, const struct workload *s, struct err *err);

/* Fails with ERR_USAGE, and names settings that would fit, when the ranks of this machine together need more than it
 * has (a container's limit counts). p is the plan of r->cfg; plans of other settings are made here. Not collective. */
int memory_check(const struct plan *p, const struct rank *r, const struct workload *s, struct err *err);

/* The same before there is a plan: refuses what needs twice the memory, as timing its kernels takes minutes. */
int memory_check_first(const struct rank *r, const struct workload *s, struct err *err);

/* Returns true and describes it when the ranks of this machine together need more than half of its free memory. Of a
 * device's memory, which nothing else uses, it returns false. */
bool memory_is_large(const struct plan *p, const struct rank *r, char *text, size_t n);

/* Returns the largest batch size of a rank, up to `most`, with which r's run would fit by its plan, and the bytes that
 * the ranks of this machine would need together; 0: none. The global batch grows in proportion. */
int64_t memory_largest_batch(const struct rank *r, const struct workload *s, int64_t most, int64_t *ret_bytes);

/* memory_begin returns the resident bytes of the process when the data set is open; memory_used returns the bytes added
 * since. They match memory_planned as long as no memory was freed. Pages of mapped files are not counted. 0:
 * unknown. */
int64_t memory_begin(void);
int64_t memory_used(int64_t before);

/* Returns the bytes of the device's memory used since the rank opened it: slabs, NCCL, graphs and libraries (and other
 * processes). 0 on hosts. */
int64_t memory_on_device(const struct rank *r);

/* Appends "  parameters  12.3 MiB" and so on, one line for each category. */
void memory_table(const struct plan *p, struct buf *out);

#endif
