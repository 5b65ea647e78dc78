/* attention_plan.c: see attention_plan.h. The graphs are those that the library's engines look for, operation by
 * operation: its documentation calls them scaled dot product attention, and its training results are lse's. Backward dq
 * is summed in any order (in a sum of its own in f32): --deterministic goes by own kernels. */
#include "trainer/backends/cuda/attention_plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "trainer/backends/cuda/cudnn_plan.h"

#ifdef HAVE_CUDNN

#define WORKSPACE_MOST ((size_t)64 << 20)

struct attention_plan {
	struct dnn_plan *dnn;
	struct attention_spec spec;
	size_t sum_bytes; /* of dq in f32, the first part of the workspace */
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
	UID_VIRTUAL, /* and on */
};

#define ATTR(name, type, count, value) { CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value }
#define COUNT(attrs) ((int)(sizeof(attrs) / sizeof((attrs)[0])))

typedef cudnnBackendDescriptor_t desc; /* NULL once something failed */

struct builder {
	struct dnn_graph *g;
	const struct attention_spec *s;
	int64_t next;
	desc scale;
};

/* ---- tensors ---- */

/* [n, heads, rows, columns] in memory; rows and columns: their strides. */
struct place {
	int64_t rows, columns, of_n, of_head, of_row, of_column;
};

static desc real(struct builder *b, int64_t uid, const struct place *p, cudnnDataType_t type)
{
	const struct dnn_tensor t = { .uid = uid,
				      .type = type,
				      .n = 4,
				      .dim = { b->s->n, b->s->heads, p->rows, p->columns },
				      .stride = { p->of_n, p->of_head, p->of_row, p->of_column },
				      .swizzled = uid == UID_DQ_SUM };

	return dnn_tensor(b->g, &t);
}

/* Rows of qkv, or of y; turned: their columns become rows. */
static desc of_heads(struct builder *b, int64_t uid, int64_t row, bool turned)
{
	const struct attention_spec *s = b->s;
	const struct place p = { s->seq, s->d, s->seq * row, s->d, row, 1 };
	const struct place q = { s->d, s->seq, s->seq * row, s->d, 1, row };

	return real(b, uid, turned ? &q : &p, dnn_type(s->type));
}

static desc log_sums(struct builder *b)
{
	const struct attention_spec *s = b->s;
	const struct place p = { s->seq, 1, s->seq * s->heads, 1, s->heads, 1 };

	return real(b, UID_LSE, &p, CUDNN_DATA_FLOAT);
}

static desc dq_sum(struct builder *b)
{
	const struct attention_spec *s = b->s;
	const struct place p = { s->seq, s->d, s->heads * s->seq * s->d, s->seq * s->d, s->d, 1 };

	return real(b, UID_DQ_SUM, &p, CUDNN_DATA_FLOAT);
}

static desc constant(struct builder *b, int64_t uid)
{
	const struct dnn_tensor t = { .uid = uid,
				      .type = CUDNN_DATA_FLOAT,
				      .n = 4,
				      .dim = { 1, 1, 1, 1 },
				      .stride = { 1, 1, 1, 1 },
				      .by_value = true };

	return dnn_tensor(b->g, &t);
}

/* Between two operations: rows x columns of each head, that never lie in memory. turned: the columns' stride is the
 * longer one. */
static desc between(struct builder *b, cudnnDataType_t type, int64_t rows, int64_t columns, bool turned)
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

/* Rows of heads as in memory, `row` apart. */
static desc rows_between(struct builder *b, int64_t row)
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

static desc scores(struct builder *b, cudnnDataType_t type)
{
	return between(b, type, b->s->seq, b->s->seq, false);
}

static desc row_values(struct builder *b)
{
	return between(b, CUDNN_DATA_FLOAT, b->s->seq, 1, false);
}

/* ---- operations ---- */

static desc product_into(struct builder *b, desc left, desc right, desc result)
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

/* An operation on elements: what it does, in which type; of indices: along which axis. */
struct elementwise {
	cudnnPointwiseMode_t mode;
	cudnnDataType_t type;
	int64_t axis;
};

