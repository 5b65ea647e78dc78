/* summary.h: the values of a Summary (summary.proto) as items: scalars of all versions, texts, hparams, and values that
 * are not interpreted. */
#ifndef DPT_EVENT_SUMMARY_H
#define DPT_EVENT_SUMMARY_H

#include "tracker/event/event.h"

/* Reads the next value of summary: 1, 0 at the end, or ERR_CORRUPT. EVENT_HPARAMS_START sets *params for hparams_next
 * to walk; otherwise it is unchanged. */
int summary_next(struct event_span *summary, struct event_span *params, struct event_item *ret);

#endif
