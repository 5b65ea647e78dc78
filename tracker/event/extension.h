/* SPDX-License-Identifier: Apache-2.0 */
/* extension.h: the messages that our own journals add to an Event: header, params, tags, environment, notes, status,
 * heartbeats, … schema/event/fields.def has their numbers. */
#ifndef DPT_EVENT_EXTENSION_H
#define DPT_EVENT_EXTENSION_H

#include "tracker/event/wire.h"

/* schema/event/fields.def as constants FIELD_<message>_<name>. */
enum field {
#define FIELD(name, number) FIELD_##name = (number),
#include "schema/event/fields.def"
#undef FIELD
};

/* Reads a top-level field of the Event. 1: *ret is filled (and, with EVENT_HEADER, *ret_header, to which it points); 0:
 * nothing to report; or ERR_CORRUPT. */
int extension_item(const struct wire_field *f, struct event_header *ret_header, struct event_item *ret);

/* Reads the field of a rank, in a header or a summary value. 0 or ERR_CORRUPT. */
int extension_rank(const struct wire_field *f, int *ret);

#endif
