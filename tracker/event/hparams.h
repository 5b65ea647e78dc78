/* hparams.h: what TensorBoard's hparams plugin (plugin_data.proto) puts into a summary value: the start of a session
 * with its params, and its end. Knows nothing of the value around it, nor of params in our own terms. */
#ifndef DPT_EVENT_HPARAMS_H
#define DPT_EVENT_HPARAMS_H

#include "tracker/event/event.h"

/* 1: *ret has become EVENT_HPARAMS_START, with *params for hparams_next to walk, or EVENT_HPARAMS_END, or, where
 * content is neither, was left as it is; or ERR_CORRUPT. */
int hparams_item(struct event_span content, struct event_span *params, struct event_item *ret);

/* Takes the next EVENT_PARAM off params: 1, 0 at the end, or ERR_CORRUPT. */
int hparams_next(struct event_span *params, struct event_item *ret);

#endif
