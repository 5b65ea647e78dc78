/* SPDX-License-Identifier: Apache-2.0 */
/* ops_test.c: every op of ops.def, on every available backend, in every supported pair of types, on every case of its
 * table, compared with ref on the same rounded inputs. `ops_test [WORD]` runs the tests whose name contains the word;
 * $OPS_TEST_BITS names a file that gets a line per case: a checksum of all its results, to compare with another run.
 *
 * Tolerance of one element: 2 u |want| + min(n + 2, 10 sqrt(n) + 2) 2^-24 T, u = unit roundoff of the output's type
 * (f32 2^-24, bf16 2^-8, f16 2^-11), n = number of roundings for the element, T = the sum of its absolute terms. The
 * first part is the rounding of the result; the second is the error of a sum in f32: n u T is the bound for any order,
 * 10 sqrt(n) u T the range of independent roundings (ten standard deviations), so that long sums do not pass when they
 * are wrong. Where an op's products have intermediate results in the low type (rounds_inside), u of that type times T
 * is added; an operand that may be rounded to it first (rounds_first) adds u times itself; a result that was rounded
 * to it (rounds_result) u |want|.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/built_modules.h"
#include "tests/ops/exec.h"
#include "tracker/base/crc32c.h"
#include "trainer/graph/pass.h"
#include "trainer/graph/rng.h"
#include "tests/ops/cases/cases.h"

#define SHOWN_MAX 3
#define TESTS_MAX (OP_COUNT * 8)
#define SMALLEST 0x1p-120 /* smaller results may be flushed to zero */

static const struct op_case *const tables[OP_COUNT] = {
#define OP(name) [OP_##name] = cases_##name,
#include "trainer/ops/ops.def"
#undef OP
};

static const struct step_page page = {
	.step = 3, .epoch = 1, .epoch_step = 10, .micro = 1,
	.seed = 5, .first_sample = 2, .lr = 0.125, .label_weight = 0.375, .inv_count = 1.0 / 24,
	.leaves = { .first = 6, .n = 3, .all = 11, .parts = 4 },
	.loss_scale = 1, .watch = 1
};
static const struct precision f64 = { DTYPE_F64, DTYPE_F64, NULL };

struct subject { /* one test: an op on a backend in two types */
	const struct op *op;
	const struct backend *backend;
	struct precision precision;
	char name[96];
};

/* The one node of a case, with the types of a run. */
struct built {
	struct graph *g;
	struct node *n;
};

static void set_type(const struct node *n, struct tensor *t, bool is_out, int k, const struct precision *p)
{
	enum dtype_class class = n->op->dtype ? n->op->dtype(n, is_out, k) : DTYPE_CLASS_LOW;

	if (!t || t->dtype != DTYPE_F32)
		return;
	t->dtype = class == DTYPE_CLASS_LOW ? p->low : p->master;
}

static struct built build(const struct op_case *c, const struct precision *p)
{
	struct built b = { .g = graph_new(true) };
	bool typed;

	assert_non_null(b.g);
	b.n = c->build(b.g, c);
	if (!b.n)
		fail_msg("%s: %s", c->name, b.g->err.text);
	typed = b.n->op == &op_cast; /* sets its types itself */
	for (int k = 0; k < b.n->n_out; k++)
		if (b.n->out[k]) {
			b.n->out[k]->keep = true;
			if (!typed)
				set_type(b.n, b.n->out[k], true, k, p);
		}
	for (int k = 0; k < b.n->n_in; k++)
		if (!typed)
			set_type(b.n, b.n->in[k], false, k, p);
	return b;
}

static double *numbers(const struct tensor *t)
{
	return t ? test_calloc((size_t)case_count(t) + 1, sizeof(double)) : NULL;
}

static void round_inputs(const struct node *n, struct case_values *v)
{
	for (int k = 0; k < n->n_in; k++)
		for (int64_t i = 0; n->in[k] && i < case_count(n->in[k]); i++)
			v->in[k][i] = value_round(n->in[k]->dtype, v->in[k][i]);
}

/* Inputs that both sides can represent: drawn, rounded, adjusted by the case and rounded again. */
static void fill(const struct op_case *c, const struct node *n, struct case_values *v)
{
	v->node = n;
	v->page = &page;
	for (int k = 0; k < n->n_in; k++) {
		struct rng_key key = { 11, rng_stream(c->name) + (uint64_t)k };

		v->in[k] = numbers(n->in[k]);
		for (int64_t i = 0; n->in[k] && i < case_count(n->in[k]); i++)
			v->in[k][i] = rng_normal(key, (uint64_t)i);
	}
	for (int k = 0; k < n->n_out; k++)
		v->out[k] = numbers(n->out[k]);
	for (int round = 0; round < 2; round++) {
		round_inputs(n, v);
		if (c->fill)
			c->fill(c, v);
	}
	round_inputs(n, v);
}

