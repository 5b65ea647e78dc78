/* SPDX-License-Identifier: Apache-2.0 */
/* conv_cpu.c: the three convolution ops as kernels; trainer/backends/cpu/convs.c has them. */
#include "trainer/backends/cpu/cpu_conv.h"
#include "trainer/ops/ops.h"

static size_t conv_pack_bytes(const struct kernel_env *env, const struct node *n, int index)
{
	struct cpu_conv *c;

	if (index != 1 || cpu_convs_get(&c, env, n, NULL))
		return 0;
	return cpu_conv_packed_bytes(c);
}

static int conv_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct cpu_conv *c;
	int rc = cpu_convs_get(&c, env, n, err);

	if (rc)
		return rc;
	if (n->op->id != OP_conv_wgrad && n->in[1]->opaque_bytes != cpu_conv_packed_bytes(c))
		return err_set(err, ERR_UNSUPPORTED, "backend cpu: %s: weights must be packed (%zu bytes, not %zu)",
			       n->name, cpu_conv_packed_bytes(c), n->in[1]->opaque_bytes);
	n->workspace_bytes = cpu_conv_workspace_bytes(c);
	*ret_state = c;
	return 0;
}

/* The module keeps the state, a convolution, until it is closed. */
static void conv_run(void *state, const struct kernel_args *args)
{
	const struct dnn_conv_args a = { args->in[0], args->in[1], args->out[0], args->workspace };

	cpu_conv_run(state, &a);
}

static const char *conv_impl(const void *state)
{
	return cpu_conv_impl(state);
}

extern const struct kernel conv_cpu, conv_dgrad_cpu, conv_wgrad_cpu;
const struct kernel conv_cpu = {
	.pack_bytes = conv_pack_bytes,
	.prepare = conv_prepare,
	.run = conv_run,
	.impl = conv_impl,
};
const struct kernel conv_dgrad_cpu = {
	.pack_bytes = conv_pack_bytes,
	.prepare = conv_prepare,
	.run = conv_run,
	.impl = conv_impl,
};
const struct kernel conv_wgrad_cpu = {
	.prepare = conv_prepare, .run = conv_run, .impl = conv_impl
};
