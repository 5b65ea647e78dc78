/* told.h: stores what a journal tells of a run besides numbers and settings: lines of the console, what ran, alerts,
 * files, media. */
#ifndef DPT_STORE_WRITE_TOLD_H
#define DPT_STORE_WRITE_TOLD_H

#include "web/store/write/intake.h"
#include "web/store/write/state.h"

/* EVENT_CONSOLE, EVENT_CODE, EVENT_ALERT, EVENT_FILE or EVENT_OTHER (media) of a journal of this rank and segment. */
int told_put(struct state *st, const struct state_run *r, const struct state_writer *w, const struct intake_item *it,
	     struct err *err);

#endif
