/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h: reads the YAML that PyYAML's safe_dump writes for a mapping of scalars and of mappings of scalars, as in
 * MLflow's file store: plain, quoted and folded scalars. Not general YAML: sequences are skipped, and anything but a
 * mapping is refused. Knows no files. */
#ifndef DPT_CLI_YAML_H
#define DPT_CLI_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct yaml_pair {
	const char *parent; /* "" at the top level */
	const char *key, *value; /* value NULL: null */
	struct yaml_pair *next;
};

/* The text ends with NUL. *ret is in the arena, in the order of the file. ERR_CORRUPT: err names the line. */
int yaml_read(const char *text, struct arena *a, struct yaml_pair **ret, struct err *err);

/* The value of a top-level key; "" when missing or null. */
const char *yaml_get(const struct yaml_pair *pairs, const char *key);

#endif