static void values_done(struct case_values *v)
{
	for (int k = 0; k < CASE_OPERANDS_MAX; k++) {
		if (v->in[k])
			test_free(v->in[k]);
		if (v->out[k])
			test_free(v->out[k]);
	}
}

/* The tensor that a node's input is computed from: passes insert a pack before it, and a cast before that. */
static const struct tensor *source(const struct tensor *t)
{
	while (t->producer && (t->producer->op == &op_pack || t->producer->op == &op_cast))
		t = t->producer->in[0];
	return t;
}

/* Runs the built node with inputs `in`; results go to `out`. */
static void run(struct built *b, const struct rig *r, bool in_place, double *const *in, double *const *out)
{
	struct layout_backend layout = { .kernels = r->backend->kernel,
					 .env = &r->env,
					 .pack = &op_pack,
					 .cast = &op_cast,
					 .plain_f16 = r->backend->emulate_f16 };
	struct err err = ERR_INIT;
	struct exec *e = NULL;

	if (pass_layout(b->g, &layout, &err) != 0)
		fail_msg("%s", err.text);
	if (exec_new(&e, b->g, r, in_place, &err) != 0)
		fail_msg("%s", err.text);
	for (int k = 0; k < b->n->n_in; k++) {
		if (b->n->in[k])
			exec_put(e, source(b->n->in[k]), in[k]);
	}
	if (exec_run(e, &page, &err) != 0)
		fail_msg("%s", err.text);
	for (int k = 0; k < b->n->n_out; k++)
		if (b->n->out[k])
			exec_get(e, b->n->out[k], out[k]);
	if (exec_damage(e))
		fail_msg("%s: bytes past its end were written", exec_damage(e));
	exec_free(e);
}

static void run_ref(const struct op_case *c, double *const *in, double *const *out)
{
	struct rig r = { 0 };
	struct built b = build(c, &f64);

	assert_int_equal(rig_open(&r, &backend_ref, 1, &f64, NULL), 0);
	run(&b, &r, false, in, out);
	rig_close(&r);
	graph_free(b.g);
}

/* Stores in a->out the sums of absolute terms: what ref gives for absolute inputs. */
static void run_absolute(const struct op_case *c, const struct case_values *v, struct case_values *a)
{
	const struct node *n = v->node;

	a->node = n;
	for (int i = 0; i < n->n_in; i++) {
		a->in[i] = numbers(n->in[i]);
		for (int64_t j = 0; n->in[i] && j < case_count(n->in[i]); j++)
			a->in[i][j] = fabs(v->in[i][j]);
	}
	for (int i = 0; i < n->n_out; i++)
		a->out[i] = numbers(n->out[i]);
	run_ref(c, a->in, a->out);
}

/* Roundings in the sum of an element, from the op's flops. */
static double count_roundings(const struct node *n)
{
	double flops = n->op->flops ? n->op->flops(n) : 0, out0 = (double)case_count(n->out[0]);
	double in0 = (double)case_count(n->in[0]);

	if (flops > 0)
		return flops / 2 / out0;
	return in0 > 8 * out0 && out0 > 0 ? in0 / out0 : 8;
}

static double unit_roundoff(enum dtype t)
{
	return t == DTYPE_F64	 ? 0x1p-53
	       : t == DTYPE_F32	 ? 0x1p-24
	       : t == DTYPE_BF16 ? 0x1p-8
	       : t == DTYPE_F16	 ? 0x1p-11
				 : 0;
}

struct limit {
	double unit;	 /* of the output's type */
	double last;	 /* of a smaller type that it was rounded to */
	double smallest; /* its smallest normal number: below, the unit is constant */
	double sum;  /* factor of the absolute terms */
	bool exact;
	enum dtype dtype;
};

/* first: error of an operand that may have been rounded to the result's type. */
static double allowed(double want, double terms, double first, const struct limit *l)
{
	return (2 * l->unit + l->last) * fmax(fabs(want), l->smallest) + l->sum * terms + l->unit * first + SMALLEST;
}

static bool agrees(double got, double want, double most, const struct limit *l)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (l->exact || !dtype_is_float(l->dtype) || isinf(want))
		return got == value_round(l->dtype, want);
	return fabs(got - want) <= most;
}

