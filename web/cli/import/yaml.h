/* yaml.h: reads the YAML that PyYAML's safe_dump writes for a mapping of scalars and of mappings of scalars, as
 * MLflow's file store keeps them: plain, quoted and folded scalars. Not YAML in general: sequences are stepped over,
 * and what is no mapping is refused. Knows no files. */
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

/* Text ends with NUL. *ret is of the arena, in the file's order. ERR_CORRUPT names the line. */
int yaml_read(const char *text, struct arena *a, struct yaml_pair **ret, struct err *err);

/* The value of a top-level key; "" when it is not there or null. */
const char *yaml_get(const struct yaml_pair *pairs, const char *key);

#endif
