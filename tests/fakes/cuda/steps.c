/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: graphs of several operations, as attention is described to cuDNN: products, pointwise operations,
 * reductions, other views of the same memory. Each is computed completely as described, in the given order; tensors
 * between them are rounded to their type. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/cuda/descriptor.h"

#define TENSORS_MAX 64

struct tensor {
	struct operand as;
	float *v; /* row-major, whatever the strides; NULL: not computed yet */
};

struct run {
	const struct steps *given;
	struct tensor at[TENSORS_MAX];
	int n;
};

/* Operands of an operation, in the order in which compute() expects them; the first is the result. */
static const struct form {
	cudnnBackendDescriptorType_t kind;
	cudnnBackendAttributeName_t what, operand[4]; /* what: its own description; 0: it has none */
	int least, most;			       /* operands */
} forms[] = {
	{ CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
	  CUDNN_ATTR_OPERATION_MATMUL_DESC,
	  { CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC },
	  3,
	  3 },
	{ CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
	  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
	  { CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
	    CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC },
	  2,
	  4 },
	{ CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
	  CUDNN_ATTR_OPERATION_REDUCTION_DESC,
	  { CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_ATTR_OPERATION_REDUCTION_XDESC },
	  2,
	  2 },
	{ CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
	  0,
	  { CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_ATTR_OPERATION_RESHAPE_XDESC },
	  2,
	  2 },
};

struct step {
	const struct form *form;
	const struct descriptor *what;
	struct operand of[4];
	int n;
};

static bool read_step(struct step *ret, const struct descriptor *op)
{
	*ret = (struct step){ 0 };
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].kind == op->kind)
			ret->form = &forms[i];
	if (!ret->form)
		return false;
	ret->what = ret->form->what ? inner(op, ret->form->what) : NULL;
	while (ret->n < ret->form->most) {
		const struct descriptor *t = inner(op, ret->form->operand[ret->n]);

		if (!t)
			break;
		if (!read_operand(&ret->of[ret->n++], t))
			return false;
	}
	return ret->n >= ret->form->least && (ret->what || !ret->form->what);
}

static const struct descriptor *const *ops_of(const struct descriptor *graph, int64_t *ret_n)
{
	return find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, ret_n);
}

/* ---- supported graphs ---- */

/* Whether every size of t is that of `like`, or 1. */
static bool spreads_over(const struct operand *t, const struct operand *like)
{
	for (int i = 0; i < 4; i++)
		if (t->dim[i] != like->dim[i] && t->dim[i] != 1)
			return false;
	return true;
}

