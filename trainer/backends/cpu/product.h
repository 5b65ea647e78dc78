/* product.h: a product of plain matrices in types that the processor computes in: which implementation computes it, and
 * running it. */
#ifndef DPT_BACKENDS_CPU_PRODUCT_H
#define DPT_BACKENDS_CPU_PRODUCT_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

struct cpu_product;

/* The caller frees. A spec with a size of 0 is legal: nothing to compute, or zeros where k is 0. */
int cpu_product_new(struct cpu_product **ret, const struct kernel_env *env, const struct dnn_matmul_spec *spec,
		    struct err *err);
void cpu_product_free(struct cpu_product *c);

size_t cpu_product_workspace_bytes(const struct cpu_product *c);
const char *cpu_product_impl(const struct cpu_product *c);
int cpu_product_run(struct cpu_product *c, const struct dnn_matmul_args *args, struct err *err);

#endif
