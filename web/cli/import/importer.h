/* SPDX-License-Identifier: Apache-2.0 */
/* importer.h: converts data of other trackers to runs. A reader passes on one run after the other. Each run becomes
 * journals, in a folder of runs or sent to a server. What journals cannot contain (files, tags of experiments,
 * deletions, the registry) is queued until all runs are stored, and then requested from the store. Everything is
 * derived from the input alone, so a repeated import adds nothing. Readers know no store and no server. One thread. */
#ifndef DPT_CLI_IMPORTER_H
#define DPT_CLI_IMPORTER_H

#include <stdio.h>

#include "tracker/base/file.h"
#include "tracker/base/terminal.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"
#include "web/cli/cli.h"
#include "web/store/base/map.h"

struct http;

/* Destination of the runs. */
struct importer_target {
	const char *into;	/* the folder of runs; NULL: none, the input is only counted */
	const char *url;	/* NULL: use into */
	const char *experiment; /* experiment for all runs; NULL: their own */
};

/* Requests after all runs, by what they need: outputs name models, versions name files, a deleted run takes no data. */
enum importer_phase { IMPORT_FILES, IMPORT_MODELS, IMPORT_OUTPUTS, IMPORT_REGISTRY, IMPORT_DELETIONS, IMPORT_PHASES };

struct importer {
	const struct importer_target *target;
	struct http *http;    /* set with a URL */
	int spool_fd;	      /* set with a URL: an unnamed file for the journal that is being sent */
	struct map *left_out; /* description → uint64_t, number of occurrences */
	struct arena *kept;   /* owns the queues and the names of runs */
	struct importer_queue {
		struct importer_deferred *first, **end;
	} queues[IMPORT_PHASES];
	char called[300];		   /* name of the source, for people; set by json_lines_take */
	const char *folder;		   /* the input: only what is below is read; NULL: nothing */
	const struct flag_list *elsewhere; /* other folders that the user allows; NULL: none */
	uint64_t runs, points, files;
	struct terminal_progress progress; /* counts runs; their total is unknown */
};

int importer_init(struct importer *b, const struct importer_target *target, struct err *err);
void importer_done(struct importer *b); /* valid after a failed importer_init */

