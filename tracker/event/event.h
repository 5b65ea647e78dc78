/* SPDX-License-Identifier: Apache-2.0 */
/* event.h: reads the payload of a record: an Event message of our own journals or of any TensorBoard writer. Pure: no
 * I/O, no allocation; every text points into the payload. Field numbers of the standard messages come from TensorFlow's
 * event.proto and summary.proto and TensorBoard's hparams plugin; ours are defined in schema/event/fields.def.
 *
 *	struct event ev;
 *	struct event_item item;
 *
 *	if (event_open(&ev, rec.payload, rec.payload_bytes))
 *		... not a protobuf Event: count it, continue with the next record ...
 *	while ((rc = event_next(&ev, &item)) > 0)
 *		switch (item.kind) ...
 *
 * Standard fields that repeat our own for TensorBoard (hparams, text) are not reported. */
#ifndef DPT_EVENT_EVENT_H
#define DPT_EVENT_EVENT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* schema/event/limits.def as constants LIMIT_<name>. */
enum limit {
#define LIMIT(name, value) LIMIT_##name = (value),
#include "schema/event/limits.def"
#undef LIMIT
};

#define EVENT_RANK_RUN (-1)	 /* a series of the whole run */
#define EVENT_RANK_LAUNCHER (-2) /* header.rank of the launcher's journal */
/* A tag in each event file of `dptrack export --events`: JSON with run, name, experiment, rank, segment and world_size.
 * It tells an import which run the file is; it is not a tag of the run. */
#define EVENT_EXPORT_TAG "dptrack.export"

/* not in the record: the journal's rank if it is above 0, else the whole run */
#define EVENT_RANK_DEFAULT (INT_MIN)

struct event_text {
	const char *at; /* not NUL-terminated; may be invalid UTF-8 */
	size_t len;
};

enum event_status {
	EVENT_RUNNING = 0,
	EVENT_FINISHED = 1,
	EVENT_FAILED = 2,
	EVENT_KILLED = 3,
	EVENT_PREEMPTED = 4,
	EVENT_SCHEDULED = 5,
};

enum event_type { EVENT_TYPE_TEXT, EVENT_TYPE_F64, EVENT_TYPE_I64, EVENT_TYPE_BOOL };

enum event_kind {
	EVENT_SCALAR,	     /* key, value, rank; step and wall_time of the event */
	EVENT_HEADER,	     /* header: the first record of one of our journals */
	EVENT_PARAM,	     /* key, type, text | value | integer, segment, changed; also from other writers' hparams */
	EVENT_TAG,	     /* key, text */
	EVENT_ENV,	     /* key, text */
	EVENT_NOTE,	     /* text (markdown) */
	EVENT_STATUS,	     /* status, text = reason */
	EVENT_HEARTBEAT,     /* integer = count */
	EVENT_FILE_VERSION,  /* text, such as "brain.Event:2"; not reported with a header */
	EVENT_SESSION,	     /* integer = SessionLog status: 1 start, 2 stop, 3 checkpoint */
	EVENT_HPARAMS_START, /* value = start time in seconds, text = group name; its EVENT_PARAM items follow */
	EVENT_HPARAMS_END,   /* value = end time in seconds (0: unknown), status */
	EVENT_TEXT,	     /* key, text: first string of a text summary; raw, rank */
	EVENT_CONSOLE,	     /* text = lines, for console_next (event_encode.h); wall_time is the first one's */
	EVENT_CODE,	     /* key, text: what ran: "commit", "diff", "packages", … */
	EVENT_ALERT,	     /* integer = level, key = title, text; step of the event */
	EVENT_INPUT,	     /* input: a data set that the run reads */
	EVENT_FILE,	     /* key = name, text = SHA-256, integer = bytes: a file stored with the run */
	/* key = tag, text = plugin name (may be empty): histogram, image, graph, … not interpreted; raw, rank */
	EVENT_OTHER,
};

/* The writer of the journal; texts point into the payload. */
struct event_header {
	unsigned format;	     /* 1 */
	struct event_text run_id;    /* checked: 32 lower-case hex digits */
	struct event_text writer_id; /* checked: 32 lower-case hex digits */
	int rank;		     /* from 0, or EVENT_RANK_LAUNCHER */
	int world_size;
	struct event_text experiment;
	struct event_text run_name;
	int segment;
	int64_t first_step;
	int64_t first_epoch;
	struct event_text host;
	int64_t pid;
	bool ordered; /* points keep their order across series */
	struct event_text version;
};

/* A data set; texts point into the payload and may be empty. */
struct event_input {
	struct event_text name, digest, context, source_type, source, profile;
};

struct event_span {
	const unsigned char *at;
	const unsigned char *end;
};

struct event_item {
	enum event_kind kind;
	struct event_text key;
	struct event_text text;
	double value;
	int64_t integer;
	enum event_type type;
	enum event_status status;
	int rank;			   /* EVENT_RANK_DEFAULT, EVENT_RANK_RUN or a rank */
	bool segment;			   /* a param of the segment */
	bool changed;			   /* a param that replaces its earlier value */
	struct event_span raw;		   /* the Summary.Value unchanged, for event_media.h; may be empty */
	const struct event_header *header; /* inside struct event */
	struct event_input input;
};

/* Caller's storage; needs no _done. Read only wall_time, step and ours. */
struct event {
	double wall_time;			/* seconds since 1970 UTC; 0 when absent */
	int64_t step;				/* 0 when absent */
	bool ours;				/* has an extension field of ours at top level */
	struct event_span top, summary, params; /* what remains to be walked */
	struct event_header header;
};

/* Returns 0, or ERR_CORRUPT if the top level is not a well-formed message or the wall time is NaN. */
int event_open(struct event *ret, const void *payload, size_t n);

/* Returns 1 and fills *ret (only the members listed at its kind are valid), 0 at the end, ERR_CORRUPT if a nested
 * message is malformed. */
int event_next(struct event *ev, struct event_item *ret);

const char *event_status_name(enum event_status s); /* "running", …; NULL if out of range */

static inline bool event_text_equal(struct event_text t, const char *s)
{
	return strlen(s) == t.len && !memcmp(t.at, s, t.len);
}

/* Checks the name of a series, param, tag or environment entry. The library and the server use this rule. Returns NULL
 * if it is valid, else what is wrong ("is empty", …). Valid: UTF-8, 1 to 250 characters, no control characters. */
const char *key_check(const char *key, size_t len);

#define KEY_SHOWN_BYTES 96u

/* Copies the beginning of any key (NULL: ""), with control characters replaced, for a line of text. */
void key_show(char to[KEY_SHOWN_BYTES], const char *key);

#endif
