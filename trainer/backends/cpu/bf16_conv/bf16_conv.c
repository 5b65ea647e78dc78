/* bf16_conv.c: which convolutions are taken, and which pass computes them. */
#include "trainer/backends/cpu/bf16_conv/bf16_conv.h"

#include "trainer/backends/cpu/bf16_conv/bf16_passes.h"

#define OFFSET_MOST (INT64_C(1) << 30) /* bytes of packed weights of a panel, and of a chunk */

bool bf16_conv_takes(const struct cpu_module *m, enum bf16_engine engine, const struct dnn_conv_spec *s)
{
	const int64_t deep = s->c > s->k ? s->c : s->k;

	return block_has(m, engine) && s->bf16 && s->stride <= STRIDE_MOST && s->kernel <= KERNEL_MOST &&
	       s->pad < s->kernel && s->p > 0 && s->q > 0 && deep * s->kernel * s->kernel * STEP_BYTES < OFFSET_MOST;
}

size_t bf16_conv_packed_bytes(const struct bf16_conv *c)
{
	struct conv_plan p;

	bf16_forward_plan(&p, c);
	return plan_weight_bytes(&p);
}

size_t bf16_conv_workspace_bytes(const struct bf16_conv *c)
{
	return c->spec.pass == DNN_WGRAD ? bf16_wgrad_workspace_bytes(c) : bf16_forward_workspace_bytes(c);
}

void bf16_conv_run(const struct bf16_conv *c, const struct dnn_conv_args *args)
{
	if (c->spec.pass == DNN_WGRAD)
		bf16_wgrad_run(c, args);
	else
		bf16_forward_run(c, args);
}
