/* SPDX-License-Identifier: Apache-2.0 */
/* values_test.c: ref kernels compared with numbers calculated by hand or with PyTorch in f64, so that the reference
 * for all other backends is itself checked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/exec.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/gelu/gelu.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/maxpool/maxpool.h"
#include "trainer/ops/norm/norm.h"
#include "trainer/ops/update/update.h"
#include "trainer/ops/xent/xent.h"

static const struct precision f64 = { DTYPE_F64, DTYPE_F64, NULL };
static struct step_page page = { .lr = 0.1, .inv_count = 0.5, .loss_scale = 1 };

struct fixture {
	struct graph *g;
	struct rig rig;
	struct exec *e;
};

static int setup(void **state)
{
	static struct fixture f;

	f.g = graph_new(true);
	f.e = NULL;
	*state = &f;
	return f.g ? rig_open(&f.rig, &backend_ref, 1, &f64, NULL) : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	exec_free(f->e);
	rig_close(&f->rig);
	graph_free(f->g);
	return 0;
}

static struct tensor *tensor(struct fixture *f, const char *name, enum dtype dtype, struct shape shape)
{
	return graph_tensor(f->g,
			    &(struct tensor){ .name = name, .kind = TENSOR_PARAM, .dtype = dtype, .shape = shape });
}

static void ready(struct fixture *f)
{
	struct err err = ERR_INIT;

	if (graph_failed(f->g) || exec_new(&f->e, f->g, &f->rig, false, &err) != 0)
		fail_msg("%s%s", f->g->err.text, err.text);
}

static void run(struct fixture *f)
{
	assert_int_equal(exec_run(f->e, &page, NULL), 0);
	assert_null(exec_damage(f->e));
}

static void expect(struct fixture *f, const struct tensor *t, const double *want)
{
	double got[64];

	assert_true(shape_count(&t->shape) <= 64);
	exec_get(f->e, t, got);
	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		if (!(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
			fail_msg("%s[%lld] is %.17g, not %.17g", t->name, (long long)i, got[i], want[i]);
}

/* 3x3 image of 1..9, kernel of 1..9 with padding 1 and stride 2: each corner is a sum of four products. */
static void test_conv(void **state)
{
	struct fixture *f = *state;
	struct tensor *x = tensor(f, "x", DTYPE_F64, SHAPE(1, 3, 3, 1)),
		      *w = tensor(f, "w", DTYPE_F64, SHAPE(1, 3, 3, 1));
	struct tensor *y = conv_add(f->g, x, w, 2, 1);
	const double ramp[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	const double want[] = { 1 * 5 + 2 * 6 + 4 * 8 + 5 * 9, 2 * 4 + 3 * 5 + 5 * 7 + 6 * 8,
				4 * 2 + 5 * 3 + 7 * 5 + 8 * 6, 5 * 1 + 6 * 2 + 8 * 4 + 9 * 5 };

	ready(f);
	exec_put(f->e, x, ramp);
	exec_put(f->e, w, ramp);
	run(f);
	expect(f, y, want);
}

/* Values 1..4 in one channel: mean 2.5, biased variance 1.25, unbiased 5/3. */
static void test_bn(void **state)
{
	struct fixture *f = *state;
	struct bn_tensors t = { tensor(f, "n.weight", DTYPE_F64, SHAPE(1)), tensor(f, "n.bias", DTYPE_F64, SHAPE(1)),
				tensor(f, "n.mean", DTYPE_F64, SHAPE(1)), tensor(f, "n.var", DTYPE_F64, SHAPE(1)) };
	struct tensor *x = tensor(f, "x", DTYPE_F64, SHAPE(2, 1, 2, 1)), *y = bn_add(f->g, x, &t);
	const double rstd = 1 / sqrt(1.25 + 1e-5), values[] = { 1, 2, 3, 4 };
	const double want[] = { 2 * -1.5 * rstd + 3, 2 * -0.5 * rstd + 3, 2 * 0.5 * rstd + 3, 2 * 1.5 * rstd + 3 };

	y->dtype = DTYPE_F64;
	ready(f);
	exec_put(f->e, x, values);
	exec_put(f->e, t.gamma, (double[]){ 2 });
	exec_put(f->e, t.beta, (double[]){ 3 });
	exec_put(f->e, t.mean, (double[]){ 1 });
	exec_put(f->e, t.var, (double[]){ 2 });
	run(f);
	expect(f, y, want);
	/* the new values, applied only when the optimiser's guard allows it (bn_keep) */
	expect(f, graph_find(f->g, "n.mean.next"), (double[]){ 0.9 * 1 + 0.1 * 2.5 });
	expect(f, graph_find(f->g, "n.var.next"), (double[]){ 0.9 * 2 + 0.1 * 5 / 3 });
	expect(f, t.mean, (double[]){ 1 });
	expect(f, t.var, (double[]){ 2 });
}

/* PyTorch 2: torch.nn.functional.gelu(x, approximate="tanh"). */
static void test_gelu(void **state)
{
	struct fixture *f = *state;
	struct tensor *x = tensor(f, "x", DTYPE_F64, SHAPE(4)), *y = gelu_add(f->g, x);
	const double values[] = { -1, 0, 0.5, 2 };
	const double want[] = { -0.15880800939172324, 0, 0.34571400982514394, 1.9545976940877752 };

	ready(f);
	exec_put(f->e, x, values);
	run(f);
	expect(f, y, want);
}

static void test_maxpool(void **state)
{
	struct fixture *f = *state;
	struct maxpool_attr attr = { .kernel = 3, .stride = 2, .pad = 1 };
	struct tensor *x = tensor(f, "x", DTYPE_F64, SHAPE(1, 3, 3, 1)), *y = maxpool_add(f->g, x, &attr);
	const double values[] = { -1, -2, -3, -4, -4, -6, -7, -7, -7 };

	ready(f);
	exec_put(f->e, x, values);
	run(f);
	expect(f, y, (double[]){ -1, -2, -4, -4 });
	expect(f, y->producer->out[1], (double[]){ 4, 3, 1, 0 }); /* the first of equal values */
}

/* Logits (0, ln 3): probabilities 1/4, 3/4. With smoothing 0.2 the target of label 0 is (0.9, 0.1). */
static void test_xent(void **state)
{
	struct fixture *f = *state;
	struct tensor *logits = tensor(f, "logits", DTYPE_F64, SHAPE(2, 2)),
		      *labels = tensor(f, "labels", DTYPE_I32, SHAPE(2));
	struct tensor *result = xent_add(f->g, logits, labels, 0.2), *lse = result->producer->out[1];
	struct xent_attr attr = { 0.2 };
	struct node *grad = graph_node(
		f->g, &(struct node_spec){
			      .op = &op_xent_grad, NODE_IN(logits, labels, lse), NODE_OUT(NULL), NODE_ATTR(attr) });
	double l3 = log(3), l4 = log(4), loss = 0.9 * l4 + 0.1 * (l4 - l3) + 0.1 * l4 + 0.9 * (l4 - l3);

	ready(f);
	exec_put(f->e, logits, (double[]){ 0, l3, 0, l3 });
	exec_put(f->e, labels, (double[]){ 0, 1 });
	run(f);
	expect(f, lse, (double[]){ l4, l4 });
	expect(f, result, (double[]){ loss, 1, 2, 2 });
	expect(f, grad->out[0], (double[]){ (0.25 - 0.9) / 2, (0.75 - 0.1) / 2, (0.25 - 0.1) / 2, (0.75 - 0.9) / 2 });
}

/* Labels (0, 2) and (1, 1) with weights 0.3 and 0.7: PyTorch's cross_entropy with probabilities as targets,
 * label_smoothing 0.1. The second row's label is the largest logit but one, the first row's main label the largest. */
static void test_xent_pairs(void **state)
{
	struct fixture *f = *state;
	struct tensor *logits = tensor(f, "logits", DTYPE_F64, SHAPE(2, 3)),
		      *labels = tensor(f, "labels", DTYPE_I32, SHAPE(2, 2));
	struct tensor *result = xent_add(f->g, logits, labels, 0.1);
	struct xent_attr attr = { 0.1 };
	struct node *grad = graph_node(f->g, &(struct node_spec){ .op = &op_xent_grad,
								  NODE_IN(logits, labels, result->producer->out[1]),
								  NODE_OUT(NULL), NODE_ATTR(attr) });

	page.label_weight = 0.3;
	ready(f);
	exec_put(f->e, logits, (double[]){ 0.5, -1, 2, 1.5, 0.25, -0.75 });
	exec_put(f->e, labels, (double[]){ 0, 2, 1, 1 });
	run(f);
	expect(f, result, (double[]){ 2.3686505727310476, 1, 2, 2 });
	expect(f, grad->out[0],
	       (double[]){ -0.06402147059664832, 0.0028896199686770582, 0.061131850627971274, 0.3425535039088658,
			   -0.3637483646678409, 0.02119486075897509 });
	page.label_weight = 0;
}

/* Equal logits rank by index, NaN is never correct, and six classes make the sixth rank a miss. */
static void test_ranks(void **state)
{
	struct fixture *f = *state;
	struct tensor *logits = tensor(f, "logits", DTYPE_F64, SHAPE(4, 6)),
		      *labels = tensor(f, "labels", DTYPE_I32, SHAPE(4));
	struct tensor *result = xent_add(f->g, logits, labels, 0);
	double got[XENT_RESULTS], rows[24] = { 0 };

	rows[12] = NAN;
	rows[18 + 3] = NAN;
	ready(f);
	exec_put(f->e, logits, rows);
	exec_put(f->e, labels,
		 (double[]){ 0, 5, 0, 0 }); /* first of equals; sixth of equals; NaN itself; NaN in another class */
	run(f);
	exec_get(f->e, result, got);
	assert_true(isnan(got[XENT_LOSS_SUM]));
	assert_true(got[XENT_TOP1] == 1 && got[XENT_TOP5] == 2 && got[XENT_COUNT] == 4);
}

/* Among at most five classes every label is among the five largest, but for one whose logit is NaN. */
static void test_nan_of_few_classes(void **state)
{
	struct fixture *f = *state;
	struct tensor *logits = tensor(f, "logits", DTYPE_F64, SHAPE(4, 3)),
		      *labels = tensor(f, "labels", DTYPE_I32, SHAPE(4));
	struct tensor *result = xent_add(f->g, logits, labels, 0);
	double got[XENT_RESULTS];

	ready(f);
	exec_put(f->e, logits, (double[]){ NAN, NAN, NAN, NAN, 1, 2, 1, NAN, 2, 1, 2, 3 });
	exec_put(f->e, labels, (double[]){ 1, 0, 2, 2 });
	run(f);
	exec_get(f->e, result, got);
	assert_true(got[XENT_TOP1] == 1 && got[XENT_TOP5] == 2 && got[XENT_COUNT] == 4);
}

/* Two steps by hand: d = g + 0.5 p; m = 0.9 m + d; p -= 0.1 m. A non-finite step changes nothing. */
static void test_sgd(void **state)
{
	struct fixture *f = *state;
	struct update_attr attr = { UPDATE_sgd, { .momentum = 0.9, .weight_decay = 0.5 } };
	struct tensor *p = tensor(f, "p", DTYPE_F64, SHAPE(1)), *m, *step;

	p->grad = tensor(f, "p.grad", DTYPE_F64, SHAPE(1));
	step = tensor(f, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));
	update_add(f->g, p, step, &attr, true);
	m = graph_find(f->g, "p.momentum");
	assert_non_null(m);
	ready(f);
	exec_put(f->e, p, (double[]){ 2 });
	exec_put(f->e, p->grad, (double[]){ 3 });
	exec_put(f->e, m, (double[]){ 0 });
	exec_put(f->e, step, (double[]){ 1, 0, 1 });
	run(f);
	expect(f, p, (double[]){ 2 - 0.1 * 4 });
	run(f);
	expect(f, m, (double[]){ 0.9 * 4 + 3.8 });
	expect(f, p, (double[]){ 1.6 - 0.1 * 7.4 });
	exec_put(f->e, step, (double[]){ 0, 1, 2 });
	run(f);
	expect(f, p, (double[]){ 1.6 - 0.1 * 7.4 });
	expect(f, m, (double[]){ 7.4 });
}

