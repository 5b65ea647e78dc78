/* tiles.h: own products of bf16 matrices in tile registers (amx.h), and of f32 ones as three such products where the
 * module may split them. Knows nothing of how an implementation is chosen. */
#ifndef DPT_BACKENDS_CPU_TILES_H
#define DPT_BACKENDS_CPU_TILES_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

bool tiles_takes(const struct cpu_module *m, const struct dnn_matmul_spec *s);
size_t tiles_workspace_bytes(const struct dnn_matmul_spec *s, int threads);

/* args as in dnn_matmul_run. Bits of the results depend on the shape alone. */
void tiles_run(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads,
	       const struct dnn_matmul_args *args);

#endif
