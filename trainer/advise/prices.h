/* SPDX-License-Identifier: Apache-2.0 */
/* prices.h: what a machine costs an hour, from a file that the user edits (schema/hardware/prices.schema.json). */
#ifndef DPT_ADVISE_PRICES_H
#define DPT_ADVISE_PRICES_H

#include "tracker/base/err.h"

struct prices;

/* Reads a file of prices. path NULL: $XDG_CONFIG_HOME/dptrain/prices.json (or ~/.config/...) if it exists, else the
 * shipped one. ERR_USAGE names file and member. The caller frees *ret with prices_free. */
int prices_open(struct prices **ret, const char *path, struct err *err);
void prices_free(struct prices *p); /* NULL is fine */

const char *prices_currency(const struct prices *p);

/* Returns the price of an hour of the machine with that name; negative: no price is known. */
double prices_per_hour(const struct prices *p, const char *machine);

#endif
