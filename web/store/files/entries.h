/* entries.h: the entries of one level of artifacts. Private to web/store/files. */
#ifndef DPT_STORE_ENTRIES_H
#define DPT_STORE_ENTRIES_H

#include "web/store/files/artifacts.h"

struct entries {
	struct arena *arena;
	struct artifact_entry *list;
	size_t n, room;
};

int entries_add(struct entries *e, struct artifact_entry entry); /* ERR_NOMEM, also if the name is NULL */
void entries_sort(struct entries *e);				 /* by name */

#endif
