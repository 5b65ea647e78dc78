/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_conv.h: convolutions of a shape in one implementation each (cpu_conv.c), and a module's convolutions, made once
 * for all nodes alike, in the implementation that is fastest here (convs.c). */
#ifndef DPT_BACKENDS_CPU_CPU_CONV_H
#define DPT_BACKENDS_CPU_CPU_CONV_H

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/onednn.h"

struct cpu_conv;

struct cpu_conv_choice {
	const char *name; /* an own one, one of the library's, or "" for its first choice */
	int threads;
};

/* The caller frees. */
int cpu_conv_make(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec,
		  struct cpu_conv_choice choice, struct err *err);
void cpu_conv_free(struct cpu_conv *c);

/* The convolution that the library computes for that one. */
struct dnn_conv_spec cpu_conv_computed(const struct cpu_module *m, const struct dnn_conv_spec *spec);

/* The name of own implementation i of those that can, the preferred one first; NULL beyond the last. */
const char *cpu_conv_own(const struct cpu_module *m, const struct dnn_conv_spec *spec, int i);

/* The one to take where nothing is timed; NULL: the library's. */
const char *cpu_conv_preferred(const struct cpu_module *m, const struct dnn_conv_spec *spec);

size_t cpu_conv_packed_bytes(const struct cpu_conv *c); /* 0: it reads weights as they are, f32 KRSC */
size_t cpu_conv_workspace_bytes(const struct cpu_conv *c);
const char *cpu_conv_impl(const struct cpu_conv *c);

/* As dnn_conv_run and, where packed bytes are not 0, dnn_conv_pack. A batch of no samples: wgrad writes zeros, the
 * others do nothing. */
int cpu_conv_run(struct cpu_conv *c, const struct dnn_conv_args *args, struct err *err);
int cpu_conv_pack(struct cpu_conv *c, const void *krsc_f32, void *packed, struct err *err);

/* n is a conv, conv_dgrad or conv_wgrad node; nodes alike share one. Borrowed from the module, which frees them when it
 * is closed. */
int cpu_convs_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err);
void cpu_convs_free(struct cpu_module *m);

#endif
