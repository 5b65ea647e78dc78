/* entries.h: what a level of artifacts holds, while it is read. Private to web/store/files. */
#ifndef DPT_STORE_ENTRIES_H
#define DPT_STORE_ENTRIES_H

#include "web/store/files/artifacts.h"

struct entries {
	struct arena *arena;
	struct artifact_entry *list;
	size_t n, room;
};

int entries_add(struct entries *e, struct artifact_entry entry); /* ERR_NOMEM, also when its name is NULL */
void entries_sort(struct entries *e);				 /* by name */

#endif