/* What a case must give, whatever the number of threads and wherever its results are: calculated once. */
struct expected {
	struct built built;
	struct case_values v;
	struct limit limit[CASE_OPERANDS_MAX];	 /* of each output */
	double *terms[CASE_OPERANDS_MAX];	 /* sums of absolute terms */
	double *most[CASE_OPERANDS_MAX];	 /* allowed errors */
};

/* Stores the sums of absolute terms of output k in e; `absolute` is filled when the first output needs it. */
static double expect_terms(const struct op_case *c, struct expected *e, int k, struct case_values *absolute)
{
	const struct node *n = e->v.node;

	e->terms[k] = numbers(n->out[k]);
	if (c->exact)
		return 0;
	if (c->bound)
		return c->bound(&e->v, k, e->terms[k]);
	if (!absolute->node)
		run_absolute(c, &e->v, absolute);
	for (int64_t j = 0; j < case_count(n->out[k]); j++)
		e->terms[k][j] = fabs(absolute->out[k][j]);
	return count_roundings(n);
}

static struct limit find_limit(const struct op_case *c, const struct tensor *t, int k, double n,
			       const struct precision *p)
{
	struct limit l = { .exact = c->exact, .dtype = t->dtype, .unit = unit_roundoff(t->dtype) };

	l.last = c->rounds_result >> k & 1 && p->low != p->master ? unit_roundoff(p->low) : 0;
	l.smallest = t->dtype == DTYPE_F16 || (l.last && p->low == DTYPE_F16) ? 0x1p-14 : 0;
	l.sum = fmin(n + 2, 10 * sqrt(n) + 2) * (p->low == DTYPE_F64 ? 0x1p-53 : 0x1p-24);
	if (c->rounds_inside >> k & 1 && p->low != p->master)
		l.sum += unit_roundoff(p->low);
	return l;
}

static void expect_case(const struct op_case *c, const struct precision *p, struct expected *e)
{
	struct case_values absolute = { .node = NULL };

	e->built = build(c, p);
	fill(c, e->built.n, &e->v);
	run_ref(c, e->v.in, e->v.out);
	for (int k = 0; k < e->built.n->n_out; k++) {
		const struct tensor *t = e->built.n->out[k];
		bool rounded = t && k == 0 && c->rounds_first && t->dtype == p->low && p->low != p->master;

		if (!t)
			continue;
		e->limit[k] = find_limit(c, t, k, expect_terms(c, e, k, &absolute), p);
		e->most[k] = numbers(t);
		for (int64_t i = 0; i < case_count(t); i++)
			e->most[k][i] = allowed(e->v.out[k][i], e->terms[k][i],
						rounded ? c->rounds_first(&e->v, i) : 0, &e->limit[k]);
	}
	values_done(&absolute);
}

static void expected_done(struct expected *e)
{
	values_done(&e->v);
	for (int k = 0; k < CASE_OPERANDS_MAX; k++) {
		if (e->terms[k])
			test_free(e->terms[k]);
		if (e->most[k])
			test_free(e->most[k]);
	}
	graph_free(e->built.g);
}

static void compare(const struct op_case *c, const struct expected *e, double *const *got)
{
	const struct node *n = e->v.node;
	int bad = 0;

	for (int k = 0; k < n->n_out; k++)
		for (int64_t i = 0; n->out[k] && i < case_count(n->out[k]); i++) {
			double want = e->v.out[k][i], most = e->most[k][i];

			if (!agrees(got[k][i], want, most, &e->limit[k]) && bad++ < SHOWN_MAX)
				print_error("  %s: output %d, element %lld: %.17g, want %.17g (terms %g, allowed %g)\n",
					    c->name, k, (long long)i, got[k][i], want, e->terms[k][i], most);
		}
	if (bad)
		fail_msg("%s: %d elements differ from ref", c->name, bad);
}

static void write_bits(const struct subject *s, const struct op_case *c, bool in_place, const struct node *n,
		       double *const *got)
{
	const char *path = getenv("OPS_TEST_BITS");
	FILE *f = path ? fopen(path, "a") : NULL;
	uint32_t crc = 0;

	if (!path)
		return;
	assert_non_null(f);
	for (int k = 0; k < n->n_out; k++)
		if (got[k])
			crc = crc32c(crc, got[k], (size_t)case_count(n->out[k]) * sizeof(double));
	fprintf(f, "%s, %s%s: %08x\n", s->name, c->name, in_place ? ", in place" : "", crc);
	assert_int_equal(fclose(f), 0);
}

