/* series_names.h: series that dptrain renamed. Journals keep the old keys; schema/sql/0018_series_names.sql renames
 * those that a store holds. */
#ifndef DPT_STORE_SERIES_NAMES_H
#define DPT_STORE_SERIES_NAMES_H

#include "tracker/event/event.h"

#define SERIES_NAME_GROWTH 8u /* bytes that a new name is longer than the old one, at most */
#define SERIES_NAME_BYTES (LIMIT_key_bytes + SERIES_NAME_GROWTH)

/* Returns the current name of a series key of a journal: key itself, or a text in scratch. */
struct event_text series_current_name(struct event_text key, char scratch[SERIES_NAME_BYTES]);

#endif
