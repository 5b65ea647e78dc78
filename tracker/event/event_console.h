/* event_console.h: the message that holds console output of a process, encoded and decoded. */
#ifndef DPT_EVENT_EVENT_CONSOLE_H
#define DPT_EVENT_EVENT_CONSOLE_H

#include "tracker/base/buf.h"
#include "tracker/event/event.h"

struct console_line {
	int stream;  /* 1 standard output, 2 standard error */
	int64_t ms;  /* after the wall time of the record */
	bool again;  /* the next line of the stream overwrites it */
	struct event_text text; /* points into the message */
};

/* Appends a line to a message. */
void console_add(struct buf *lines, const struct console_line *line);

/* Reads the next line of a message (the text of an EVENT_CONSOLE): 1, 0 at the end, or ERR_CORRUPT. */
int console_next(struct event_span *lines, struct console_line *ret);

#endif
