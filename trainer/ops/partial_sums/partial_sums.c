/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums.c: see partial_sums.h. */
#include "trainer/ops/partial_sums/partial_sums.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

struct node *term_push_add(struct graph *g, struct tensor *x, const struct partial_sums_spec *s)
{
	const struct partial_sums_attr attr = { s->room };
	struct tensor like = { .kind = x->kind, .dtype = x->dtype, .shape = SHAPE(s->room * shape_count(&x->shape)),
			       .life = s->life, .space = s->space };
	struct tensor *terms;

	like.name = graph_printf(g, "%s.terms", x->name);
	if (like.kind == TENSOR_RESULT)
		like.kind = TENSOR_ACT; /* the host reads only the sum */
	terms = like.name ? graph_tensor(g, &like) : NULL;
	return terms ? graph_node(g, &(struct node_spec){ .op = &op_term_push, .name = like.name, NODE_IN(terms, x),
							  NODE_OUT(terms), NODE_ATTR(attr) })
		     : NULL;
}

struct node *term_fold_add(struct graph *g, struct tensor *terms, int room)
{
	const struct partial_sums_attr attr = { room };

	return graph_node(g, &(struct node_spec){ .op = &op_term_fold, .name = graph_printf(g, "%s.fold", terms->name),
						  NODE_IN(terms), NODE_OUT(terms), NODE_ATTR(attr) });
}

struct tensor *partial_sums_first(struct graph *g, struct tensor *terms, const struct tensor *like)
{
	struct tensor first = *like;

	first.producer = NULL;
	first.grad = NULL;
	first.space = terms->space;
	first.life = terms->life;
	first.base = terms->base ? terms->base : terms;
	first.base_offset = terms->base_offset;
	return graph_tensor(g, &first);
}

static bool fits_terms(const struct node *n, const struct tensor *terms, int64_t count)
{
	const struct partial_sums_attr *a = n->attr;

	return a && a->room > 0 && n->out[0] == terms && shape_count(&terms->shape) == a->room * count;
}

static int term_push_shape(struct graph *g, struct node *n)
{
	const bool alike = n->in[0]->dtype == n->in[1]->dtype;

	return graph_expect(g, n, alike && fits_terms(n, n->in[0], shape_count(&n->in[1]->shape)),
			    "partial sums and term differ in type or size");
}

static int term_fold_shape(struct graph *g, struct node *n)
{
	const int room = ((const struct partial_sums_attr *)n->attr)->room;

	return graph_expect(g, n, room > 0 && fits_terms(n, n->in[0], shape_count(&n->in[0]->shape) / room),
			    "partial sums must be added in place");
}

static void terms_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " room=%d", ((const struct partial_sums_attr *)n->attr)->room);
}

const struct op op_term_push = {
	.name = "term_push",
	.id = OP_term_push,
	.shape = term_push_shape,
	.dtype = op_dtype_keep,
	.dump = terms_dump,
};

const struct op op_term_fold = {
	.name = "term_fold",
	.id = OP_term_fold,
	.shape = term_fold_shape,
	.dtype = op_dtype_keep,
	.dump = terms_dump,
};

/* ---- ref ----
 * Partial sums over all elements at once. */

static void run_terms_push_ref(void *state, const struct kernel_args *args)
{
	const struct partial_sums_host s = partial_sums_host_of(state);

	partial_sums_push_range(&s, args, (struct partial_sums_range){ 0, s.count });
}

static void run_terms_fold_ref(void *state, const struct kernel_args *args)
{
	const struct partial_sums_host s = partial_sums_host_of(state);

	partial_sums_fold_range(&s, args, (struct partial_sums_range){ 0, s.count });
}

const struct kernel term_push_ref = REF_KERNEL(run_terms_push_ref);
const struct kernel term_fold_ref = REF_KERNEL(run_terms_fold_ref);