/* Non-finite losses end the run where no scale can be halved: a later step changes nothing either. A step for which a
 * rank had no data is skipped and has no effect. */
static void test_guard(void **state)
{
	struct fixture *f = *state;
	const struct step_guard_attr attr = { .scaling = false };
	struct tensor *norm = tensor(f, "norm", DTYPE_F64, SHAPE(1));
	struct tensor *losses = tensor(f, "losses", DTYPE_F64, SHAPE(1));
	struct tensor *votes = tensor(f, "votes", DTYPE_F64, SHAPE(1));
	struct tensor *step = step_guard_add(f->g, &(struct step_guard_in){ norm, losses, votes }, &attr), *kept;

	assert_non_null(step);
	kept = graph_find(f->g, STEP_GUARD_STATE_NAME);
	ready(f);
	exec_put(f->e, kept, (double[STEP_GUARD_STATE_VALUES]){ 0 });
	exec_put(f->e, norm, (double[]){ 2 });
	exec_put(f->e, losses, (double[]){ 1 });
	exec_put(f->e, votes, (double[]){ 2 });
	run(f);
	expect(f, kept, (double[]){ 1, 0, 0, 0, 0 });
	exec_put(f->e, votes, (double[]){ 1 + STEP_GUARD_BLANK });
	exec_put(f->e, losses, (double[]){ NAN });
	run(f);
	expect(f, step, (double[]){ 0, 1, 1 });
	expect(f, kept, (double[]){ 1, 0, 0, 0, 0 });
	exec_put(f->e, votes, (double[]){ 1 });
	exec_put(f->e, losses, (double[]){ NAN });
	run(f);
	expect(f, step, (double[]){ 0, 1, 1 });
	expect(f, kept, (double[]){ 1, 1, 1, 0, STEP_GUARD_ENDED });
	exec_put(f->e, losses, (double[]){ 1 });
	run(f);
	expect(f, step, (double[]){ 0, 1, 1 });
	expect(f, kept, (double[]){ 1, 2, 2, 0, STEP_GUARD_ENDED });
}

