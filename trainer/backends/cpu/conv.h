/* conv.h: one convolution pass on the cpu: which implementation computes it, how it wants its weights packed, and
 * running it. Made from a node; nodes alike share one. Used by conv's kernels and by pack's, so that both agree. */
#ifndef DPT_BACKENDS_CPU_CONV_H
#define DPT_BACKENDS_CPU_CONV_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/dnn.h"

struct cpu_conv;

/* Borrowed from the module, which frees them when it is closed. n is a conv, conv_dgrad or conv_wgrad node. */
int cpu_conv_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err);
void cpu_conv_free_all(struct cpu_module *m);

/* One implementation by name: "own", one of the library's, or "" for its first choice. For picking; the caller frees.
 */
int cpu_conv_make(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec, int threads,
		  const char *name, struct err *err);
void cpu_conv_free(struct cpu_conv *c);
bool cpu_conv_own(const struct cpu_module *m, const struct dnn_conv_spec *spec); /* whether "own" can */

size_t cpu_conv_packed_bytes(const struct cpu_conv *c);
size_t cpu_conv_workspace_bytes(const struct cpu_conv *c);
const char *cpu_conv_impl(const struct cpu_conv *c);

/* As dnn_conv_run and dnn_conv_pack. A batch of no samples: wgrad writes zeros, the others do nothing. */
int cpu_conv_run(struct cpu_conv *c, const struct dnn_conv_args *args, struct err *err);
int cpu_conv_pack(struct cpu_conv *c, const void *krsc_f32, void *packed, struct err *err);

#endif
