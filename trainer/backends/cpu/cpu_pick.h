/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_pick.h: selects the fastest implementation of a convolution or a matrix product. It is timed once per machine,
 * library, shape, type and thread count, and remembered in a file ($XDG_CACHE_HOME/dptrain/cpu-picks-13, else
 * ~/.cache/dptrain/cpu-picks-13). With --deterministic a rule decides, never the clock or the file. */
#ifndef DPT_BACKENDS_CPU_CPU_PICK_H
#define DPT_BACKENDS_CPU_CPU_PICK_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

#define PICK_NAME_BYTES 64
#define PICK_KEY_BYTES 256
#define PICK_CANDIDATES 12

struct cpu_picks *cpu_picks_open(void);
void cpu_picks_free(struct cpu_picks *p);

/* The facts that a choice depends on. picks: the module's. what: the computation, its shape and types; no tabs. */
void cpu_pick_key(char *key, const struct cpu_module *m, int threads, const char *what);
bool cpu_pick_recall(struct cpu_module *m, const char *key, char *name);
void cpu_pick_keep(struct cpu_module *m, const char *key, const char *name);

/* Lists the choices that were read or made since the module was opened, and sets one, which overrides the file. For
 * struct backend. */
void cpu_pick_choices(void *module, void (*fn)(void *user, const char *key, const char *name), void *user);
void cpu_pick_choose(void *module, const char *key, const char *name);

/* Returns false for kernels of the library that use a lesser instruction set than the processor's, which are always far
 * slower. oneDNN 2 names its AMX kernels avx512_core_amx, oneDNN 3.5 and later avx10_1_512_amx. */
bool cpu_pick_worth_trying(const struct cpu_module *m, const char *name);

/* Stores the fastest of n <= PICK_CANDIDATES in *best. run executes candidate i once with `threads` threads and returns
 * its seconds by cpu_pick_clock. Returns false if other programs disturbed every timing: then the processor time of one
 * thread's share is a better measure. */
bool cpu_pick_fastest(int *best, int n, int threads, double (*run)(void *arg, int i), void *arg);

/* Memory for a trial, touched and page-aligned. Every byte is PICK_FILL at first, and later whatever the trials wrote.
 * Kept from trial to trial until cpu_pick_leave. NULL: out of memory. */
#define PICK_FAILED 1e9 /* seconds of a candidate that cannot run */
#define PICK_FILL 0x3c /* 0x3c3c is 0.0115 in either type, neither denormal nor infinite */
char *cpu_pick_room(struct cpu_picks *p, size_t bytes);
void cpu_pick_leave(struct cpu_picks *p);

/* Seconds. With one thread it is that thread's processor time, which other programs disturb less. */
double cpu_pick_clock(int threads);

#endif
