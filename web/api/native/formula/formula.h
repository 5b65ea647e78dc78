/* formula.h: arithmetic over metrics and params: `train/loss - val/loss`, `log(params.lr) * 2`, `"a name" / 3`.
 * Operators + - * / ^ (to the right), brackets, numbers, and the functions of formula.c. Names hold letters, digits and
 * _ . / : @ -, so operators between names stand between blanks; a name in quotes holds anything. What begins with
 * params. is a param. Knows no runs. */
#ifndef DPT_NATIVE_FORMULA_H
#define DPT_NATIVE_FORMULA_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

#define FORMULA_NAMES_MAX 16

struct formula_name {
	const char *text; /* without params. */
	bool param;
};

struct formula;

/* The formula lives in the arena. ERR_USAGE says what is wrong and where. */
int formula_parse(struct formula **ret, const char *text, struct arena *a, struct err *err);

/* Each name once, in the order of their first places. */
const struct formula_name *formula_names(const struct formula *f, size_t *ret_count);

/* values: one for each name. IEEE arithmetic: nothing is refused. */
double formula_value(const struct formula *f, const double *values);

#endif
