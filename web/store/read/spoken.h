/* spoken.h: what a run told besides numbers and settings, read back: lines of the console, what ran, files, alerts.
 * Everything
 * lies in the caller's arena. ERR_NOENT, ERR_GONE: no such run. */
#ifndef DPT_STORE_SPOKEN_H
#define DPT_STORE_SPOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

struct spoken_part { /* of the console */
	int rank, segment;
	int64_t lines;
};

struct spoken_line {
	int64_t number; /* from 0 in its part */
	int64_t time_ms;
	int stream; /* 1 standard output, 2 standard error */
	bool again; /* the next line of the stream was printed over it */
	const char *text; /* not NUL-terminated; UTF-8 is not guaranteed */
	size_t text_len;
};

struct spoken_console_opts {
	const char *run;
	int rank;       /* INT_MIN: the lowest that printed */
	int segment;    /* -1: the newest in which it printed */
	int64_t from;   /* first line; negative: so many before the end */
	int64_t at_ms;  /* INT64_MIN, or: from is counted from the last line printed by then */
	size_t limit;
	const char *search; /* NULL, or: only lines that contain it */
};

struct spoken_console {
	struct spoken_part *parts; /* by rank and segment */
	size_t part_count;
	struct spoken_part part; /* the one that was read; lines 0: nothing was printed */
	struct spoken_line *lines;
	size_t line_count;
};

int spoken_console(struct store *s, const struct spoken_console_opts *o, struct arena *a, struct spoken_console *ret,
		   struct err *err);

struct spoken_code {
	int segment;
	const char *name, *text;
};

int spoken_code(struct store *s, const char *run, struct arena *a, struct spoken_code **ret, size_t *ret_count,
		struct err *err);

struct spoken_file { /* that is kept with the run, by name */
	const char *name, *sha256;
	int64_t bytes;
};

int spoken_files(struct store *s, const char *run, struct arena *a, struct spoken_file **ret, size_t *ret_count,
		 struct err *err);

struct spoken_alert {
	int rank, segment, level;
	int64_t step, time_ms;
	const char *title, *text;
};

int spoken_alerts(struct store *s, const char *run, struct arena *a, struct spoken_alert **ret, size_t *ret_count,
		  struct err *err);

#endif
