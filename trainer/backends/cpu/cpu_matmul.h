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
void cpu_matmul_run(struct cpu_matmul *c, const struct dnn_matmul_args *args);

/* Own implementations of matrix products. They are independent of how an implementation is chosen. few_rows  a few rows
 * with a matrix that is stored turned, one row of it for each result: it is read once, as fast as memory gives it,
 * which is all that such a product costs. Text is sampled one row at a time. tiles     bf16 matrices in tile registers
 * (amx.h), and f32 ones as three such products where the module may split them */

bool few_rows_takes(const struct cpu_module *m, const struct dnn_matmul_spec *s);

/* args as in dnn_matmul_run, without a workspace. The bits of the results depend only on the shape and the instruction
 * set. */
void few_rows_run(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads,
		  const struct dnn_matmul_args *args);

bool tiles_takes(const struct cpu_module *m, const struct dnn_matmul_spec *s);
size_t tiles_workspace_bytes(const struct dnn_matmul_spec *s, int threads);

/* args as in dnn_matmul_run. The bits of the results depend only on the shape. */
void tiles_run(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads,
	       const struct dnn_matmul_args *args);

#endif
