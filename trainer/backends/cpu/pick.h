/* pick.h: which implementation computes a convolution best. Chosen by timing once per machine, library, shape, type and
 * thread count, and remembered in a file ($XDG_CACHE_HOME/dptrain/cpu-picks, else ~/.cache/dptrain/cpu-picks); with
 * --deterministic by rule alone, never by the clock or the file. */
#ifndef DPT_BACKENDS_CPU_PICK_H
#define DPT_BACKENDS_CPU_PICK_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/dnn.h"

#define PICK_NAME_BYTES 64

struct cpu_picks;

/* Never fails: a file that cannot be read or written costs the timing again, nothing else. NULL: out of memory. */
struct cpu_picks *cpu_picks_open(void);
void cpu_picks_free(struct cpu_picks *p);

/* Writes the name of an implementation for cpu_conv_make into name[PICK_NAME_BYTES]; "" for the library's first choice.
 */
void cpu_pick(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name);

#endif
