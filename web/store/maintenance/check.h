/* check.h: checks a store: the SQLite version, the place of the file, its structure, points against their summaries.
 * Reads only, in many short snapshots, so it can run during normal operation. Any thread. */
#ifndef DPT_STORE_CHECK_H
#define DPT_STORE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_WARNING, CHECK_ERROR };

struct check_finding {
	enum check_level level;
	/* of the check: "sqlite", "place", "schema", "structure", "points", "rows", "log", "writes" */
	const char *name;
	const char *text; /* the finding, and what to do if it is a problem */
};

struct check_report {
	struct check_finding *items;
	size_t count, cap;
	enum check_level worst;
	int64_t time_ms; /* end of the check; 0: never */
};

const char *check_level_name(enum check_level level); /* "ok" "note" "warning" "error" */

/* full: every series and all indexes, instead of samples. Negative: the check failed; problems of the store are in
 * the report, whose texts live in the arena. */
int check_store(struct store *s, bool full, struct arena *a, struct check_report *ret, struct err *err);

/* For a store that cannot be opened: checks what is possible of the file at db_path. */
int check_file(const char *db_path, struct arena *a, struct check_report *ret, struct err *err);

/* Runs check_store(full false) once in the background; check_last copies its report to the arena, or an empty one if
 * there is none yet. */
int check_background(struct store *s, struct err *err);
int check_last(struct store *s, struct arena *a, struct check_report *ret);

#endif
