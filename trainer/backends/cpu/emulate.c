/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.c: f16 on processors without f16 arithmetic: the op's own kernel runs on f32 copies, and results are rounded
 * to f16. It is meant for correctness, not for speed: each run converts every operand, and packs it if the kernel
 * requires that. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/widen.h"

#include "trainer/graph/pass.h"
#include "trainer/graph/plan.h"
#include "trainer/ops/ops.h"

#define OPERANDS_MAX 64
#define PACKS_MAX 2

struct operand {
	struct tensor shadow; /* the tensor as the inner kernel sees it: f32 for f16 */
	bool f16;
	int64_t count;
	size_t at; /* offset of its copy in the workspace */
};

struct input_packing { /* one input for which the kernel requires its own layout */
	int input;
	struct tensor from, packed;
	struct tensor *in, *out;
	struct pack_attr attr;
	struct node node;
	void *state;
	size_t at; /* offset of the packed copy in the workspace */
};

struct emulated {
	const struct cpu_module *module;
	int threads;
	const struct kernel *inner;
	void *state;
	struct node node; /* the node with shadows for tensors */
	struct tensor *in[OPERANDS_MAX], *out[OPERANDS_MAX];
	struct operand operand[2 * OPERANDS_MAX]; /* inputs, then outputs */
	int twin[OPERANDS_MAX];			  /* for each output: the input that is the same tensor; -1: none */
	struct input_packing packs[PACKS_MAX];
	int n_packs;
	bool inner_workspace;
};

#define OP(name) extern const struct kernel name##_cpu;
#include "trainer/ops/ops.def"
#undef OP

static const struct kernel *const inner_kernels[OP_COUNT] = {
#define OP(name) [OP_##name] = &name##_cpu,
#include "trainer/ops/ops.def"
#undef OP
};

static struct tensor *make_f32_shadow(struct operand *o, const struct tensor *t)
{
	if (!t)
		return NULL;
	o->shadow = *t;
	o->f16 = t->dtype == DTYPE_F16;
	o->count = shape_count(&t->shape);
	if (o->f16)
		o->shadow.dtype = DTYPE_F32;
	return &o->shadow;
}

static void make_shadows(struct emulated *e, const struct node *n)
{
	e->node = *n;
	e->node.in = e->in;
	e->node.out = e->out;
	for (int i = 0; i < n->n_in; i++)
		e->in[i] = make_f32_shadow(&e->operand[i], n->in[i]);
	for (int k = 0; k < n->n_out; k++) {
		e->twin[k] = -1;
		for (int i = 0; i < n->n_in; i++)
			if (n->out[k] && n->in[i] == n->out[k])
				e->twin[k] = i;
		e->out[k] = e->twin[k] >= 0 ? e->in[e->twin[k]] : make_f32_shadow(&e->operand[n->n_in + k], n->out[k]);
	}
}

/* The workspace holds the inner kernel's part first, then the copies. */
static void place_f16_copies(struct emulated *e, struct node *n)
{
	size_t at = round_up_bytes(e->node.workspace_bytes, PLAN_ALIGN_BYTES);

	e->inner_workspace = e->node.workspace_bytes > 0;
	for (int i = 0; i < n->n_in + n->n_out; i++)
		if (e->operand[i].f16) {
			e->operand[i].at = at;
			at += round_up_bytes((size_t)e->operand[i].count * sizeof(float) + 1, PLAN_ALIGN_BYTES);
		}
	for (int i = 0; i < e->n_packs; i++) {
		e->packs[i].at = at;
		at += round_up_bytes(e->packs[i].packed.opaque_bytes, PLAN_ALIGN_BYTES);
	}
	n->workspace_bytes = at;
}

/* Packs input i for the inner kernel. */
static int add_pack(struct emulated *e, const struct kernel_env *env, int i, struct err *err)
{
	struct input_packing *p = &e->packs[e->n_packs];
	size_t bytes = e->in[i] && e->inner->pack_bytes ? e->inner->pack_bytes(env, &e->node, i) : 0;

	if (!bytes)
		return 0;
	if (e->n_packs == PACKS_MAX)
		return err_set(err, ERR_UNSUPPORTED, "more than %d packed inputs in f16", PACKS_MAX);
	p->input = i;
	p->from = p->packed = *e->in[i];
	p->packed.opaque_bytes = bytes;
	p->in = &p->from;
	p->out = &p->packed;
	p->attr = (struct pack_attr){ .consumer = &e->node, .index = i };
	p->node = (struct node){ .op = e->node.op, /* names it in messages */
				 .name = e->node.name,
				 .n_in = 1,
				 .n_out = 1,
				 .in = &p->in,
				 .out = &p->out,
				 .attr = &p->attr };
	e->in[i] = &p->packed;
	e->n_packs++;
	return 0;
}

