/* SPDX-License-Identifier: Apache-2.0 */
/* ref_emulate.c: the ref backend under a table of casts: tensors are stored as f16 or f32, an op's kernel runs on f64
 * copies, and its results are rounded when they are stored. So each op has the exact result of its rounded operands,
 * rounded once. */
#include <stdlib.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/backend.h"
#include "trainer/graph/plan.h"
#include "trainer/ops/cast/float16.h"

#define OP(name) extern const struct kernel name##_ref;
#include "trainer/ops/ops.def"
#undef OP

static const struct kernel *const ref_kernels[OP_COUNT] = {
#define OP(name) [OP_##name] = &name##_ref,
#include "trainer/ops/ops.def"
#undef OP
};

struct ref_operand {
	struct tensor wide; /* as the inner kernel sees it */
	const struct tensor *stored;
	bool rounds;
	int twin;  /* of an output: the input that is the same tensor; -1: none */
	size_t at; /* of its copy in the workspace */
};

struct ref_emulated {
	struct node node; /* with the wide tensors */
	void *state;
	struct ref_operand *operand; /* inputs, then outputs */
	struct tensor **tensors;
	void **address;
	size_t inner_bytes;
};

static void ref_emulate_release(void *state)
{
	struct ref_emulated *e = state;
	const struct kernel *inner = e ? ref_kernels[e->node.op->id] : NULL;

	if (!e)
		return;
	if (inner->release && e->state)
		inner->release(e->state);
	free(e->operand);
	free(e->tensors);
	free(e->address);
	free(e);
}

static struct tensor *widen_operand(struct ref_operand *o, const struct tensor *t)
{
	o->twin = -1;
	o->stored = t;
	if (!t)
		return NULL;
	o->wide = *t;
	o->rounds = t->dtype == DTYPE_F16 || t->dtype == DTYPE_F32;
	if (o->rounds)
		o->wide.dtype = DTYPE_F64;
	return &o->wide;
}

static void widen_operands(struct ref_emulated *e, const struct node *n)
{
	e->node = *n;
	e->node.in = e->tensors;
	e->node.out = e->tensors + n->n_in;
	e->node.workspace_bytes = 0;
	for (int i = 0; i < n->n_in; i++)
		e->node.in[i] = widen_operand(&e->operand[i], n->in[i]);
	for (int k = 0; k < n->n_out; k++) {
		struct ref_operand *o = &e->operand[n->n_in + k];

		e->node.out[k] = widen_operand(o, n->out[k]);
		for (int i = 0; i < n->n_in; i++)
			if (n->out[k] && n->in[i] == n->out[k])
				o->twin = i;
		if (o->twin >= 0)
			e->node.out[k] = e->node.in[o->twin];
	}
}

/* The inner workspace comes first, then the copies. */
static size_t place_wide_copies(struct ref_emulated *e)
{
	size_t at = round_up_bytes(e->node.workspace_bytes, PLAN_ALIGN_BYTES);

	e->inner_bytes = e->node.workspace_bytes;
	for (int i = 0; i < e->node.n_in + e->node.n_out; i++)
		if (e->operand[i].rounds && e->operand[i].twin < 0) {
			e->operand[i].at = at;
			at += round_up_bytes((size_t)shape_count(&e->operand[i].wide.shape) * sizeof(double) + 1,
					     PLAN_ALIGN_BYTES);
		}
	return at;
}

/* Prepares the op's kernel on wide twins of the node's tensors. */
static int ref_emulate_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct kernel *inner = ref_kernels[n->op->id];
	const size_t all = (size_t)(n->n_in + n->n_out) + 1;
	struct ref_emulated *e = mem_zalloc(sizeof(*e));
	int rc;

	e->node.op = n->op;
	e->operand = mem_array(all, sizeof(*e->operand));
	e->tensors = mem_array(all, sizeof(struct tensor *));
	e->address = mem_array(all, sizeof(void *));
	widen_operands(e, n);
	rc = inner->prepare ? inner->prepare(env, &e->node, &e->state, err) : 0;
	if (rc) {
		ref_emulate_release(e);
		return rc;
	}
	n->workspace_bytes = place_wide_copies(e);
	*ret_state = e;
	return 0;
}

static void read_operand(const struct ref_operand *o, const void *from, double *to)
{
	for (int64_t i = 0; i < shape_count(&o->wide.shape); i++)
		to[i] = float_get(from, o->stored->dtype, i);
}

static void round_operand(const struct ref_operand *o, const double *from, void *to)
{
	for (int64_t i = 0; i < shape_count(&o->wide.shape); i++)
		float_put(to, o->stored->dtype, i, from[i]);
}

/* Widens the inputs, runs the op's kernel and rounds its results. */
static void ref_emulate_run(void *state, const struct kernel_args *args)
{
	const struct ref_emulated *e = state;
	const struct node *n = &e->node;
	unsigned char *w = args->workspace;
	void **in = e->address, **out = in + n->n_in;
	struct kernel_args inner = *args;

	for (int i = 0; i < n->n_in; i++) {
		const struct ref_operand *o = &e->operand[i];

		in[i] = o->rounds ? (void *)(w + o->at) : args->in[i];
		if (o->rounds)
			read_operand(o, args->in[i], in[i]);
	}
	for (int k = 0; k < n->n_out; k++) {
		const struct ref_operand *o = &e->operand[n->n_in + k];

		out[k] = o->twin >= 0 ? in[o->twin] : o->rounds ? (void *)(w + o->at) : args->out[k];
	}
	inner.in = in;
	inner.out = out;
	inner.workspace = e->inner_bytes ? w : NULL;
	ref_kernels[n->op->id]->run(e->state, &inner);
	for (int k = 0; k < n->n_out; k++)
		if (e->operand[n->n_in + k].rounds)
			round_operand(&e->operand[n->n_in + k], out[k], args->out[k]);
}

static const char *ref_emulate_impl(const void *state)
{
	(void)state;
	return "f64, rounded to its operands' types";
}

extern const struct kernel ref_emulate;
const struct kernel ref_emulate = { .prepare = ref_emulate_prepare,
				    .run = ref_emulate_run,
				    .release = ref_emulate_release,
				    .impl = ref_emulate_impl };
