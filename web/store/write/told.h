/* told.h: stores the records of a run besides numbers and settings: console lines, code, alerts, files, media. */
#ifndef DPT_STORE_WRITE_TOLD_H
#define DPT_STORE_WRITE_TOLD_H

#include "web/store/write/intake.h"
#include "web/store/state/state.h"

/* Stores an EVENT_CONSOLE, EVENT_CODE, EVENT_ALERT, EVENT_FILE or EVENT_OTHER (media) of a journal with this rank
 * and segment. */
int told_put(struct state *st, const struct state_run *r, const struct state_writer *w, const struct intake_item *it,
	     struct err *err);

/* An image, table, sound or other media item of a run. */
struct told_media {
	const char *key;
	int64_t kind; /* enum media_kind */
	int rank, segment;
	int64_t step;
	double wall_time;
	const void *bytes; /* the content (media.h) */
	size_t len;
	const char *digest; /* of the content; NULL: computed here */
};

int told_media(struct state *st, const struct state_run *r, const struct told_media *m, struct err *err);

#endif