static int prepare_packs(struct emulated *e, const struct kernel_env *env, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < e->node.n_in && !rc; i++)
		rc = add_pack(e, env, i, err);
	for (int i = 0; i < e->n_packs && !rc; i++) {
		struct input_packing *p = &e->packs[i];

		rc = pack_cpu.prepare(env, &p->node, &p->state, err);
		if (p->node.workspace_bytes > e->node.workspace_bytes)
			e->node.workspace_bytes = p->node.workspace_bytes;
	}
	return rc;
}

static void emulate_release(void *state)
{
	struct emulated *e = state;

	if (e && e->inner->release && e->state)
		e->inner->release(e->state);
	cpu_state_release(e);
}

/* Prepares the packs and the inner kernel on f32 shadows of the node's tensors. */
static int emulate_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct emulated *e;
	size_t pack_bytes;
	int rc;

	if (n->n_in > OPERANDS_MAX || n->n_out > OPERANDS_MAX)
		return err_set(err, ERR_UNSUPPORTED, "more than %d operands in f16", OPERANDS_MAX);
	e = mem_zalloc(sizeof(*e));
	e->module = env->module;
	e->threads = env->threads;
	e->inner = inner_kernels[n->op->id];
	make_shadows(e, n);
	e->node.workspace_bytes = 0;
	rc = prepare_packs(e, env, err);
	pack_bytes = e->node.workspace_bytes;
	e->node.workspace_bytes = 0;
	if (!rc && e->inner->prepare)
		rc = e->inner->prepare(env, &e->node, &e->state, err);
	if (rc) {
		emulate_release(e);
		return rc;
	}
	if (pack_bytes > e->node.workspace_bytes)
		e->node.workspace_bytes = pack_bytes;
	place_f16_copies(e, n);
	*ret_state = e;
	return 0;
}

static void run_packs(const struct emulated *e, const struct kernel_args *args, void **in)
{
	for (int i = 0; i < e->n_packs; i++) {
		const struct input_packing *p = &e->packs[i];
		void *out = (unsigned char *)args->workspace + p->at;
		struct kernel_args pack = *args;

		pack.in = &in[p->input];
		pack.out = &out;
		pack_cpu.run(p->state, &pack);
		in[p->input] = out;
	}
}

/* Widens the inputs, packs them, runs the inner kernel and rounds the outputs. */
static void emulate_run(void *state, const struct kernel_args *args)
{
	struct emulated *e = state;
	const struct node *n = &e->node;
	void *in[OPERANDS_MAX], *out[OPERANDS_MAX];
	unsigned char *w = args->workspace;
	struct kernel_args inner = *args;

	inner.in = in;
	inner.out = out;
	inner.workspace = e->inner_workspace ? w : NULL;
	for (int i = 0; i < n->n_in; i++) {
		in[i] = e->operand[i].f16 ? w + e->operand[i].at : args->in[i];
		if (e->operand[i].f16)
			widen_f16(e->module, e->threads, args->in[i], in[i], e->operand[i].count);
	}
	for (int k = 0; k < n->n_out; k++) {
		const struct operand *o = &e->operand[n->n_in + k];

		out[k] = o->f16 ? w + o->at : e->twin[k] >= 0 ? in[e->twin[k]] : args->out[k];
	}
	run_packs(e, args, in);
	e->inner->run(e->state, &inner);
	for (int k = 0; k < n->n_out; k++) {
		const struct operand *o = &e->operand[e->twin[k] >= 0 ? e->twin[k] : n->n_in + k];

		if (o->f16)
			widen_to_f16(e->module, e->threads, out[k], args->out[k], o->count);
	}
}

static const char *emulate_impl(const void *state)
{
	(void)state;
	return "f16 emulated through f32";
}

const struct kernel cpu_emulate = {
	.prepare = emulate_prepare, .run = emulate_run, .release = emulate_release, .impl = emulate_impl
};