static desc kind_of(struct builder *b, const struct elementwise *e)
{
	const struct dnn_attr attrs[] = {
		ATTR(POINTWISE_MODE, POINTWISE_MODE, 1, &e->mode),
		ATTR(POINTWISE_MATH_PREC, DATA_TYPE, 1, &e->type),
		ATTR(POINTWISE_AXIS, INT64, 1, &e->axis),
	};

	return dnn_make(b->g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, attrs,
			e->mode == CUDNN_POINTWISE_GEN_INDEX ? 3 : 2);
}

/* result = x mode other; with `where`: x where that holds, else other. other, where: NULL: none. */
static desc apply(struct builder *b, const struct elementwise *e, const desc (*of)[3], desc result)
{
	const desc kind = kind_of(b, e), *in = *of;
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

static desc in_f32(struct builder *b, cudnnPointwiseMode_t mode, desc x, desc other, desc result)
{
	const struct elementwise e = { mode, CUDNN_DATA_FLOAT, 0 };
	const desc of[3] = { x, other, NULL };

	return apply(b, &e, &of, result);
}

static desc on_scores(struct builder *b, cudnnPointwiseMode_t mode, desc x, desc other)
{
	return in_f32(b, mode, x, other, scores(b, CUDNN_DATA_FLOAT));
}

static desc along_row(struct builder *b, cudnnReduceTensorOp_t op, desc x, desc result)
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

/* The same elements, rows and columns exchanged. */
static desc turned(struct builder *b, desc x, desc result)
{
	const struct dnn_attr attrs[] = {
		ATTR(OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, 1, &x),
		ATTR(OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, 1, &result),
	};

	dnn_op(b->g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, attrs, COUNT(attrs));
	return result;
}

static desc index_along(struct builder *b, int64_t axis, desc like)
{
	const struct elementwise e = { CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis };
	const desc of[3] = { like, NULL, NULL };

	return apply(b, &e, &of, scores(b, CUDNN_DATA_INT32));
}

/* Where a key lies behind its query: the least number there is. */
static desc causal(struct builder *b, desc s)
{
	const desc row = index_along(b, 2, s), column = index_along(b, 3, s);
	const struct elementwise compare = { CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0 };
	const struct elementwise select = { CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0 };
	const desc both[3] = { row, column, NULL };
	const desc seen = apply(b, &compare, &both, scores(b, CUDNN_DATA_BOOLEAN));
	const desc of[3] = { s, constant(b, UID_LEAST), seen };

	return apply(b, &select, &of, scores(b, CUDNN_DATA_FLOAT));
}

/* q . k / sqrt(d) for keys that a query sees. */
static desc seen_scores(struct builder *b, desc q, desc k)
{
	const desc s = product_into(b, q, k, scores(b, CUDNN_DATA_FLOAT));

	return causal(b, on_scores(b, CUDNN_POINTWISE_MUL, s, b->scale));
}

/* ---- graphs ---- */

static void forward(struct builder *b)
{
	const int64_t c = b->s->heads * b->s->d;
	const desc q = of_heads(b, UID_Q, 3 * c, false), k = of_heads(b, UID_K, 3 * c, true);
	const desc v = of_heads(b, UID_V, 3 * c, false), y = of_heads(b, UID_Y, c, false);
	const desc s = seen_scores(b, q, k), max = along_row(b, CUDNN_REDUCE_TENSOR_MAX, s, row_values(b));
	const desc above = on_scores(b, CUDNN_POINTWISE_SUB, s, max);
	const desc powers = on_scores(b, CUDNN_POINTWISE_EXP, above, NULL);
	const desc sum = along_row(b, CUDNN_REDUCE_TENSOR_ADD, powers, row_values(b));
	const desc log_sum = in_f32(b, CUDNN_POINTWISE_LOG, sum, NULL, row_values(b));

	in_f32(b, CUDNN_POINTWISE_ADD, max, log_sum, log_sums(b));
	product_into(b, in_f32(b, CUDNN_POINTWISE_DIV, powers, sum, scores(b, dnn_type(b->s->type))), v, y);
}

/* dy . y of each row. */
static desc inner_products(struct builder *b, desc dy, desc y, desc one)
{
	const desc each = between(b, CUDNN_DATA_FLOAT, b->s->seq, b->s->d, false);
	const desc products = in_f32(b, CUDNN_POINTWISE_MUL, dy, y, each);
	const desc sums = along_row(b, CUDNN_REDUCE_TENSOR_ADD, products, row_values(b));

	return in_f32(b, CUDNN_POINTWISE_MUL, sums, one, row_values(b));
}

static void backward(struct builder *b)
{
	const struct attention_spec *s = b->s;
	const int64_t c = s->heads * s->d;
	const cudnnDataType_t low = dnn_type(s->type);
	const desc q = of_heads(b, UID_Q, 3 * c, false), k = of_heads(b, UID_K, 3 * c, true);
	const desc v = of_heads(b, UID_V, 3 * c, true), y = of_heads(b, UID_Y, c, false);
	const desc dy = of_heads(b, UID_DY, c, false), one = constant(b, UID_ONE), sum = dq_sum(b);
	const desc inner = inner_products(b, dy, y, one), seen = seen_scores(b, q, k);
	const desc p = on_scores(b, CUDNN_POINTWISE_EXP, on_scores(b, CUDNN_POINTWISE_SUB, seen, log_sums(b)), NULL);
	desc ds, dp, k_rows;

	product_into(b, turned(b, p, between(b, low, s->seq, s->seq, true)), dy, of_heads(b, UID_DV, 3 * c, false));
	dp = on_scores(b, CUDNN_POINTWISE_MUL, product_into(b, dy, v, scores(b, CUDNN_DATA_FLOAT)), one);
	ds = on_scores(b, CUDNN_POINTWISE_MUL, on_scores(b, CUDNN_POINTWISE_SUB, dp, inner), p);
	ds = on_scores(b, CUDNN_POINTWISE_MUL, ds, b->scale);
	product_into(b, turned(b, ds, between(b, low, s->seq, s->seq, true)), q, of_heads(b, UID_DK, 3 * c, false));
	k_rows = turned(b, k, rows_between(b, 3 * c));
	product_into(b, ds, k_rows, sum);
	in_f32(b, CUDNN_POINTWISE_IDENTITY, sum, NULL, of_heads(b, UID_DQ, 3 * c, false));
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
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, ERR_NOMEM, "cuda: out of memory: plan of attention");
	p->spec = *spec;
	p->scale = (float)(1 / sqrt((double)spec->d));
	b.scale = constant(&b, UID_SCALE);
	if (spec->backward) {
		p->sum_bytes = (size_t)(spec->n * spec->heads * spec->seq * spec->d) * sizeof(float);
		backward(&b);
	} else {
		forward(&b);
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

static void bind(struct dnn_operands *o, int64_t uid, const void *at)
{
	o->uid[o->n] = uid;
	o->address[o->n++] = (void *)at;
}

int attention_plan_run(struct attention_plan *p, const struct node *n, const struct attention_operands *o,
		       struct err *err)
{
	static const float least = -FLT_MAX, one = 1;
	const size_t row = (size_t)(p->spec.heads * p->spec.d) * dtype_bytes(p->spec.type);
	const char *qkv = o->qkv, *dqkv = o->dqkv;
	struct dnn_operands all = { .workspace = (char *)o->workspace + p->sum_bytes, .stream = o->stream };

	for (int i = 0; i < 3; i++)
		bind(&all, UID_Q + i, qkv + (size_t)i * row);
	bind(&all, UID_Y, o->y);
	bind(&all, UID_LSE, o->lse);
	bind(&all, UID_SCALE, &p->scale);
	bind(&all, UID_LEAST, &least);
	if (p->spec.backward) {
		for (int i = 0; i < 3; i++)
			bind(&all, UID_DQ + i, dqkv + (size_t)i * row);
		bind(&all, UID_DY, o->dy);
		bind(&all, UID_DQ_SUM, o->workspace);
		bind(&all, UID_ONE, &one);
	}
	return dnn_plan_run(p->dnn, n, &all, err);
}

#else

int attention_plan_new(struct attention_plan **ret, const struct kernel_env *env, const struct attention_spec *spec,
		       struct err *err)
{
	(void)ret, (void)env, (void)spec;
	return err_set(err, ERR_UNSUPPORTED, "cuDNN is left out");
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

int attention_plan_run(struct attention_plan *p, const struct node *n, const struct attention_operands *o,
		       struct err *err)
{
	(void)p, (void)o;
	return err_set(err, ERR_UNSUPPORTED, "cuda: %s: cuDNN is left out", n->name);
}

#endif
