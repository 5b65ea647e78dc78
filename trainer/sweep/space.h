/* space.h: the settings of a sweep's trials. Trial i's follow from the file and the seed alone, so that a sweep that
 * is taken up again has the same ones. Knows no processes. */
#ifndef DPT_SWEEP_SPACE_H
#define DPT_SWEEP_SPACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct search_space;

/* parameters: {FLAG: {"values": [...]} or {"min", "max", "distribution": "uniform" | "log_uniform_values" |
 * "int_uniform"}}; without a distribution two whole numbers are int_uniform, others uniform. FLAG as on dptrain's
 * command line, without the dashes. Borrows it. */
int space_new(struct search_space **ret, json_t *parameters, uint64_t seed, struct err *err);
void space_free(struct search_space *s); /* NULL is fine */

size_t space_params(const struct search_space *s);
const char *space_name(const struct search_space *s, size_t param);
size_t space_grid(const struct search_space *s); /* combinations of all values; 0: some param has a range */

#define SPACE_VALUE_BYTES 256

/* One value of a trial, as on a command line; true and false for booleans (*ret_bool tells). grid: the trial-th
 * combination, the last param first; else drawn. */
void space_value(const struct search_space *s, bool grid, size_t trial, size_t param, char *to, bool *ret_bool);

#endif
