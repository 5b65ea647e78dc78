/* SPDX-License-Identifier: Apache-2.0 */
/* run_records.h: reads the records of a run besides numbers and settings: console lines, code, files, alerts, media.
 * All results live in the caller's arena. ERR_NOENT, ERR_GONE: no such run. */
#ifndef DPT_STORE_RUN_RECORDS_H
#define DPT_STORE_RUN_RECORDS_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "tracker/event/event_media.h"

struct store;

struct run_records_part { /* a part of the console */
	int rank, segment;
	int64_t lines;
};

struct run_records_line {
	int64_t number; /* line number in its part, from 0 */
	int64_t time_ms;
	int stream;	  /* 1 standard output, 2 standard error */
	bool again;	  /* overwritten by the next line of the stream (carriage return) */
	const char *text; /* not NUL-terminated; maybe not UTF-8 */
	size_t text_len;
};

struct run_records_console_opts {
	const char *run;
	int rank;      /* INT_MIN: the lowest with lines */
	int segment;   /* -1: the newest with lines */
	int64_t from;  /* first line; negative: counted from the end */
	int64_t at_ms; /* if not INT64_MIN: from is relative to the last line printed by then */
	size_t limit;
	const char *search; /* if not NULL: only lines that contain it */
};

struct run_records_console {
	struct run_records_part *parts; /* by rank and segment */
	size_t part_count;
	struct run_records_part part; /* the one read; lines 0: nothing was printed */
	struct run_records_line *lines;
	size_t line_count;
};

int run_records_console(struct store *s, const struct run_records_console_opts *o, struct arena *a,
			struct run_records_console *ret, struct err *err);

struct run_records_edition {
	int64_t number, written_ms; /* INT64_MIN: not known */
	const char *text;
};

/* The notes of a run: the editions that are stored, oldest first; the last has the notes as they are. */
struct run_records_notes {
	struct run_records_edition *items;
	size_t count;
};

int run_records_notes(struct store *s, const char *run, struct arena *a, struct run_records_notes *ret,
		      struct err *err);

struct run_records_code {
	int segment;
	const char *name, *text;
};

struct run_records_codes {
	struct run_records_code *items;
	size_t count;
};

int run_records_codes(struct store *s, const char *run, struct arena *a, struct run_records_codes *ret,
		      struct err *err);

struct run_records_file { /* stored with the run, by name */
	const char *name, *sha256;
	int64_t bytes;
};

struct run_records_files {
	struct run_records_file *items;
	size_t count;
};

int run_records_files(struct store *s, const char *run, struct arena *a, struct run_records_files *ret,
		      struct err *err);

struct run_records_alert {
	int rank, segment, level;
	int64_t step, time_ms;
	const char *title, *text;
};

struct run_records_alerts {
	struct run_records_alert *items;
	size_t count;
};

int run_records_alerts(struct store *s, const char *run, struct arena *a, struct run_records_alerts *ret,
		       struct err *err);

/* Reads the media of a run (images, histograms, texts, tables, sounds), without those that a restart hides.
 * All results live in the caller's arena. ERR_NOENT, ERR_GONE: no such run. */

struct stored_media {
	int64_t id;		  /* ascending in order of arrival */
	const char *key, *digest; /* SHA-256 of the content */
	enum media_kind kind;
	int rank, segment;
	int64_t step;
	double wall_time;
	const char *type;	   /* media type of the returned file, */
	int64_t bytes;		   /* and its size */
	int64_t width, height;	   /* pixels; columns and rows of a table; else 0 */
	struct event_span content; /* media_of_part only */
};

struct media_key { /* what is visible of a key */
	const char *key;
	enum media_kind kind;
	int64_t count, first_step, last_step;
};

struct media_opts {
	const char *run;
	const char *key;      /* NULL: all */
	enum media_kind kind; /* MEDIA_NONE: all */
	int64_t from, to;     /* steps */
	bool hidden;	      /* include hidden ones */
	size_t limit;
};

struct media_list {
	struct media_key *keys;
	size_t key_count;
	struct stored_media *items; /* by step, key, rank */
	size_t count;
};

int media_of_run(struct store *s, const struct media_opts *o, struct arena *a, struct media_list *ret, struct err *err);

/* The content with this digest. ERR_NOENT: the run has none. */
struct media_ref {
	const char *run, *digest;
};
int media_get(struct store *s, const struct media_ref *of, struct arena *a, struct event_span *ret, struct err *err);

/* The items of one rank in one segment of a run. */
struct media_part {
	const char *run;
	int rank, segment;
	int64_t after; /* only items with a higher id */
};

/* The next items of a part, in order, with contents; 0 items: the end. */
int media_of_part(struct store *s, const struct media_part *part, struct arena *a, struct media_list *ret,
		  struct err *err);

#endif
