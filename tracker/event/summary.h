/* summary.h: the values of a Summary (summary.proto) as items: scalars of any age, texts, hparams, and what is left
 * uninterpreted. Knows nothing of the event that holds it. */
#ifndef DPT_EVENT_SUMMARY_H
#define DPT_EVENT_SUMMARY_H

#include "tracker/event/event.h"

/* Takes the next value off summary: 1, 0 at the end, or ERR_CORRUPT. With EVENT_HPARAMS_START *params is for
 * hparams_next to walk, else it is left as it is. */
int summary_next(struct event_span *summary, struct event_span *params, struct event_item *ret);

#endif