static void run_case(const struct subject *s, const struct op_case *c, const struct rig *r, const struct expected *e)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		struct built again = build(c, &s->precision);
		double *got[CASE_OPERANDS_MAX] = { NULL };

		for (int k = 0; k < again.n->n_out; k++)
			got[k] = numbers(again.n->out[k]);
		run(&again, r, in_place, e->v.in, got);
		compare(c, e, got);
		write_bits(s, c, in_place, again.n, got);
		for (int k = 0; k < again.n->n_out; k++)
			if (got[k])
				test_free(got[k]);
		graph_free(again.g);
	}
}

static struct expected *expect_all(const struct subject *s)
{
	struct expected *e;
	size_t n = 0;

	while (tables[s->op->id][n].name)
		n++;
	e = test_calloc(n, sizeof(*e));
	for (size_t i = 0; i < n; i++)
		expect_case(&tables[s->op->id][i], &s->precision, &e[i]);
	return e;
}

static void test_subject(void **state)
{
	const struct subject *s = *state;
	const struct op_case *cases = tables[s->op->id];
	struct expected *e = expect_all(s);
	struct err err = ERR_INIT;

	/* emulated, on a device, or ref: no loops that distribute work among threads */
	bool alone = s->precision.low == DTYPE_F16 || s->backend->streams || s->backend == &backend_ref;

	for (int threads = 1; threads <= (alone ? 1 : 2); threads++) {
		struct rig r;

		if (rig_open(&r, s->backend, threads, &s->precision, &err) != 0)
			fail_msg("%s", err.text);
		for (int i = 0; cases[i].name; i++)
			run_case(s, &cases[i], &r, &e[i]);
		rig_close(&r);
	}
	for (int i = 0; cases[i].name; i++)
		expected_done(&e[i]);
	test_free(e);
}

/* A name in ops.def has a description with the correct index, and a kernel wherever a backend claims it. */
static void test_table(void **state)
{
	(void)state;
	for (int i = 0; i < OP_COUNT; i++) {
		assert_non_null(ops_table[i]);
		assert_int_equal(ops_table[i]->id, i);
		assert_non_null(ops_table[i]->name);
		assert_non_null(ops_table[i]->shape);
		assert_non_null(backend_ref.kernel[i]);
		if (ops_table[i] != &op_pack)
			assert_true(kernel_supported(backend_ref.kernel[i]));
		assert_true(ops_table[i] == &op_pack || tables[i][0].name);
	}
}

static int add_subjects(struct subject *s, int n, const struct backend *b)
{
	static const struct precision all[] = { { DTYPE_F64, DTYPE_F64, NULL },
						{ DTYPE_F32, DTYPE_F32, NULL },
						{ DTYPE_BF16, DTYPE_F32, NULL },
						{ DTYPE_F16, DTYPE_F32, NULL } };

	for (size_t p = 0; p < sizeof(all) / sizeof(all[0]); p++)
		for (int i = 0; i < OP_COUNT; i++) {
			if ((b->takes && !b->takes(&all[p])) || !kernel_supported(b->kernel[i]) || !tables[i][0].name)
				continue;
			s[n] = (struct subject){ .op = ops_table[i], .backend = b, .precision = all[p] };
			snprintf(s[n].name, sizeof(s[n].name), "%s on %s in %s", ops_table[i]->name, b->name,
				 dtype_name(all[p].low));
			n++;
		}
	return n;
}

static int add_backends(struct subject *s)
{
	static const char *const names[] = { "cpu", "cuda" };
	int n = add_subjects(s, 0, &backend_ref);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct backend_choice choice = { 0 };
		struct err err = ERR_INIT;

		if (backend_load(&choice, names[i], &err) == 0)
			n = add_subjects(s, n, choice.backend);
		else
			printf("ops_test: %s is left out: %s\n", names[i], err.text);
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct subject subjects[TESTS_MAX];
	static struct CMUnitTest tests[TESTS_MAX + 1] = { { "every op is complete", test_table, NULL, NULL, NULL } };
	int n, used = 1;

	use_built_modules();
	n = add_backends(subjects);
	for (int i = 0; i < n; i++)
		if (argc < 2 || strstr(subjects[i].name, argv[1]))
			tests[used++] = (struct CMUnitTest){ subjects[i].name, test_subject, NULL, NULL, &subjects[i] };
	return _cmocka_run_group_tests("ops", tests, (size_t)used, NULL, NULL);
}
