/* convs.h: the convolutions of a module's nodes. Used by conv's kernels and by pack's, so that both agree. */
#ifndef DPT_BACKENDS_CPU_CONVS_H
#define DPT_BACKENDS_CPU_CONVS_H

#include "trainer/backends/cpu/cpu_conv.h"

/* n is a conv, conv_dgrad or conv_wgrad node; nodes alike share one. Borrowed from the module, which frees them when it
 * is closed. */
int cpu_convs_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err);
void cpu_convs_free(struct cpu_module *m);

#endif
