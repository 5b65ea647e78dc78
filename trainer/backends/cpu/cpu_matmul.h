/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_matmul.h: products of plain matrices on the cpu. Equal kernels share one, which the module keeps until it is
 * closed. Independent of how an implementation is chosen. */
#ifndef DPT_BACKENDS_CPU_CPU_MATMUL_H
#define DPT_BACKENDS_CPU_CPU_MATMUL_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

struct cpu_matmul;

/* Borrowed. A spec with a size of 0 is legal: there is nothing to compute, or the result is zeros if k is 0. */
int cpu_matmul_get(struct cpu_matmul **ret, const struct kernel_env *env, const struct dnn_matmul_spec *spec,
		   struct err *err);
void cpu_matmul_free_all(struct cpu_module *m);

size_t cpu_matmul_workspace_bytes(const struct cpu_matmul *c);
const char *cpu_matmul_impl(const struct cpu_matmul *c);
int cpu_matmul_run(struct cpu_matmul *c, const struct dnn_matmul_args *args, struct err *err);

#endif
