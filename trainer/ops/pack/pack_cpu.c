/* SPDX-License-Identifier: Apache-2.0 */
/* pack_cpu.c: converts a convolution's f32 master weights to the layout and type that its implementation wants. */
#include "trainer/backends/cpu/cpu_conv.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/pack/pack.h"

static int prepare_pack_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct pack_attr *a = n->attr;
	struct cpu_conv *c;
	int rc;

	if (a->index != 1 || (a->consumer->op->id != OP_conv && a->consumer->op->id != OP_conv_dgrad))
		return err_set(err, ERR_UNSUPPORTED, "backend cpu: %s: operand %d of %s has no packed layout", n->name,
			       a->index, a->consumer->op->name);
	rc = cpu_want(n, n->in[0], DTYPE_F32, err);
	if (!rc)
		rc = cpu_convs_get(&c, env, a->consumer, err);
	if (!rc)
		*ret_state = c;
	return rc;
}

/* The module owns the state, a convolution. */
static void run_pack_cpu(void *state, const struct kernel_args *args)
{
	cpu_conv_pack(state, args->in[0], args->out[0]);
}

extern const struct kernel pack_cpu;
const struct kernel pack_cpu = { .prepare = prepare_pack_cpu, .run = run_pack_cpu };
