/* event.h: reads the payload of a record: an Event message, of our own journals or of any TensorBoard writer. Pure: no
 * I/O, no allocation; every text points into the payload. Numbers of the standard messages are TensorFlow's
 * event.proto and summary.proto and TensorBoard's hparams plugin; those of ours stand in schema/event/fields.def.
 *
 *	struct event ev;
 *	struct event_item item;
 *
 *	if (event_open(&ev, rec.payload, rec.payload_bytes))
 *		... not a protobuf Event: count it, go on with the next record ...
 *	while ((rc = event_next(&ev, &item)) > 0)
 *		switch (item.kind) ...
 *
 * What a standard part merely repeats for TensorBoard in our own journals (hparams, text) is not reported twice. */
#ifndef DPT_EVENT_EVENT_H
#define DPT_EVENT_EVENT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EVENT_RANK_RUN (-1)          /* a series of the run as a whole */
#define EVENT_RANK_LAUNCHER (-2)     /* header.rank of the launcher's journal */
/* the record does not say: the journal's own where it is above 0, else the run's */
#define EVENT_RANK_DEFAULT (INT_MIN)

struct event_text {
	const char *at; /* not NUL-terminated; valid UTF-8 is not guaranteed */
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
	EVENT_SCALAR,       /* key, value, rank; step and wall_time of the event */
	EVENT_HEADER,       /* header: this is the first record of a journal of ours */
	EVENT_PARAM,        /* key, type, text | value | integer, segment; also from foreign hparams */
	EVENT_TAG,          /* key, text */
	EVENT_ENV,          /* key, text */
	EVENT_NOTE,         /* text (markdown) */
	EVENT_STATUS,       /* status, text = reason */
	EVENT_HEARTBEAT,    /* integer = count */
	EVENT_FILE_VERSION, /* text, such as "brain.Event:2"; not reported beside a header */
	EVENT_SESSION,      /* integer = SessionLog status: 1 start, 2 stop, 3 checkpoint */
	EVENT_HPARAMS_START, /* value = start time in seconds, text = group name; its EVENT_PARAM items follow */
	EVENT_HPARAMS_END,  /* value = end time in seconds (0: unknown), status */
	EVENT_TEXT,         /* key, text: first string of a text summary; raw, rank */
	EVENT_CONSOLE,      /* text = lines, for console_next (event_console.h); wall_time is the first one's */
	EVENT_CODE,         /* key, text: what ran: "commit", "diff", "packages", … */
	EVENT_ALERT,        /* integer = level, key = title, text; step of the event */
	EVENT_INPUT,        /* input: a data set that the run reads */
	EVENT_FILE,         /* key = name, text = SHA-256, integer = bytes: a file that is kept with the run */
	/* key = tag, text = plugin name (may be empty): histogram, image, graph, … left uninterpreted; raw, rank */
	EVENT_OTHER,
};

/* Who writes the journal; texts point into the payload. */
struct event_header {
	unsigned format; /* 1 */
	struct event_text run_id;    /* checked: 32 lower-case hex digits */
	struct event_text writer_id; /* checked: 32 lower-case hex digits */
	int rank;                    /* from 0, or EVENT_RANK_LAUNCHER */
	int world_size;
	struct event_text experiment;
	struct event_text run_name;
	int segment;
	int64_t first_step;
	int64_t first_epoch;
	struct event_text host;
	int64_t pid;
	bool ordered;                /* the order of points across series is kept */
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
	int rank;     /* EVENT_RANK_DEFAULT, EVENT_RANK_RUN or a rank */
	bool segment; /* a param of the segment */
	struct event_span raw; /* the Summary.Value as it came, for event_media.h; empty where there is none */
	const struct event_header *header; /* inside struct event */
	struct event_input input;
};

/* Caller's storage; no _done needed. Only wall_time, step and ours are for reading. */
struct event {
	double wall_time; /* seconds since 1970 UTC; 0 when absent */
	int64_t step;     /* 0 when absent */
	bool ours;        /* carries an extension field of ours at top level */
	struct event_span top, summary, params; /* what is left to walk */
	struct event_header header;
};

/* 0, or ERR_CORRUPT when the top level is no well-formed message or the wall time is NaN. */
int event_open(struct event *ret, const void *payload, size_t n);

/* 1: *ret is filled (only the members named at its kind are meaningful); 0: no more; ERR_CORRUPT: malformed inside. */
int event_next(struct event *ev, struct event_item *ret);

const char *event_status_name(enum event_status s); /* "running", …; NULL when out of range */

static inline bool event_text_equal(struct event_text t, const char *s)
{
	return strlen(s) == t.len && !memcmp(t.at, s, t.len);
}

#endif
