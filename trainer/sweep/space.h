/* space.h: the search space of a sweep. The settings of trial i depend only on the file and the seed, so a continued
 * sweep has the same ones. Knows no processes. */
#ifndef DPT_SWEEP_SPACE_H
#define DPT_SWEEP_SPACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct search_space;

/* parameters: {FLAG: {"values": [...]} or {"min", "max", "distribution": "uniform" | "log_uniform_values" |
 * "int_uniform"}}; without a distribution two integers mean int_uniform, other numbers uniform. FLAG as on dptrain's
 * command line, without the dashes. Borrows parameters; space_free frees *ret. ERR_USAGE names the parameter. */
int space_new(struct search_space **ret, json_t *parameters, uint64_t seed, struct err *err);
void space_free(struct search_space *s); /* NULL is fine */

size_t space_params(const struct search_space *s);
const char *space_name(const struct search_space *s, size_t param);
size_t space_grid(const struct search_space *s); /* combinations of all values; 0: a parameter has a range */

#define SPACE_VALUE_BYTES 256

/* Writes one value of a trial as on a command line; true or false for booleans, then *ret_bool is true. grid: the
 * trial-th combination, the last parameter changes fastest; else the value is drawn. */
void space_value(const struct search_space *s, bool grid, size_t trial, size_t param, char *to, bool *ret_bool);

#endif
