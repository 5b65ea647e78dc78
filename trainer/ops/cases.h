/* cases.h: the test cases of an op: <op>_cases.c in its folder holds one table per op, cases_<op>, which only tests
 * link. Every line of ops.def needs one, so a new op is tested because it exists. A case builds a graph of one node;
 * the harness fills the inputs, runs each backend, and compares with ref, which is fed the same rounded inputs. */
#ifndef DPT_OPS_CASES_H
#define DPT_OPS_CASES_H

#include "trainer/ops/ops.h"

#define CASE_OPERANDS_MAX 8
#define CASE_SIZES_MAX 12

/* One run's operands as doubles, integers included; NULL where an operand is absent. */
struct case_values {
	const struct node *node;
	const struct step_page *page;
	double *in[CASE_OPERANDS_MAX];
	double *out[CASE_OPERANDS_MAX]; /* ref's results */
};

struct op_case {
	const char *name; /* NULL ends a table */

	/* Adds the inputs (case_input) and the one node. Floats are declared DTYPE_F32, reductions DTYPE_F64. */
	struct node *(*build)(struct graph *g, const struct op_case *c);

	/* Optional: inputs hold normal draws before; called again after rounding. */
	void (*fill)(const struct op_case *c, struct case_values *v);

	/* Optional: for output k, the sum of the absolute terms behind each element, into terms; returns how many
	 * roundings a sum of them takes. NULL: ref run on absolute inputs, and the op's flops. */
	double (*bound)(const struct case_values *v, int k, double *terms);

	bool exact; /* results must be ref's, rounded once */

	/* A bit for each output whose terms, in 16-bit runs, are products with intermediate results that were rounded
	 * to that type: half a unit in its last place, at most, more of the terms' sum. */
	unsigned rounds_inside;

	/* A bit for each output of the master type that 16-bit runs may have rounded to the low type last. */
	unsigned rounds_result;

	/* Optional: the absolute value of an operand, such as a bias, that joins element i of the first output and may
	 * be rounded to the low type before, in 16-bit runs whose result is of that type. */
	double (*rounds_first)(const struct case_values *v, int64_t i);
	int64_t size[CASE_SIZES_MAX]; /* meaning private to build and fill */
};

#define OP(name) extern const struct op_case cases_##name[];
#include "trainer/ops/ops.def"
#undef OP

struct tensor *case_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape);

int64_t case_count(const struct tensor *t);

/* Fills guard's output: a step that halves the gradients, the given number of updates; 0: a skipped step. */
void case_step(double *step, double updates);

#endif
