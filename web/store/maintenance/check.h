/* check.h: looks a store over: the SQLite in use, the file's place, its structure, points against their summaries.
 * Reads only, in many short snapshots, so that it may run while everything else goes on. Any thread. */
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
	const char *text; /* what is so, and what to do when it is wrong */
};

struct check_report {
	struct check_finding *items;
	size_t count, cap;
	enum check_level worst;
	int64_t time_ms; /* when it ended; 0: never */
};

const char *check_level_name(enum check_level level); /* "ok" "note" "warning" "error" */

/* full: every series and every table's indexes instead of samples. Negative only when it could not be carried out; what
 * is wrong stands in the report, whose texts live in the arena. */
int check_store(struct store *s, bool full, struct arena *a, struct check_report *ret, struct err *err);

/* The same without an open store, for one that cannot be opened: what can be said of the file at db_path. */
int check_file(const char *db_path, struct arena *a, struct check_report *ret, struct err *err);

/* Runs check_store(full false) once on a thread of its own; check_last gives what it found, copied to the arena, or an
 * empty report while there is none. */
int check_background(struct store *s, struct err *err);
int check_last(struct store *s, struct arena *a, struct check_report *ret);

#endif
