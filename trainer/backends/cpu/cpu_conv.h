/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_conv.h: convolutions of one shape in one implementation (cpu_conv.c), and a module's convolutions in the fastest
 * implementation, each made once for all nodes of its shape (convs.c). */
#ifndef DPT_BACKENDS_CPU_CPU_CONV_H
#define DPT_BACKENDS_CPU_CPU_CONV_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

struct cpu_conv;

struct cpu_conv_choice {
	const char *name; /* an own implementation, one of the library's, or "" for its first choice */
	int threads;
};

/* The caller frees. */
int cpu_conv_make(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec,
		  struct cpu_conv_choice choice, struct err *err);
void cpu_conv_free(struct cpu_conv *c);

/* Returns the smaller convolution that is computed in place of spec, or spec itself. */
struct dnn_conv_spec cpu_conv_reduced(const struct dnn_conv_spec *spec);

/* Returns the convolution that the library computes in place of spec. */
struct dnn_conv_spec cpu_conv_computed(const struct cpu_module *m, const struct dnn_conv_spec *spec);

/* Returns the name of the i-th usable own implementation, in order of preference; NULL after the last one. */
const char *cpu_conv_own(const struct cpu_module *m, const struct dnn_conv_spec *spec, int i);

/* Returns the implementation to use without timing; NULL: the library's. */
const char *cpu_conv_preferred(const struct cpu_module *m, const struct dnn_conv_spec *spec);

size_t cpu_conv_packed_bytes(const struct cpu_conv *c); /* 0: reads plain f32 weights, KRSC */
size_t cpu_conv_workspace_bytes(const struct cpu_conv *c);
const char *cpu_conv_impl(const struct cpu_conv *c);

/* Like dnn_conv_run and, if packed bytes are not 0, dnn_conv_pack. With an empty batch wgrad writes zeros and the
 * others do nothing. */
void cpu_conv_run(struct cpu_conv *c, const struct dnn_conv_args *args);
void cpu_conv_pack(struct cpu_conv *c, const void *krsc_f32, void *packed);

/* n is a conv, conv_dgrad or conv_wgrad node; nodes of the same shape share one convolution. Borrowed from the module,
 * which frees them when it is closed. */
int cpu_convs_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err);
void cpu_convs_free(struct cpu_module *m);

#endif