static void test_norm(void **state)
{
	struct fixture *f = *state;
	struct tensor *p = tensor(f, "p", DTYPE_F64, SHAPE(2)), *q = tensor(f, "q", DTYPE_F64, SHAPE(1));

	p->grad = tensor(f, "p.grad", DTYPE_F64, SHAPE(2));
	q->grad = tensor(f, "q.grad", DTYPE_F64, SHAPE(1));
	p->grad->kind = q->grad->kind = TENSOR_GRAD;
	assert_non_null(norm_add_all(f->g, false));
	ready(f);
	exec_put(f->e, p->grad, (double[]){ 2, 3 });
	exec_put(f->e, q->grad, (double[]){ 6 });
	run(f);
	expect(f, graph_find(f->g, "grad_norm"), (double[]){ 7 });
}

/* Every finite 16-bit value is unchanged by a conversion to f32 and back; ties between two neighbours round to even. */
static void test_float16(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 0x7c00; i++)
		assert_int_equal(f16_from_float(f16_to_float((uint16_t)i)), i);
	for (uint32_t i = 0; i < 0x7bff; i++) {
		float middle = (f16_to_float((uint16_t)i) + f16_to_float((uint16_t)(i + 1))) / 2;

		assert_int_equal(f16_from_float(middle), i + (i & 1));
		assert_int_equal(f16_from_float(-middle), 0x8000 | (i + (i & 1)));
	}
	for (uint32_t i = 0; i < 0x7f80; i++)
		assert_int_equal(bf16_from_float(bf16_to_float((uint16_t)i)), i);
	for (uint32_t i = 0x80; i < 0x7f7f; i++)
		assert_int_equal(bf16_from_float(float_from_bits(i << 16 | 0x8000)), i + (i & 1));
	assert_int_equal(f16_from_float(65504), 0x7bff);
	assert_int_equal(f16_from_float(65519.996f), 0x7bff);
	assert_int_equal(f16_from_float(65520), 0x7c00);
	assert_true(isnan(f16_to_float(f16_from_float(NAN))) && isnan(bf16_to_float(bf16_from_float(NAN))));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_conv),	TEST(test_bn),	 TEST(test_gelu),
					    TEST(test_maxpool), TEST(test_xent), TEST(test_xent_pairs),
					    TEST(test_ranks),
					    TEST(test_nan_of_few_classes),
					    TEST(test_sgd),	TEST(test_guard), TEST(test_norm),
					    cmocka_unit_test(test_float16) };

	return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
