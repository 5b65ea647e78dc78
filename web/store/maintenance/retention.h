/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h: rules of what the server deletes after some time: artifacts, the trash, what is over a quota. Nothing is
 * deleted without a rule. An experiment with rules of its own is not subject to those for all. Never deleted by a rule:
 * files of running runs, of the experiment's best runs, of runs with the tag RETENTION_KEEP, of runs and logged models
 * that a version of a registered model names, and versions of W&B's artifacts that have an alias, or that such a run
 * made or uses. Nothing below the followed folder is deleted. */
#ifndef DPT_STORE_RETENTION_H
#define DPT_STORE_RETENTION_H

#include "tracker/insight/goal.h"
#include "web/store/files/artifacts.h"

#define RETENTION_KEEP "keep"
#define RETENTION_OFF INT64_MIN

struct retention_rule {
	int64_t artifact_ms; /* artifacts stored longer ago than this; RETENTION_OFF: none */
	int64_t keep_best;   /* runs whose artifacts stay: by the goal of the experiment, else the newest */
	int64_t trash_ms;    /* runs and models that were deleted longer ago; RETENTION_OFF: none */
	int64_t quota_bytes; /* of the artifacts of the experiment, or of all without rules of their own: the oldest go
			      */
};
#define RETENTION_NO_RULE { RETENTION_OFF, 1, RETENTION_OFF, RETENTION_OFF }

/* ERR_USAGE, with the field: a quota of 0, or a rule that would delete every artifact. */
int retention_check(const struct retention_rule *r, struct err *err);

struct retention_own {
	int64_t experiment;
	const char *name;
	struct retention_rule rule;
};

struct retention_rules {
	struct retention_rule all;
	struct retention_own *items; /* by id of the experiment */
	size_t count;
};

/* The rule of the experiment's own; NULL: that for all counts there. */
const struct retention_rule *retention_own_rule(const struct retention_rules *r, int64_t experiment);

/* A restricted caller gets the rules of experiments that it administers, and those for all. */
int retention_rules(struct store *s, struct arena *a, struct retention_rules *ret, struct err *err);

/* What the stored rules would delete now, or another rule in place of that of the experiment or of all. */
struct retention_plan;
struct retention_preview {
	const char *experiment;		      /* NULL: all */
	const struct retention_rule *instead; /* NULL: the stored rules */
	bool (*stop)(void *arg);	      /* NULL: never */
	void *arg;
};

/* Only ret->experiments is filled for the caller: those that it administers. ERR_NOENT: no such experiment;
 * ERR_DENIED: it is seen, but not administered. */
int retention_preview(struct store *s, const struct retention_preview *o, struct arena *a, struct retention_plan *ret,
		      struct err *err);

/* For retention_change_put. */
struct retention_put {
	const char *experiment;		   /* a name; NULL: all */
	const struct retention_rule *rule; /* NULL: no rules of its own */
};

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/maintenance/changes.def"
#undef CHANGE

/* --- private to this room --------------------------------------------------------------------------------------- */

/* What the rules say now about the files of one experiment. */
struct retention_experiment {
	int64_t id;
	const char *name;
	struct retention_rule rule;
	bool own;
	struct goal_choice goal; /* by which the best runs are chosen; no key: the newest */
	size_t kept_runs;
	uint64_t files, bytes;		     /* all of it */
	uint64_t doomed_files, doomed_bytes; /* what goes; not of runs and models that the trash rule removes */
	uint64_t trash_runs, trash_models, trash_bytes;
};

struct retention_file {
	struct artifact_item of;
	uint32_t unit;
	bool stays, doomed, over_quota;
	int64_t version; /* id of the version of W&B's artifacts that it belongs to; 0: none */
};

/* A run or a logged model with its files. */
struct retention_unit {
	char uuid[40];
	int64_t deleted_ms; /* INT64_MIN: it is not */
	uint32_t experiment;
	bool model, kept, trash; /* trash: the trash rule removes it */
	size_t first, count;	 /* of its files */
};

struct retention_plan {
	struct retention_experiment *experiments; /* by id */
	struct retention_unit *units;
	struct retention_file *files;
	size_t experiment_count, unit_count, file_count;
};

struct retention_plan_opts {
	struct retention_rules rules;
	bool all_files;	     /* also list files of experiments of which nothing goes */
	const int64_t *only; /* of this experiment; NULL: all */
	bool (*stop)(void *arg);
	void *arg;
};

/* Decides what goes, in one snapshot; the whole store. ERR_CANCELED: stop returned true. */
int retention_plan(struct store *s, const struct retention_plan_opts *o, struct arena *a, struct retention_plan *ret,
		   struct err *err);

/* The number of an experiment that the caller administers. ERR_NOENT, ERR_DENIED. */
int retention_experiment_id(struct store *s, const char *name, int64_t *ret, struct err *err);

/* The ids (32 digits) that versions of registered models name, in an array for map look-ups. */
struct map;
int retention_registered(struct store *s, struct map *io, struct err *err);

/* For retention_change_purge: files of one run or model that go in one step. */
#define RETENTION_STEP 100
struct retention_step {
	const char *uuid, *experiment;
	const char *why; /* for the audit log */
	bool model;
	int64_t version; /* of W&B's artifacts, which is deleted with its files; 0: none */
	struct artifact_files files;
};

#endif
