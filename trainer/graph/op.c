/* SPDX-License-Identifier: Apache-2.0 */
/* op.c: rules that several ops share. */
#include "trainer/graph/op.h"

enum dtype_class op_dtype_keep(const struct node *n, bool is_out, int index)
{
	(void)n;
	(void)is_out;
	(void)index;
	return DTYPE_CLASS_KEEP;
}

enum dtype_class op_dtype_sums(const struct node *n, bool is_out, int index)
{
	(void)n;
	(void)index;
	return is_out ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

int op_inplace_same(const struct node *n, int out)
{
	return out < n->n_in ? out : -1;
}

double op_flops(const struct node *n)
{
	return n->op->flops ? n->op->flops(n) : 0;
}

double op_counted(const struct node *n)
{
	return n->op->counted ? n->op->counted(n) : op_flops(n);
}

double op_operands(const struct node *n)
{
	double bytes = 0;

	for (int i = 0; i < n->n_in; i++)
		bytes += n->in[i] ? (double)tensor_bytes(n->in[i]) : 0;
	for (int i = 0; i < n->n_out; i++)
		bytes += n->out[i] ? (double)tensor_bytes(n->out[i]) : 0;
	return bytes;
}

double op_touched(const struct node *n)
{
	return n->op->touched ? n->op->touched(n) : op_operands(n);
}

struct tensor *op_moment(struct graph *g, const struct tensor *param, const char *suffix)
{
	struct tensor like = { .kind = TENSOR_MOMENT,
			       .dtype = param->dtype,
			       .shape = param->shape,
			       .life = LIFE_PERSISTENT,
			       .shard = param->shard,
			       .stages = param->stages,
			       .name = graph_printf(g, "%s.%s", param->name, suffix) };

	return like.name ? graph_tensor(g, &like) : NULL;
}