/* Counts an item that is not imported; the text is printed later. */
void importer_leave_out(struct importer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For an item of the input that could not be read: counts it as left out, with the reason in why. Returns 0, or the
 * code with *err filled if the import cannot continue (no memory, destination or server lost). */
int importer_skip(struct importer *b, int rc, const struct err *why, struct err *err);

/* Opens a file that the input names, below the input or a folder that the user allows. ERR_USAGE: it is elsewhere, or
 * no regular file. */
int importer_map(const struct importer *b, struct file_map *ret, const char *path, struct err *err);

/* False, counted as left out, if the path leads elsewhere. */
bool importer_allows(struct importer *b, const char *path);

/* What is at the path in the input. A link is ENTRY_FILE if it leads to a file that importer_map may open. ENTRY_NONE:
 * it was counted as left out. */
enum importer_entry { ENTRY_NONE, ENTRY_FILE, ENTRY_FOLDER };
enum importer_entry importer_entry(struct importer *b, const char *path);

void importer_say_left_out(const struct importer *b, const char *how);

/* --- journals ------------------------------------------------------------------------------------------------- */

/* Identity of a journal; ids have 32 digits. */
struct importer_journal {
	const char *run, *writer, *experiment, *name;
	const char *file; /* file name in the run's folder */
};

/* The first 32 digits of the SHA-256 of a text. The text must be the same at every import of the same item. */
void importer_id(char ret[33], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes or sends a journal: head followed by records. */
int importer_deliver(struct importer *b, const struct importer_journal *j, const struct buf *head,
		     const struct buf *records, struct err *err);

/* --- an imported run ------------------------------------------------------------------------------------------- */

/* A run that is being read. Its measurements and its description become two journals. The first only grows when the run
 * continues after an import, the second is replaced. */
struct importer_run {
	struct importer *of;
	char id[33];
	const char *experiment, *name; /* owned by the arena */
	double start_s;
	const char *part;   /* name of this part of a run; "" if it has one part */
	int segment;	    /* number of the segment, from 0 */
	int64_t first_step; /* of the segment: points of older segments from this step on are hidden */
	struct buf points, facts;
	uint64_t count; /* number of points */
};

/* What a run begins with: id of 32 hex digits, seconds since 1970. */
struct importer_run_head {
	const char *id, *experiment, *name;
	double start_s;
};

/* part, segment and first_step may be set after the call. */
int importer_run_begin(struct importer_run *r, struct importer *b, const struct importer_run_head *head,
		       struct err *err);
void importer_point(struct importer_run *r, const char *key, int64_t step, double wall_s, double value);
void importer_param(struct importer_run *r, const char *key, const char *value);
void importer_param_json(struct importer_run *r, const char *key, json_t *value); /* keeps the type */
void importer_tag(struct importer_run *r, const char *key, const char *value);
void importer_env(struct importer_run *r, const char *key, const char *value);
void importer_code(struct importer_run *r, const char *name, const char *text);
void importer_alert(struct importer_run *r, double wall_s, const struct encode_alert *a);
void importer_lines(struct importer_run *r, double wall_s, const struct buf *lines); /* built by console_add */
void importer_media(struct importer_run *r, const char *key, int64_t step, double wall_s, const struct buf *content);

/* A final value of a metric, not a point of its series. */
void importer_final(struct importer_run *r, const char *key, int64_t step, double wall_s, double value);
void importer_note(struct importer_run *r, const char *markdown);
void importer_status(struct importer_run *r, enum event_status status, double end_s, const char *reason);
void importer_run_rename(struct importer_run *r, const char *name); /* before importer_run_end */
int importer_run_end(struct importer_run *r, struct err *err);	    /* delivers; r is finished, also on failure */
void importer_run_drop(struct importer_run *r);			    /* in place of importer_run_end */

/* --- requests to the store after all runs ---------------------------------------------------------------------- */

/* Queues a file of this machine, or all files below a folder, as artifacts of the run at a path ("": the top). */
int importer_files(struct importer *b, const char *run, const char *path, const char *from, struct err *err);

struct importer_store {
	struct source *source;
	struct importer *of;
};

/* Queues fn for importer_finish; arg must live in b->kept. */
typedef int importer_fn(struct importer_store *s, void *arg, struct err *err);
int importer_then(struct importer *b, enum importer_phase phase, importer_fn *fn, void *arg, struct err *err);

/* Runs the queue, by phase and in order. Waits for runs that the store has not read yet. */
int importer_finish(struct importer *b, struct err *err);

/* Uploads the files below a folder that the artifacts of a logged model at `base` lack. */
int importer_model_files(struct importer_store *s, const char *base, const char *from, struct err *err);

/* Queues the deletion of a run that its tracker had deleted. */
int importer_delete_run(struct importer *b, const char *run, struct err *err);

/* --- folders ------------------------------------------------------------------------------------------------------ */

/* path: of an entry; name: its last component. */
typedef int folder_fn(void *arg, const char *path, const char *name, struct err *err);

/* Calls fn for all entries of the folder, by name in any locale, until one returns non-zero, which is then returned. A
 * missing folder counts as empty. */
int folder_each(const char *folder, folder_fn *fn, void *arg, struct err *err);

/* --- readers, one for each tracker; *_is returns true if the path has its data ----------------------------------- */

/* Event files of TensorBoard's writers; prints a summary. ERR_USAGE: no file is from another program. */
int events_import(struct importer *b, const char *from, struct err *err);

/* Runs as lines of JSON; docs/reference/json-lines.md describes the format. "-": standard input. */
bool json_lines_is(const char *path);
int json_lines_read(struct importer *b, const char *path, struct err *err);
int json_lines_take(struct importer *b, FILE *f, struct err *err);

/* ---- model_lines.c ----
 * Queues what docs/reference/json-lines.md calls experiment, input, output, logged_model and registered_model. Borrows
 * the objects. */
int model_line_experiment(struct importer *b, json_t *experiment, struct err *err);
int model_line_input(struct importer *b, const char *run, json_t *input, struct err *err);
int model_line_output(struct importer *b, const char *run, const char *model, int64_t step, struct err *err);
int model_line_logged(struct importer *b, json_t *model, struct err *err); /* sets its experiment */
int model_line_registered(struct importer *b, json_t *model, struct err *err);

/* ---- content.c ----
 * Reads JSON of other trackers as numbers, texts, histograms and tables. */

/* "NaN", "Infinity" and "-Infinity" are numbers, true is 1. */
bool content_is_number(json_t *value);
double content_number(json_t *value); /* NaN for other values */

/* A string itself, any other value printed; NULL: out of memory. The caller frees it. */
char *content_text(json_t *value);

/* Converts {"values": counts, "bins": edges}, one more edge than counts. Returns false for other forms (older ones of
 * W&B are packed). */
bool content_add_histogram(struct buf *to, json_t *histogram);

/* Converts {"columns": [...], "data": [[...], ...]}; the column names are the first row. Returns false without
 * columns. */
bool content_add_table(struct buf *to, json_t *table);

#endif
