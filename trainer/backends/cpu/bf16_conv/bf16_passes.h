/* bf16_passes.h: what the files of this folder use of one another. */
#ifndef DPT_BACKENDS_CPU_BF16_CONV_BF16_PASSES_H
#define DPT_BACKENDS_CPU_BF16_CONV_BF16_PASSES_H

#include "trainer/backends/cpu/bf16_conv/bf16_conv.h"
#include "trainer/backends/cpu/bf16_conv/conv_plan.h"

/* bf16_forward.c: results of a forward pass or a data gradient. */
size_t bf16_forward_workspace_bytes(const struct bf16_conv *c);
void bf16_forward_run(const struct bf16_conv *c, const struct dnn_conv_args *args);

/* wgrad.c */
size_t bf16_wgrad_workspace_bytes(const struct bf16_conv *c);
void bf16_wgrad_run(const struct bf16_conv *c, const struct dnn_conv_args *args);

/* bf16_forward.c's plan, which bf16_weights.c packs by. */
void bf16_forward_plan(struct conv_plan *p, const struct bf16_conv *c);

#endif
