/* SPDX-License-Identifier: Apache-2.0 */
/* event_encode.h: appends whole records (framed Event messages) of our journal to a buffer, and reads and writes the
 * lines of a console record. Field numbers: see event.h. Pure. Texts must be valid UTF-8 and keys must have passed
 * key_check; buf_failed reports a full buffer. */
#ifndef DPT_EVENT_EVENT_ENCODE_H
#define DPT_EVENT_EVENT_ENCODE_H

#include "tracker/base/buf.h"
#include "tracker/event/event.h"

struct encode_param {
	struct event_text key;
	enum event_type type;
	struct event_text text;
	double value;
	int64_t integer;
	bool segment, changed;
};

/* rank is the series' rank; journal_rank the header's, which decides if the rank has to be written. */
struct encode_scalar {
	struct event_text key;
	int64_t step;
	double wall_time;
	double value;
	int rank;
	int journal_rank;
};

void encode_header(struct buf *b, double wall_time, const struct event_header *h); /* the first record */
void encode_file_version(struct buf *b, double wall_time); /* first record of a file that is not one of our journals */
void encode_session_start(struct buf *b, double wall_time, int64_t step); /* SessionLog START */
void encode_scalar(struct buf *b, const struct encode_scalar *s);
void encode_param(struct buf *b, double wall_time, const struct encode_param *p);
void encode_tag(struct buf *b, double wall_time, struct event_text key, struct event_text value);
void encode_env(struct buf *b, double wall_time, struct event_text key, struct event_text value);
void encode_note(struct buf *b, double wall_time, struct event_text markdown); /* also writes a text summary "notes" */
void encode_status(struct buf *b, double wall_time, enum event_status status, struct event_text reason);
void encode_heartbeat(struct buf *b, double wall_time, uint64_t count);

void encode_code(struct buf *b, double wall_time, struct event_text name, struct event_text text);

/* level: 1 information, 2 warning, 3 error. */
struct encode_alert {
	int level;
	int64_t step;
	struct event_text title, text;
};

void encode_alert(struct buf *b, double wall_time, const struct encode_alert *a);

struct encode_file {
	struct event_text name, sha256;
	uint64_t bytes;
};

void encode_file(struct buf *b, double wall_time, const struct encode_file *f);

void encode_input(struct buf *b, double wall_time, const struct event_input *in); /* empty strings are omitted */

void encode_console(struct buf *b, double wall_time, const struct buf *lines); /* lines: of console_add */

/* TensorBoard's HParams tab: the session's start with its params, and its end (FINISHED: success, else failure). */
void encode_hparams_start(struct buf *b, double wall_time, const struct encode_param *params, size_t n);
void encode_hparams_end(struct buf *b, double wall_time, enum event_status status);

/* A line of console output. */
struct console_line {
	int stream;		/* 1 standard output, 2 standard error */
	int64_t ms;		/* after the wall time of the record */
	bool again;		/* the next line of the stream overwrites it */
	struct event_text text; /* points into the message */
};

/* Appends a line to a message. */
void console_add(struct buf *lines, const struct console_line *line);

/* Reads the next line of a message (the text of an EVENT_CONSOLE): 1, 0 at the end, or ERR_CORRUPT. */
int console_next(struct event_span *lines, struct console_line *ret);

#endif
