/* few_rows.h: own products of a few rows with a matrix that is stored turned, one row of it for each result: it is read
 * once, as fast as memory gives it, which is all that such a product costs. Text is sampled one row at a time. Knows
 * nothing of how an implementation is chosen. */
#ifndef DPT_BACKENDS_CPU_FEW_ROWS_H
#define DPT_BACKENDS_CPU_FEW_ROWS_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

bool few_rows_takes(const struct cpu_module *m, const struct dnn_matmul_spec *s);

/* args as in dnn_matmul_run, without a workspace. Bits of the results depend on the shape and the instruction set
 * alone. */
void few_rows_run(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads,
		  const struct dnn_matmul_args *args);

#endif
