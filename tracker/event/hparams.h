/* hparams.h: what TensorBoard's hparams plugin (plugin_data.proto) stores in a summary value: the start of a session
 * with its params, and its end. */
#ifndef DPT_EVENT_HPARAMS_H
#define DPT_EVENT_HPARAMS_H

#include "tracker/event/event.h"

/* Returns 1 or ERR_CORRUPT. 1: *ret is EVENT_HPARAMS_START, with *params for hparams_next to walk, or
 * EVENT_HPARAMS_END; any other content leaves it unchanged. */
int hparams_item(struct event_span content, struct event_span *params, struct event_item *ret);

/* Reads the next EVENT_PARAM of params: 1, 0 at the end, or ERR_CORRUPT. */
int hparams_next(struct event_span *params, struct event_item *ret);

#endif
