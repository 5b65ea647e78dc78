/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h: the test cases of ops. <op>_cases.c has the tables of the ops in trainer/ops/<op>, cases_<op>.
 * Every line of ops.def needs a table, so no op is untested. A case builds a graph of one node. The harness fills the
 * inputs, runs each backend and compares with ref, which gets the same rounded inputs. */
#ifndef DPT_TESTS_OPS_CASES_H
#define DPT_TESTS_OPS_CASES_H

#include "trainer/ops/ops.h"

#define CASE_OPERANDS_MAX 8
#define CASE_SIZES_MAX 12

/* One run's operands as doubles, also for integers; NULL for absent operands. */
struct case_values {
	const struct node *node;
	const struct step_page *page;
	double *in[CASE_OPERANDS_MAX];
	double *out[CASE_OPERANDS_MAX]; /* results of ref */
};

struct op_case {
	const char *name; /* NULL ends a table */

	/* Adds the inputs (case_input) and the one node. Floats are DTYPE_F32, reductions DTYPE_F64. */
	struct node *(*build)(struct graph *g, const struct op_case *c);

	/* Optional: adjusts the inputs, which hold normal draws; called again after rounding. */
	void (*fill)(const struct op_case *c, struct case_values *v);

	/* Optional: writes to terms, per element of output k, the sum of the absolute values of its terms; returns the
	 * number of roundings in such a sum. NULL: terms from ref on absolute inputs, roundings from the op's flops. */
	double (*bound)(const struct case_values *v, int k, double *terms);

	bool exact; /* results must equal ref's, rounded once */

	/* Bit mask of outputs whose terms, in 16-bit runs, include intermediate results rounded to that type: adds half
	 * a unit in the last place of the terms' sum to the bound. */
	unsigned rounds_inside;

	/* Bit mask of master-type outputs that 16-bit runs may round to the low type at the end. */
	unsigned rounds_result;

	/* Optional: absolute value of an operand (such as a bias) that is added to element i of the first output and
	 * may first be rounded to the low type, in 16-bit runs with a result of that type. */
	double (*rounds_first)(const struct case_values *v, int64_t i);
	int64_t size[CASE_SIZES_MAX]; /* meaning is defined by build and fill */
};

#define OP(name) extern const struct op_case cases_##name[];
#include "trainer/ops/ops.def"
#undef OP

struct tensor *case_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape);

int64_t case_count(const struct tensor *t);

/* Fills guard's output for a step that halves the gradients; updates: count of updates, 0: a skipped step. */
void case_step(double *step, double updates);

#endif
