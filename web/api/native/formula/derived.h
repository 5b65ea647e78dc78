/* SPDX-License-Identifier: Apache-2.0 */
/* derived.h: evaluates a formula over the series of runs. The result has a point at each step at which all metrics of
 * the formula have one; bucketing comes afterwards. */
#ifndef DPT_NATIVE_DERIVED_H
#define DPT_NATIVE_DERIVED_H

#include "web/api/api.h"

/* ---- formula.c ----
 * Arithmetic over metrics and params: `train/loss - val/loss`, `log(params.lr) * 2`, `"a name" / 3`. Operators + - * /
 * ^ (right-associative), brackets, numbers, and the functions of formula.c. Names consist of letters, digits and _ . /
 * : @ -, so operators between names need blanks around them; a quoted name may contain anything. The prefix params.
 * marks a param. Knows no runs. */

#define FORMULA_NAMES_MAX 16

struct formula_name {
	const char *text; /* without the prefix params. */
	bool param;
};

struct formula;

/* Parses into the arena. ERR_USAGE: err says what is wrong and where. */
int formula_parse(struct formula **ret, const char *text, struct arena *a, struct err *err);

/* Each name once, in the order of first occurrence. */
const struct formula_name *formula_names(const struct formula *f, size_t *ret_count);

/* values: one for each name, in the order of formula_names. IEEE arithmetic: never fails. */
double formula_value(const struct formula *f, const double *values);

/* ---- derived.c ---- */

/* As points_chart, with one line for each run that has all metrics and params of the formula. o's keys are ignored; o's
 * rank must be a single one. Of several points at a step the last one counts; the time of a point is the latest of its
 * inputs. Open edges of o become those of the inputs. Returns false after failing the call. */
bool derived_chart(struct call *c, const char *formula, struct points_chart_opts *o, struct points_chart *ret);

#endif
