/* SPDX-License-Identifier: Apache-2.0 */
/* attention_plan.c: builds the operation graphs that the library's engines recognise, operation by operation. Its
 * documentation calls them scaled dot product attention; its training statistics are lse. In the backward pass it sums
 * dq in no fixed order (in f32, in a separate buffer), so --deterministic uses our own kernels. */
#include "trainer/backends/cuda/attention_plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/cudnn_plan.h"

#ifdef HAVE_CUDNN

#define WORKSPACE_MOST ((size_t)64 << 20)

struct attention_plan {
	struct dnn_plan *dnn;
	struct attention_spec spec;
	size_t sum_bytes; /* bytes of dq in f32, at the start of the workspace */
	float scale;
};

enum uid {
	UID_Q = 1,
	UID_K,
	UID_V,
	UID_Y,
	UID_LSE,
	UID_DY,
	UID_DQ,
	UID_DK,
	UID_DV,
	UID_DQ_SUM,
	UID_SCALE,
	UID_LEAST,
	UID_ONE,
	UID_VIRTUAL, /* and all higher numbers */
};

#define ATTR(name, type, count, value) { CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value }
#define COUNT(attrs) ((int)(sizeof(attrs) / sizeof((attrs)[0])))

typedef cudnnBackendDescriptor_t desc; /* NULL once an error occurred */

struct builder {
	struct dnn_graph *g;
	const struct attention_spec *s;
	int64_t next;
	desc scale;
};

/* ---- tensors ---- */

/* Layout of [n, heads, rows, columns] in memory. */
struct tensor_layout {
	int64_t rows, columns, of_n, of_head, of_row, of_column;
};

static desc add_tensor(struct builder *b, int64_t uid, const struct tensor_layout *p, cudnnDataType_t type)
{
	const struct dnn_tensor t = { .uid = uid,
				      .type = type,
				      .n = 4,
				      .dim = { b->s->n, b->s->heads, p->rows, p->columns },
				      .stride = { p->of_n, p->of_head, p->of_row, p->of_column },
				      .swizzled = uid == UID_DQ_SUM };

	return dnn_tensor(b->g, &t);
}

/* A tensor of rows of qkv or y; turned: transposed. */
static desc add_head_rows(struct builder *b, int64_t uid, int64_t row, bool turned)
{
	const struct attention_spec *s = b->s;
	const struct tensor_layout p = { s->seq, s->d, s->seq * row, s->d, row, 1 };
	const struct tensor_layout q = { s->d, s->seq, s->seq * row, s->d, 1, row };

	return add_tensor(b, uid, turned ? &q : &p, dnn_type(s->type));
}

static desc add_lse(struct builder *b)
{
	const struct attention_spec *s = b->s;
	const struct tensor_layout p = { s->seq, 1, s->seq * s->heads, 1, s->heads, 1 };

	return add_tensor(b, UID_LSE, &p, CUDNN_DATA_FLOAT);
}

static desc add_dq_sum(struct builder *b)
{
	const struct attention_spec *s = b->s;
	const struct tensor_layout p = { s->seq, s->d, s->heads * s->seq * s->d, s->seq * s->d, s->d, 1 };

	return add_tensor(b, UID_DQ_SUM, &p, CUDNN_DATA_FLOAT);
}

static desc add_constant(struct builder *b, int64_t uid)
{
	const struct dnn_tensor t = { .uid = uid,
				      .type = CUDNN_DATA_FLOAT,
				      .n = 4,
				      .dim = { 1, 1, 1, 1 },
				      .stride = { 1, 1, 1, 1 },
				      .by_value = true };

	return dnn_tensor(b->g, &t);
}

/* An intermediate [rows, columns] per head that is never stored. turned: the stride of columns is the larger one. */
static desc add_intermediate(struct builder *b, cudnnDataType_t type, int64_t rows, int64_t columns, bool turned)
{
	const struct dnn_tensor t = { .uid = b->next++,
				      .type = type,
				      .n = 4,
				      .dim = { b->s->n, b->s->heads, rows, columns },
				      .stride = { b->s->heads * rows * columns, rows * columns, turned ? 1 : columns,
						  turned ? rows : 1 },
				      .virtual = true };

	return dnn_tensor(b->g, &t);
}

