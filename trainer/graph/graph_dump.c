/* SPDX-License-Identifier: Apache-2.0 */
/* graph_dump.c: writes a graph as text: one line per input or persistent tensor, then one line per node. */
#include "trainer/graph/op.h"

static void dump_type(const struct tensor *t, struct buf *out)
{
	buf_addf(out, "%s[", dtype_name(t->dtype));
	for (int i = 0; i < t->shape.ndim; i++)
		buf_addf(out, "%s%lld", i ? "," : "", (long long)t->shape.dim[i]);
	buf_addc(out, ']');
	if (t->opaque_bytes)
		buf_addf(out, " packed=%zu", t->opaque_bytes);
	if (t->space == SPACE_COMM)
		buf_adds(out, " comm");
	if (t->space == SPACE_OFFLOAD)
		buf_adds(out, " offloaded");
	if (t->base)
		buf_addf(out, " in=%s+%zu", t->base->name, t->base_offset);
	if (t->keep)
		buf_adds(out, " keep");
	if (t->shard.each)
		buf_addf(out, " unit=%d+%lld/%lld", t->shard.unit, (long long)t->shard.at, (long long)t->shard.each);
}

static void dump_init(const struct tensor *t, struct buf *out)
{
	static const char *const names[] = { "zero", "one", "normal", "uniform" };

	buf_addf(out, " init=%s", names[t->init.kind]);
	if (t->init.kind == INIT_NORMAL || t->init.kind == INIT_UNIFORM)
		buf_addf(out, "(%.9g)", t->init.scale);
}

static const char *kind_name(enum tensor_kind k)
{
	static const char *const names[] = { "input",	 "param",  "stat", "moment", "grad",
					     "gathered", "bucket", "act",  "result" };

	return names[k];
}

static void dump_tensor(const struct tensor *t, struct buf *out)
{
	buf_addf(out, "%s %s ", kind_name(t->kind), t->name);
	dump_type(t, out);
	if (t->life == LIFE_PERSISTENT)
		dump_init(t, out);
	if (t->kind == TENSOR_PARAM && !t->decay)
		buf_adds(out, " no-decay");
	buf_addc(out, '\n');
}

/* One line per node: id, phase, op, name, inputs, outputs with their types, then what differs from the defaults. */
static void dump_node(const struct node *n, struct buf *out)
{
	buf_addf(out, "%d %s %s %s:", n->id, phase_name(n->phase), n->op->name, n->name);
	for (int i = 0; i < n->n_in; i++)
		buf_addf(out, " %s", n->in[i] ? n->in[i]->name : "-");
	buf_adds(out, " ->");
	for (int i = 0; i < n->n_out; i++) {
		buf_addf(out, " %s", n->out[i] ? n->out[i]->name : "-");
		if (n->out[i] && n->out[i]->producer == n) {
			buf_addc(out, ' ');
			dump_type(n->out[i], out);
		}
	}
	if (n->stream != STREAM_COMPUTE)
		buf_addf(out, " stream=%s", stream_name(n->stream));
	if (n->group != GROUP_WORLD)
		buf_addf(out, " group=%s", group_name(n->group));
	for (int i = 0; i < n->n_after; i++)
		buf_addf(out, "%s%d", i ? "," : " after=", n->after[i]->id);
	if (n->bucket >= 0)
		buf_addf(out, " bucket=%d", n->bucket);
	if (n->op->dump)
		n->op->dump(n, out);
	buf_addc(out, '\n');
}

void graph_dump(const struct graph *g, struct buf *out)
{
	buf_addf(out, "graph %s: %d nodes\n", g->training ? "training" : "evaluation", g->n_nodes);
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT || g->tensors[i]->life == LIFE_PERSISTENT)
			dump_tensor(g->tensors[i], out);
	for (int i = 0; i < g->n_nodes; i++)
		dump_node(g->nodes[i], out);
}
