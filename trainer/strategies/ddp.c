/* SPDX-License-Identifier: Apache-2.0 */
/* ddp.c: distributed data parallel. Every rank owns all parameters and differentiates its part of the batch. Gradients
 * are summed over the ranks in buckets (buckets_sum), overlapped with the backward pass. Losses and gradients are sums
 * over samples divided by the global count (xent_grad), so the sum over ranks is the only communication. Parameters
 * stay equal because they start equal and get the same updates. */
#include "tracker/base/round.h"
#include "trainer/strategies/strategy_inside.h"

#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/ops.h"

#define VIEW_ALIGN 64u
#define FIRST_BUCKET_BYTES ((size_t)1 << 20) /* small, so that the first sum starts early */

struct gradient_bucket {
	struct tensor **grad; /* in the order in which they are made */
	int n;
	size_t bytes; /* with each view rounded up */
	int number;
	enum group group; /* group of ranks over which it is summed */
};

/* The gradients' places in the first of the terms become the parameters' gradients. */
static void use_summed_terms(struct graph *g, const struct gradient_bucket *b, struct tensor *terms)
{
	for (int i = 0; i < g->n_tensors && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i], *grad = p->kind == TENSOR_PARAM ? p->grad : NULL;

		for (int k = 0; grad && k < b->n; k++)
			if (grad == b->grad[k])
				p->grad = terms_gradient(g, terms, grad);
	}
}

/* Adds the sum over the ranks after position `at`. */
static void sum_bucket(struct graph *g, struct tensor *flat, const struct gradient_bucket *b,
		       const struct strategy_opts *o, int at)
{
	struct node *n = allreduce_add(g, flat, o->room, STREAM_COMM);

	if (!n)
		return;
	n->phase = PHASE_COMM;
	n->bucket = b->number;
	n->group = b->group;
	if (g->nodes[at - 1]->op == &op_watch) /* it reads what the sum overwrites */
		node_after(g, n, g->nodes[at - 1]);
	graph_move(g, g->n_nodes - 1, at);
}

/* Returns the position of the node that makes t, or of the last node right after it that watches t before the sum. */
static int last_reader(const struct graph *g, const struct tensor *t)
{
	int at = t->producer->id;

	while (at + 1 < g->n_nodes && g->nodes[at + 1]->op == &op_watch)
		at++;
	return at;
}

static int last_of_bucket(const struct graph *g, const struct gradient_bucket *b)
{
	int last = 0;

	for (int i = 0; i < b->n; i++) {
		const int at = last_reader(g, b->grad[i]);

		last = at > last ? at : last;
	}
	return last;
}

/* Makes the flat tensor of a bucket, places its gradients and adds its sum. */
static int add_bucket(struct graph *g, const struct gradient_bucket *b, const struct strategy_opts *o)
{
	size_t each = dtype_bytes(b->grad[0]->dtype);
	struct tensor like = { .kind = TENSOR_GRAD,
			       .dtype = b->grad[0]->dtype,
			       .life = b->grad[0]->life,
			       .space = SPACE_COMM,
			       .name = arena_printf(g->arena, "bucket.%d", b->number) };
	struct tensor *flat;
	size_t at = 0;
	int position = last_of_bucket(g, b) + 1;

	like.shape = SHAPE((int64_t)(b->bytes / each));
	flat = graph_tensor(g, &like);
	if (!flat)
		return -1;
	for (int i = 0; i < b->n; i++) {
		share_place(b->grad[i], flat, at, b->number);
		share_place_of_term(g, b->grad[i]);
		at += round_up_bytes(tensor_bytes(b->grad[i]), VIEW_ALIGN);
	}
	if (o->room && o->accumulates) {
		flat = terms_put(g, flat, o, &position);
		if (flat)
			use_summed_terms(g, b, flat);
	}
	if (!o->more_follow && !graph_failed(g))
		sum_bucket(g, flat, b, o, position);
	return graph_failed(g) ? -1 : 0;
}

static bool is_gradient(const struct graph *g, const struct tensor *t)
{
	if (!t || t->kind != TENSOR_GRAD)
		return false;
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad == t)
			return true;
	return false;
}

/* Lists the gradients of parameters, one type after another, in the order of the nodes that make them; returns their
 * number. */
static int collect_gradients(struct graph *g, struct tensor **grad)
{
	int count = 0;

	for (enum dtype type = DTYPE_F64; type <= DTYPE_F16; type++)
		for (int i = 0; i < g->n_nodes; i++)
			for (int k = 0; k < g->nodes[i]->n_out; k++) {
				struct tensor *t = g->nodes[i]->out[k];

				if (t && t->dtype == type && is_gradient(g, t))
					grad[count++] = t;
			}
	return count;
}

int buckets_sum(struct graph *g, const struct strategy_opts *o, enum group group, struct err *err)
{
	struct tensor **grad = arena_array(g->arena, (size_t)g->n_tensors, sizeof(*grad));
	struct gradient_bucket *all;
	int n_grad, n = 0;

	n_grad = collect_gradients(g, grad);
	all = arena_array(g->arena, (size_t)n_grad + 1, sizeof(*all));
	for (int i = 0; i < n_grad; i++) {
		size_t bytes = round_up_bytes(tensor_bytes(grad[i]), VIEW_ALIGN);
		size_t cap = n <= 1 && FIRST_BUCKET_BYTES < o->bucket_bytes ? FIRST_BUCKET_BYTES : o->bucket_bytes;

		if (n == 0 || all[n - 1].bytes + bytes > cap || all[n - 1].grad[0]->dtype != grad[i]->dtype) {
			all[n] = (struct gradient_bucket){ .grad = grad + i, .number = n, .group = group };
			n++;
		}
		all[n - 1].n++;
		all[n - 1].bytes += bytes;
	}
	for (int b = n - 1; b >= 0; b--)
		if (add_bucket(g, &all[b], o))
			break;
	return share_failed(g, err);
}

static int ddp_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	int rc = 0;

	if (o->world == 1 || !g->training)
		return 0;
	if (o->sync_bn)
		rc = share_batch_norms(g, err);
	if (!rc)
		rc = share_results(g, o, err);
	if (!rc)
		rc = buckets_sum(g, o, GROUP_WORLD, err);
	return rc;
}

const struct strategy strategy_ddp = {
	.rewrite = ddp_rewrite,
	.groups = { [STREAM_COMPUTE] = STRATEGY_GROUP(GROUP_WORLD), [STREAM_COMM] = STRATEGY_GROUP(GROUP_WORLD) },
};