/* An intermediate with rows of heads as in memory, `row` apart. */
static desc add_intermediate_rows(struct builder *b, int64_t row)
{
	const struct attention_spec *s = b->s;
	const struct dnn_tensor t = { .uid = b->next++,
				      .type = dnn_type(s->type),
				      .n = 4,
				      .dim = { s->n, s->heads, s->seq, s->d },
				      .stride = { s->seq * row, s->d, row, 1 },
				      .virtual = true };

	return dnn_tensor(b->g, &t);
}

static desc add_scores(struct builder *b, cudnnDataType_t type)
{
	return add_intermediate(b, type, b->s->seq, b->s->seq, false);
}

static desc add_row_values(struct builder *b)
{
	return add_intermediate(b, CUDNN_DATA_FLOAT, b->s->seq, 1, false);
}

/* ---- operations ---- */

static desc add_product(struct builder *b, desc left, desc right, desc result)
{
	const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
	const struct dnn_attr kind[] = { ATTR(MATMUL_COMP_TYPE, DATA_TYPE, 1, &sums) };
	const desc product = dnn_make(b->g, CUDNN_BACKEND_MATMUL_DESCRIPTOR, kind, COUNT(kind));
	const struct dnn_attr attrs[] = {
		ATTR(OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, 1, &left),
		ATTR(OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, 1, &right),
		ATTR(OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, 1, &result),
		ATTR(OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, 1, &product),
	};

	dnn_op(b->g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, attrs, COUNT(attrs));
	return result;
}

/* An elementwise operation: mode, type, and for index operations the axis. */
struct elementwise {
	cudnnPointwiseMode_t mode;
	cudnnDataType_t type;
	int64_t axis;
};

static desc make_pointwise(struct builder *b, const struct elementwise *e)
{
	const struct dnn_attr attrs[] = {
		ATTR(POINTWISE_MODE, POINTWISE_MODE, 1, &e->mode),
		ATTR(POINTWISE_MATH_PREC, DATA_TYPE, 1, &e->type),
		ATTR(POINTWISE_AXIS, INT64, 1, &e->axis),
	};

	return dnn_make(b->g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, attrs, e->mode == CUDNN_POINTWISE_GEN_INDEX ? 3 : 2);
}

/* Adds result = x mode other; with a third operand: x where it is true, else other. Absent operands are NULL. */
static desc add_pointwise(struct builder *b, const struct elementwise *e, const desc (*of)[3], desc result)
{
	const desc kind = make_pointwise(b, e), *in = *of;
	struct dnn_attr attrs[] = {
		ATTR(OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &kind),
		ATTR(OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &in[0]),
		ATTR(OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &result),
		ATTR(OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &in[1]),
		ATTR(OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR, 1, &in[2]),
	};

	dnn_op(b->g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attrs, in[2] ? 5 : in[1] ? 4 : 3);
	return result;
}

static desc add_f32_op(struct builder *b, cudnnPointwiseMode_t mode, desc x, desc other, desc result)
{
	const struct elementwise e = { mode, CUDNN_DATA_FLOAT, 0 };
	const desc of[3] = { x, other, NULL };

	return add_pointwise(b, &e, &of, result);
}

static desc add_score_op(struct builder *b, cudnnPointwiseMode_t mode, desc x, desc other)
{
	return add_f32_op(b, mode, x, other, add_scores(b, CUDNN_DATA_FLOAT));
}

static desc add_row_reduction(struct builder *b, cudnnReduceTensorOp_t op, desc x, desc result)
{
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const struct dnn_attr kind[] = {
		ATTR(REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &op),
		ATTR(REDUCTION_COMP_TYPE, DATA_TYPE, 1, &type),
	};
	const desc reduction = dnn_make(b->g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, kind, COUNT(kind));
	const struct dnn_attr attrs[] = {
		ATTR(OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR, 1, &x),
		ATTR(OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR, 1, &result),
		ATTR(OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR, 1, &reduction),
	};

	dnn_op(b->g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, attrs, COUNT(attrs));
	return result;
}

/* Adds a transposition of rows and columns. */
static desc add_transpose(struct builder *b, desc x, desc result)
{
	const struct dnn_attr attrs[] = {
		ATTR(OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, 1, &x),
		ATTR(OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, 1, &result),
	};

	dnn_op(b->g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, attrs, COUNT(attrs));
	return result;
}