static bool fits(const struct step *s)
{
	const struct operand *y = &s->of[0], *a = &s->of[1], *b = &s->of[2];

	if (s->form->kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
		return count_of(y) == count_of(a);
	if (s->form->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
		return spreads_over(y, a);
	if (s->form->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
		return a->dim[3] == b->dim[2] && y->dim[2] == a->dim[2] && y->dim[3] == b->dim[3] &&
		       y->dim[0] * y->dim[1] == a->dim[0] * a->dim[1] && y->dim[0] * y->dim[1] == b->dim[0] * b->dim[1];
	for (int i = 1; i < s->n; i++)
		if (!spreads_over(&s->of[i], y))
			return false;
	return true;
}

/* Tensors in memory of 16 bits: contiguous rows of a multiple of 8 elements. */
static bool is_laid_out(const struct operand *t)
{
	const bool low = t->type == CUDNN_DATA_HALF || t->type == CUDNN_DATA_BFLOAT16;

	if (!low || t->virtual)
		return true;
	return (t->stride[3] == 1 && t->dim[3] % 8 == 0) || (t->stride[2] == 1 && t->dim[2] % 8 == 0);
}

bool steps_supported(const struct descriptor *graph)
{
	int64_t n = 0;
	const struct descriptor *const *ops = ops_of(graph, &n);

	for (int64_t i = 0; i < n; i++) {
		struct step s;

		if (!read_step(&s, ops[i]) || !fits(&s))
			return false;
		for (int k = 0; k < s.n; k++)
			if (!is_laid_out(&s.of[k]))
				return false;
	}
	return n > 1;
}

/* ---- tensors of a run ---- */

static int64_t place_of(const struct operand *t, int64_t at)
{
	int64_t place = 0;

	for (int i = 3; i >= 0; i--) {
		place += at % t->dim[i] * t->stride[i];
		at /= t->dim[i];
	}
	return place;
}

static int given_at(const struct steps *s, int64_t uid)
{
	for (int i = 0; i < s->n; i++)
		if (s->uid[i] == uid)
			return i;
	wrong("a tensor in memory has no address");
}

/* Returns the tensor of that number; reads it if it is an input. */
static struct tensor *tensor_of(struct run *r, const struct operand *t, bool is_result)
{
	struct tensor *found = NULL;
	int at;

	for (int i = 0; i < r->n && !found; i++)
		if (r->at[i].as.uid == t->uid)
			found = &r->at[i];
	if (!found && r->n == TENSORS_MAX)
		wrong("too many tensors");
	if (found && found->v)
		return found;
	if (!found)
		found = &r->at[r->n++];
	found->as = *t;
	found->v = calloc((size_t)count_of(t) + 1, sizeof(float));
	if (!found->v)
		wrong("out of memory");
	if (is_result)
		return found;
	if (t->virtual)
		wrong("a tensor is used before it is computed");
	at = given_at(r->given, t->uid);
	for (int64_t i = 0; i < count_of(t); i++)
		found->v[i] = t->by_value ? r->given->value[at] :
					    element(r->given->address[at], t->type, place_of(t, i));
	return found;
}

/* Rounds a result to its type, and stores it if it is in memory. */
static void finish(struct run *r, struct tensor *t)
{
	const cudnnDataType_t type = t->as.type;
	float kept[1];

	for (int64_t i = 0; i < count_of(&t->as); i++) {
		if (type != CUDNN_DATA_INT32 && type != CUDNN_DATA_BOOLEAN) {
			put_element(kept, type, 0, t->v[i]);
			t->v[i] = element(kept, type, 0);
		}
		if (!t->as.virtual)
			put_element(r->given->address[given_at(r->given, t->as.uid)], type, place_of(&t->as, i),
				    t->v[i]);
	}
}

/* ---- operations ---- */

static void multiply(struct tensor *c, const struct tensor *a, const struct tensor *b)
{
	const int64_t m = c->as.dim[2], n = c->as.dim[3], k = a->as.dim[3];

	for (int64_t at = 0; at < count_of(&c->as); at++) {
		const int64_t head = at / (m * n), row = at / n % m, column = at % n;
		float sum = 0;

		for (int64_t i = 0; i < k; i++)
			sum += a->v[(head * m + row) * k + i] * b->v[(head * k + i) * n + column];
		c->v[at] = sum;
	}
}

/* Index in t of an element of `like`: 0 along sizes of 1. */
static int64_t index_in(const struct operand *t, const struct operand *like, int64_t at)
{
	int64_t index = 0, step = 1;

	for (int i = 3; i >= 0; i--) {
		if (t->dim[i] > 1)
			index += at % like->dim[i] * step;
		at /= like->dim[i];
		step *= t->dim[i];
	}
	return index;
}

static int64_t index_along(const struct operand *t, int64_t axis, int64_t at)
{
	for (int64_t i = 3; i > axis; i--)
		at /= t->dim[i];
	return at % t->dim[axis];
}

static float of_elements(cudnnPointwiseMode_t mode, const float *v)
{
	switch (mode) {
	case CUDNN_POINTWISE_ADD:
		return v[0] + v[1];
	case CUDNN_POINTWISE_SUB:
		return v[0] - v[1];
	case CUDNN_POINTWISE_MUL:
		return v[0] * v[1];
	case CUDNN_POINTWISE_DIV:
		return v[0] / v[1];
	case CUDNN_POINTWISE_EXP:
		return expf(v[0]);
	case CUDNN_POINTWISE_LOG:
		return logf(v[0]);
	case CUDNN_POINTWISE_IDENTITY:
		return v[0];
	case CUDNN_POINTWISE_CMP_GE:
		return v[0] >= v[1];
	case CUDNN_POINTWISE_BINARY_SELECT:
		return v[2] != 0 ? v[0] : v[1];
	default:
		wrong("an operation on elements that the fake does not have");
	}
}

static void each(const struct step *s, struct tensor **t)
{
	const cudnnPointwiseMode_t *mode =
		find(s->what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, NULL);
	const int64_t *axis = find(s->what, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, NULL);
	const struct operand *y = &t[0]->as;

	if (!mode || (*mode == CUDNN_POINTWISE_GEN_INDEX && !axis))
		wrong("an operation on elements lacks something");
	for (int64_t at = 0; at < count_of(y); at++) {
		float v[3] = { 0 };

		for (int i = 1; i < s->n; i++)
			v[i - 1] = t[i]->v[index_in(&t[i]->as, y, at)];
		t[0]->v[at] = *mode == CUDNN_POINTWISE_GEN_INDEX ? (float)index_along(y, *axis, at) :
								   of_elements(*mode, v);
	}
}

static void reduce(const struct step *s, struct tensor *y, const struct tensor *x)
{
	const cudnnReduceTensorOp_t *op =
		find(s->what, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, NULL);

	if (!op || (*op != CUDNN_REDUCE_TENSOR_MAX && *op != CUDNN_REDUCE_TENSOR_ADD))
		wrong("a reduction that the fake does not have");
	for (int64_t i = 0; i < count_of(&y->as); i++)
		y->v[i] = *op == CUDNN_REDUCE_TENSOR_MAX ? -INFINITY : 0;
	for (int64_t i = 0; i < count_of(&x->as); i++) {
		float *to = &y->v[index_in(&y->as, &x->as, i)];

		*to = *op == CUDNN_REDUCE_TENSOR_ADD ? *to + x->v[i] : fmaxf(*to, x->v[i]);
	}
}

/* Copies the data at x's address, by y's strides. */
static void view(struct tensor *y, const struct tensor *x)
{
	const int64_t count = count_of(&x->as);
	int64_t most = 0;
	float *memory;

	for (int i = 0; i < 4; i++)
		most += (x->as.dim[i] - 1) * x->as.stride[i];
	memory = calloc((size_t)most + 1, sizeof(*memory));
	if (!memory)
		wrong("out of memory");
	for (int64_t i = 0; i < count; i++)
		memory[place_of(&x->as, i)] = x->v[i];
	for (int64_t i = 0; i < count; i++) {
		if (place_of(&y->as, i) > most)
			wrong("a view beyond its tensor");
		y->v[i] = memory[place_of(&y->as, i)];
	}
	free(memory);
}

static void compute(struct run *r, const struct step *s)
{
	struct tensor *t[4] = { NULL };

	for (int i = s->n - 1; i >= 0; i--)
		t[i] = tensor_of(r, &s->of[i], i == 0);
	if (s->form->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
		multiply(t[0], t[1], t[2]);
	else if (s->form->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
		each(s, t);
	else if (s->form->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
		reduce(s, t[0], t[1]);
	else
		view(t[0], t[1]);
	finish(r, t[0]);
}

/* ---- runs ---- */

void steps_bind(struct steps *s)
{
	int64_t n = 0;
	const struct descriptor *const *ops = ops_of(s->graph, &n);

	for (int64_t i = 0; i < n; i++) {
		struct step step;

		read_step(&step, ops[i]);
		for (int k = 0; k < step.n; k++) {
			const struct operand *t = &step.of[k];
			const int at = t->virtual ? -1 : given_at(s, t->uid);

			if (at >= 0 && t->by_value)
				s->value[at] = *(const float *)s->address[at];
			else if (at >= 0 && (uintptr_t)s->address[at] % 16)
				wrong("an operand is less aligned than its descriptor says");
		}
	}
}

void steps_run(const void *steps)
{
	struct run r = { .given = steps };
	int64_t n = 0;
	const struct descriptor *const *ops = ops_of(r.given->graph, &n);

	for (int64_t i = 0; i < n; i++) {
		struct step s;

		read_step(&s, ops[i]);
		compute(&r, &s);
	}
	for (int i = 0; i < r.n; i++)
		free(r.at[i].v);
}
