/* importer.h: how what another tracker kept becomes runs here. A reader hands on one run after the other; each becomes
 * journals, in a folder of runs or sent to a server. What journals do not hold (files, experiments' tags, what was
 * deleted, the registry) is kept until all runs are there and then asked of the store. Everything is derived from what
 * was read alone, so that a repeat adds nothing. Readers know no store and no server. One thread. */
#ifndef DPT_CLI_IMPORTER_H
#define DPT_CLI_IMPORTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"
#include "web/cli/source.h"
#include "web/store/base/map.h"

struct http;

/* Where runs go. */
struct importer_target {
	const char *into;       /* the folder of runs; NULL: nowhere, what is read is only counted */
	const char *url;        /* NULL: into */
	const char *experiment; /* of all runs; NULL: as they are named */
};

struct importer {
	const struct importer_target *target;
	struct http *http;    /* with a URL */
	int spool_fd;         /* with a URL: the journal that is being sent, a file without a name */
	struct map *left_out; /* what of it → uint64_t, how often */
	struct arena *kept;   /* what waits in deferred, and names of runs */
	struct importer_deferred *deferred, **deferred_end;
	uint64_t runs, points, files;
};

int importer_init(struct importer *b, const struct importer_target *target, struct err *err);
void importer_done(struct importer *b); /* fine after a failed importer_init */

/* Counts what is not brought in; text is shown on a terminal. */
void importer_leave_out(struct importer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void importer_say_left_out(const struct importer *b, const char *how);

/* --- journals ------------------------------------------------------------------------------------------------- */

/* Who writes a journal; ids are 32 digits. */
struct importer_journal {
	const char *run, *writer, *experiment, *name;
	const char *file; /* its name in the run's folder */
};

/* The first 32 digits of the SHA-256 of a text that stays the same whenever the same thing is brought in. */
void importer_id(char ret[33], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts the journal where runs go: head and records, one behind the other. */
int importer_deliver(struct importer *b, const struct importer_journal *j, const struct buf *head, const struct buf *records,
		  struct err *err);

/* --- a run from somewhere else -------------------------------------------------------------------------------- */

/* A run that is being read. What it measured and what it says of itself become two journals: the first only grows when
 * the run was still going on, the second is written anew. */
struct importer_run {
	struct importer *of;
	char id[33];
	const char *experiment, *name; /* of the arena */
	double start_s;
	const char *part;      /* of a run that comes in several: which; else "" */
	int segment;           /* its number, from 0 */
	int64_t first_step;    /* of the segment: older segments' points from there on are hidden */
	struct buf points, facts;
	uint64_t count;        /* of points */
};

/* start_s: seconds since 1970. part, segment and first_step may be set behind it. */
int importer_run_begin(struct importer_run *r, struct importer *b, const char *id, const char *experiment, const char *name,
		    double start_s, struct err *err);
void importer_point(struct importer_run *r, const char *key, int64_t step, double wall_s, double value);
void importer_param(struct importer_run *r, const char *key, const char *value);
void importer_tag(struct importer_run *r, const char *key, const char *value);
void importer_env(struct importer_run *r, const char *key, const char *value);
void importer_code(struct importer_run *r, const char *name, const char *text);
void importer_alert(struct importer_run *r, double wall_s, const struct encode_alert *a);
void importer_lines(struct importer_run *r, double wall_s, const struct buf *lines); /* of console_add */
void importer_media(struct importer_run *r, const char *key, int64_t step, double wall_s, const struct buf *content);

/* A number that the run tells at its end, not one of a row of points. */
void importer_final(struct importer_run *r, const char *key, int64_t step, double wall_s, double value);
void importer_note(struct importer_run *r, const char *markdown);
void importer_status(struct importer_run *r, enum event_status status, double end_s);
int importer_run_end(struct importer_run *r, struct err *err); /* delivers; r is done with, also on failure */
void importer_run_drop(struct importer_run *r);                /* instead of importer_run_end */

/* --- what is asked of the store when the runs are there --------------------------------------------------------- */

/* A file of this machine, or all files below a folder, as artifacts of the run under a path there ("": its top). */
int importer_files(struct importer *b, const char *run, const char *path, const char *from, struct err *err);

struct importer_store {
	struct source *source;
	struct importer *of;
};

/* Runs fn when its turn comes; arg lives in b->kept. */
typedef int importer_fn(struct importer_store *s, void *arg, struct err *err);
int importer_then(struct importer *b, importer_fn *fn, void *arg, struct err *err);

/* All that was kept, in its order. Runs that the store has not seen yet are waited for. */
int importer_finish(struct importer *b, struct err *err);

/* A request with a JSON body (taken over; NULL: none). *ret (NULL: not wanted) is the caller's. A refusal is an error
 * with the server's words. */
int importer_ask(struct importer_store *s, const char *method, const char *target, json_t *body, json_t **ret,
	      struct err *err);

/* DELETE of a run, as its tracker had deleted it. */
int importer_delete_run(struct importer *b, const char *run, struct err *err);

#endif