static desc add_position_index(struct builder *b, int64_t axis, desc like)
{
	const struct elementwise e = { CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis };
	const desc of[3] = { like, NULL, NULL };

	return add_pointwise(b, &e, &of, add_scores(b, CUDNN_DATA_INT32));
}

/* Masks scores of keys after their query with the lowest number. */
static desc add_causal_mask(struct builder *b, desc s)
{
	const desc row = add_position_index(b, 2, s), column = add_position_index(b, 3, s);
	const struct elementwise compare = { CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0 };
	const struct elementwise select = { CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0 };
	const desc both[3] = { row, column, NULL };
	const desc seen = add_pointwise(b, &compare, &both, add_scores(b, CUDNN_DATA_BOOLEAN));
	const desc of[3] = { s, add_constant(b, UID_LEAST), seen };

	return add_pointwise(b, &select, &of, add_scores(b, CUDNN_DATA_FLOAT));
}

/* Adds q . k / sqrt(d), masked to the keys that a query sees. */
static desc add_masked_scores(struct builder *b, desc q, desc k)
{
	const desc s = add_product(b, q, k, add_scores(b, CUDNN_DATA_FLOAT));

	return add_causal_mask(b, add_score_op(b, CUDNN_POINTWISE_MUL, s, b->scale));
}

/* ---- graphs ---- */

static void build_attention_forward(struct builder *b)
{
	const int64_t c = b->s->heads * b->s->d;
	const desc q = add_head_rows(b, UID_Q, 3 * c, false), k = add_head_rows(b, UID_K, 3 * c, true);
	const desc v = add_head_rows(b, UID_V, 3 * c, false), y = add_head_rows(b, UID_Y, c, false);
	const desc s = add_masked_scores(b, q, k),
		   max = add_row_reduction(b, CUDNN_REDUCE_TENSOR_MAX, s, add_row_values(b));
	const desc above = add_score_op(b, CUDNN_POINTWISE_SUB, s, max);
	const desc powers = add_score_op(b, CUDNN_POINTWISE_EXP, above, NULL);
	const desc sum = add_row_reduction(b, CUDNN_REDUCE_TENSOR_ADD, powers, add_row_values(b));
	const desc log_sum = add_f32_op(b, CUDNN_POINTWISE_LOG, sum, NULL, add_row_values(b));

	add_f32_op(b, CUDNN_POINTWISE_ADD, max, log_sum, add_lse(b));
	add_product(b, add_f32_op(b, CUDNN_POINTWISE_DIV, powers, sum, add_scores(b, dnn_type(b->s->type))), v, y);
}

/* Adds dy . y per row. */
static desc add_inner_products(struct builder *b, desc dy, desc y, desc one)
{
	const desc each = add_intermediate(b, CUDNN_DATA_FLOAT, b->s->seq, b->s->d, false);
	const desc products = add_f32_op(b, CUDNN_POINTWISE_MUL, dy, y, each);
	const desc sums = add_row_reduction(b, CUDNN_REDUCE_TENSOR_ADD, products, add_row_values(b));

	return add_f32_op(b, CUDNN_POINTWISE_MUL, sums, one, add_row_values(b));
}

/* Adds the operations of dq, dk and dv; probabilities are recomputed from q, k and the row LSE. */
static void build_attention_backward(struct builder *b)
{
	const struct attention_spec *s = b->s;
	const int64_t c = s->heads * s->d;
	const cudnnDataType_t low = dnn_type(s->type);
	const desc q = add_head_rows(b, UID_Q, 3 * c, false), k = add_head_rows(b, UID_K, 3 * c, true);
	const desc v = add_head_rows(b, UID_V, 3 * c, true), y = add_head_rows(b, UID_Y, c, false);
	const desc dy = add_head_rows(b, UID_DY, c, false), one = add_constant(b, UID_ONE), sum = add_dq_sum(b);
	const desc inner = add_inner_products(b, dy, y, one), seen = add_masked_scores(b, q, k);
	const desc p =
		add_score_op(b, CUDNN_POINTWISE_EXP, add_score_op(b, CUDNN_POINTWISE_SUB, seen, add_lse(b)), NULL);
	desc ds, dp, k_rows;

	add_product(b, add_transpose(b, p, add_intermediate(b, low, s->seq, s->seq, true)), dy,
		    add_head_rows(b, UID_DV, 3 * c, false));
	dp = add_score_op(b, CUDNN_POINTWISE_MUL, add_product(b, dy, v, add_scores(b, CUDNN_DATA_FLOAT)), one);
	ds = add_score_op(b, CUDNN_POINTWISE_MUL, add_score_op(b, CUDNN_POINTWISE_SUB, dp, inner), p);
	ds = add_score_op(b, CUDNN_POINTWISE_MUL, ds, b->scale);
	add_product(b, add_transpose(b, ds, add_intermediate(b, low, s->seq, s->seq, true)), q,
		    add_head_rows(b, UID_DK, 3 * c, false));
	k_rows = add_transpose(b, k, add_intermediate_rows(b, 3 * c));
	add_product(b, ds, k_rows, sum);
	add_f32_op(b, CUDNN_POINTWISE_IDENTITY, sum, NULL, add_head_rows(b, UID_DQ, 3 * c, false));
}

int attention_plan_new(struct attention_plan **ret, const struct kernel_env *env, const struct attention_spec *spec,
		       struct err *err)
{
	const struct dnn_wish wish = { .workspace_max = WORKSPACE_MOST, .tensor_cores = true };
	struct dnn_graph g = { .module = env->module,
			       .key = { 'a', spec->backward, spec->type, spec->n, spec->heads, spec->seq, spec->d } };
	struct builder b = { .g = &g, .s = spec, .next = UID_VIRTUAL };
	struct attention_plan *p;
	int rc;

	if (!g.module || (!g.module->dnn && !g.module->dnn_device))
		return err_set(err, ERR_UNSUPPORTED, "cuDNN is not open");
	p = mem_zalloc(sizeof(*p));
	p->spec = *spec;
	p->scale = (float)(1 / sqrt((double)spec->d));
	b.scale = add_constant(&b, UID_SCALE);
	if (spec->backward) {
		p->sum_bytes = (size_t)(spec->n * spec->heads * spec->seq * spec->d) * sizeof(float);
		build_attention_backward(&b);
	} else {
		build_attention_forward(&b);
	}
	rc = dnn_plan_new(&p->dnn, &g, &wish, 1, err);
	if (rc) {
		free(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void attention_plan_free(struct attention_plan *p)
{
	if (p)
		dnn_plan_free(p->dnn);
	free(p);
}

size_t attention_plan_workspace(const struct attention_plan *p)
{
	return p->sum_bytes + dnn_plan_workspace(p->dnn);
}

static void bind_operand(struct dnn_operands *o, int64_t uid, const void *at)
{
	o->uid[o->n] = uid;
	o->address[o->n++] = (void *)at;
}

void attention_plan_run(struct attention_plan *p, const struct node *n, const struct attention_operands *o)
{
	static const float least = -FLT_MAX, one = 1;
	const size_t row = (size_t)(p->spec.heads * p->spec.d) * dtype_bytes(p->spec.type);
	const char *qkv = o->qkv, *dqkv = o->dqkv;
	struct dnn_operands all = { .workspace = (char *)o->workspace + p->sum_bytes, .stream = o->stream };

	for (int i = 0; i < 3; i++)
		bind_operand(&all, UID_Q + i, qkv + (size_t)i * row);
	bind_operand(&all, UID_Y, o->y);
	bind_operand(&all, UID_LSE, o->lse);
	bind_operand(&all, UID_SCALE, &p->scale);
	bind_operand(&all, UID_LEAST, &least);
	if (p->spec.backward) {
		for (int i = 0; i < 3; i++)
			bind_operand(&all, UID_DQ + i, dqkv + (size_t)i * row);
		bind_operand(&all, UID_DY, o->dy);
		bind_operand(&all, UID_DQ_SUM, o->workspace);
		bind_operand(&all, UID_ONE, &one);
	}
	dnn_plan_run(p->dnn, n, &all);
}

#else

int attention_plan_new(struct attention_plan **ret, const struct kernel_env *env, const struct attention_spec *spec,
		       struct err *err)
{
	(void)ret, (void)env, (void)spec;
	return err_set(err, ERR_UNSUPPORTED, "built without cuDNN");
}

void attention_plan_free(struct attention_plan *p)
{
	(void)p;
}

size_t attention_plan_workspace(const struct attention_plan *p)
{
	(void)p;
	return 0;
}

void attention_plan_run(struct attention_plan *p, const struct node *n, const struct attention_operands *o)
{
	(void)p, (void)n, (void)o;
}

#endif
